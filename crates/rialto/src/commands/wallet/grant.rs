//! `rialto wallet grant`.

use rialto_client::Method;
use rialto_core::money::Credits;
use serde_json::json;

use super::super::access::Access;
use super::super::trouble::Trouble;
use super::balance;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(before_help = "Examples:\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant acme 100.00")]
pub struct Args {
    /// The owner's name in the ledger
    owner: String,
    /// Credits, like 100.00
    amount: String,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let amount = amount(&args.amount, 6)?;
    access.without_acting("granting needs RIALTO_OPERATOR_KEY")?;
    let (hub, _) = access.caller_or(&["RIALTO_OPERATOR_KEY", "RIALTO_KEY"])?;
    // Written by hand, so that the amount never passes through a float.
    let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(args.owner), amount.text(2));
    let granted = hub.call_text(Method::POST, "/v1/operator/grants", Some(body)).await;
    let (_, answer) = granted.map_err(|error| Trouble::from(error).for_operator())?;
    balance::show(access, &answer)
}

/// An amount that was typed.
pub fn amount(text: &str, decimals: usize) -> Result<Credits, Trouble> {
    Credits::parse(text, decimals)
        .map_err(|why| Trouble::usage(format!("the amount {why}"), "write it like 100.00"))
}
