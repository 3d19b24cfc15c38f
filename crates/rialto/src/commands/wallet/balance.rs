//! `rialto wallet balance`: shows an account.

use rialto_client::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::hub_options::Access;
use super::super::output::{self, one_line};
use super::super::error::Trouble;
use super::super::uri;
use super::super::views::{Account, get, read};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto wallet balance\n  rialto wallet balance --as shout\n  RIALTO_KEY=rk_… rialto wallet balance acme --json\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet balance acme\n\nAvailable credits can be spent; held credits are set aside for live jobs."
)]
pub struct Args {
    /// Owner's name in the ledger [default: your own]; other owners need RIALTO_OPERATOR_KEY
    owner: Option<String>,
}

/// The part of the hub's answer about the caller that is used here.
#[derive(Deserialize)]
struct Own {
    account: Box<RawValue>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let answer = match &args.owner {
        Some(owner) => {
            let (hub, _) = access.caller_or(&["RIALTO_OPERATOR_KEY", "RIALTO_KEY"])?;
            let asked = get(&hub, &format!("/v1/accounts/{}", uri::part(owner))).await;
            asked.map_err(|error| {
                let next = "`rialto wallet balance` shows your own account; other accounts need RIALTO_OPERATOR_KEY";
                Trouble::from(error).on(Exit::NotFound, next).for_operator()
            })?
        }
        None => {
            let (hub, _) = access.me()?;
            let own: Own = read(&get(&hub, "/v1/me").await?)?;
            own.account.get().to_owned()
        }
    };
    show(access, &answer)
}

/// Prints an account, with the digits the hub sent.
pub fn show(access: &Access, answer: &str) -> Result<Exit, Trouble> {
    let _ = match access.json {
        true => output::line(answer),
        false => output::line(&told(answer)?),
    };
    Ok(Exit::Ok)
}

fn told(answer: &str) -> Result<String, CallError> {
    let Account { owner, available, held } = read(answer)?;
    Ok(format!("{}: {} available, {} held", one_line(&owner), available.get(), held.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_told_with_the_digits_it_came_with() {
        let answer = r#"{"owner":"acme","available":100.00,"held":0.10}"#;
        assert_eq!(told(answer).expect("a balance"), "acme: 100.00 available, 0.10 held");
    }
}
