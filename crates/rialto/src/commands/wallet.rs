//! `rialto wallet`: grant credits, look at balances.

use clap::Subcommand;
use rialto_client::{CallError, Hub};
use rialto_core::money::Credits;
use serde_json::{Value, json};

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

async fn ask(args: &Args) -> Result<Value, CallError> {
    let key = std::env::var("RIALTO_OPERATOR_KEY").or_else(|_| std::env::var("RIALTO_KEY"));
    let hub = Hub::new(&args.hub)?.with_key(&key.unwrap_or_default());
    match &args.verb {
        Verb::Grant { owner, amount } => {
            let fine = Credits::parse(amount, 6)
                .map_err(|why| CallError::Unreadable(format!("the amount {why}")))?;
            let amount: Value = serde_json::from_str(&fine.text(2))
                .map_err(|error| CallError::Unreadable(error.to_string()))?;
            hub.post("/v1/operator/grants", &json!({"owner": owner, "amount": amount})).await
        }
        Verb::Balance { owner } => hub.get(&format!("/v1/accounts/{owner}")).await,
    }
}

fn told(answer: &Value) -> String {
    let text = |name: &str| match answer.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "?".to_owned(),
    };
    format!("{}: {} available, {} held", text("owner"), text("available"), text("held"))
}
