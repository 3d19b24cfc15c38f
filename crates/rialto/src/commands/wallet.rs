//! `rialto wallet`: grant credits, look at balances.

use std::collections::BTreeMap;

use clap::Subcommand;
use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde_json::json;
use serde_json::value::RawValue;

use super::{complain, runtime};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant acme 100.00\n  RIALTO_KEY=rk_… rialto wallet balance acme"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// The hub's base URL
    #[arg(long, global = true, env = "RIALTO_HUB", default_value = "http://127.0.0.1:7425")]
    hub: String,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
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

pub fn run(args: Args) -> Exit {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return complain(error),
    };
    match runtime.block_on(ask(&args)) {
        Ok(answer) => {
            match args.json {
                true => println!("{answer}"),
                false => println!("{}", told(&answer)),
            }
            Exit::Ok
        }
        Err(error) => {
            let exit = Exit::from(&error);
            if args.json {
                println!("{}", json!({"error": error.to_string()}));
            } else {
                complain(error);
            }
            exit
        }
    }
}

async fn ask(args: &Args) -> Result<String, CallError> {
    let key = std::env::var("RIALTO_OPERATOR_KEY").or_else(|_| std::env::var("RIALTO_KEY"));
    let hub = Hub::new(&args.hub)?.with_key(&key.unwrap_or_default());
    let (method, path, body) = match &args.verb {
        Verb::Grant { owner, amount } => {
            let fine = Credits::parse(amount, 6)
                .map_err(|why| CallError::Unreadable(format!("the amount {why}")))?;
            // Written by hand, so that the amount never passes through a float.
            let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(owner), fine.text(2));
            (Method::POST, "/v1/operator/grants".to_owned(), Some(body))
        }
        Verb::Balance { owner } => (Method::GET, format!("/v1/accounts/{owner}"), None),
    };
    hub.call_text(method, &path, body).await.map(|(_, text)| text)
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
