//! `rialto wallet`: grant credits, look at balances.

use std::collections::BTreeMap;

use clap::Subcommand;
use rialto_client::{Hub, Method};
use rialto_core::money::Credits;
use serde_json::json;
use serde_json::value::RawValue;

use super::access::Access;
use super::trouble::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant acme 100.00\n  RIALTO_KEY=rk_… rialto wallet balance acme"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: Access,
}

#[derive(Subcommand)]
enum Verb {
    /// Give credits to an owner; needs RIALTO_OPERATOR_KEY
    Grant {
        /// The owner's name in the ledger
        owner: String,
        /// Credits, like 100.00
        amount: String,
    },
    /// Show an owner's balance; needs RIALTO_OPERATOR_KEY or RIALTO_KEY
    Balance {
        /// The owner's name in the ledger
        owner: String,
    },
}

pub fn run(args: &Args) -> Exit {
    args.access.run(ask(args))
}

async fn ask(args: &Args) -> Result<Exit, Trouble> {
    let keys = args.access.keys_or(&["RIALTO_OPERATOR_KEY", "RIALTO_KEY"])?;
    let key = keys.as_ref().map_or("", |keys| keys.key.reveal());
    let hub = Hub::new(args.access.hub_url(keys.as_ref()))?.with_key(key);
    let (method, path, body) = match &args.verb {
        Verb::Grant { owner, amount } => {
            let fine = Credits::parse(amount, 6).map_err(|why| {
                Trouble::usage(format!("the amount {why}"), "write it like 100.00")
            })?;
            // Written by hand, so that the amount never passes through a float.
            let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(owner), fine.text(2));
            (Method::POST, "/v1/operator/grants".to_owned(), Some(body))
        }
        Verb::Balance { owner } => (Method::GET, format!("/v1/accounts/{owner}"), None),
    };
    let (_, answer) = hub.call_text(method, &path, body).await?;
    match args.access.json {
        true => println!("{answer}"),
        false => println!("{}", told(&answer)),
    }
    Ok(Exit::Ok)
}

/// The balance in words, with the digits the hub sent.
fn told(answer: &str) -> String {
    let members: BTreeMap<String, Box<RawValue>> = serde_json::from_str(answer).unwrap_or_default();
    let text = |name: &str| members.get(name).map_or("?", |value| value.get()).trim_matches('"');
    format!("{}: {} available, {} held", text("owner"), text("available"), text("held"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_told_with_the_digits_it_came_with() {
        let answer = r#"{"owner":"acme","available":100.00,"held":0.10}"#;
        assert_eq!(told(answer), "acme: 100.00 available, 0.10 held");
    }
}
