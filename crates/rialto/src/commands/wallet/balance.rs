//! `rialto wallet balance`: shows an account.

use rialto_client::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::uri;
use super::super::views::{AccountView, get_text, parse_json};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto wallet balance\n  rialto wallet balance --as shout\n  RIALTO_KEY=rk_… rialto wallet balance acme --json\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet balance acme\n\nAvailable credits can be spent; held credits are set aside for live jobs."
)]
pub struct Args {
    /// Owner's name in the ledger [default: your own]; other owners need RIALTO_OPERATOR_KEY
    owner: Option<String>,
}

/// The part of the hub's answer about the caller that is used here.
#[derive(Deserialize)]
struct MeResponse {
    account: Box<RawValue>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let answer = match &args.owner {
        Some(owner) => {
            let (hub, _) = access.client_from(&["RIALTO_OPERATOR_KEY", "RIALTO_KEY"])?;
            let asked = get_text(&hub, &format!("/v1/accounts/{}", uri::encode_part(owner))).await;
            asked.map_err(|error| {
                let next = "`rialto wallet balance` shows your own account; other accounts need RIALTO_OPERATOR_KEY";
                CliError::from(error).with_hint_on(Exit::NotFound, next).with_operator_hint()
            })?
        }
        None => {
            let (hub, _) = access.client_with_key()?;
            let own: MeResponse = parse_json(&get_text(&hub, "/v1/me").await?)?;
            own.account.get().to_owned()
        }
    };
    print_account(access, &answer)
}

/// Prints an account, with the digits the hub sent.
pub fn print_account(access: &HubOptions, answer: &str) -> Result<Exit, CliError> {
    let _ = match access.json {
        true => output::print_line(answer),
        false => output::print_line(&describe(answer)?),
    };
    Ok(Exit::Ok)
}

fn describe(answer: &str) -> Result<String, CallError> {
    let AccountView { owner, available, held } = parse_json(answer)?;
    Ok(format!("{}: {} available, {} held", escape_line(&owner), available.get(), held.get()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_told_with_the_digits_it_came_with() {
        let answer = r#"{"owner":"acme","available":100.00,"held":0.10}"#;
        assert_eq!(describe(answer).expect("a balance"), "acme: 100.00 available, 0.10 held");
    }
}
