//! `rialto operator burn`.

use rialto_client::Method;
use serde_json::json;

use super::super::access::Access;
use super::super::trouble::Trouble;
use super::super::wallet::{balance, grant};
use super::caller;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator burn acme 1.00\n\nTakes credits that an owner can spend out of circulation; what is held for jobs stays."
)]
pub struct Burn {
    /// The owner's name in the ledger
    owner: String,
    /// Credits, like 100.00
    #[arg(allow_negative_numbers = true)]
    amount: String,
}

pub async fn burn(access: &Access, args: &Burn) -> Result<Exit, Trouble> {
    let amount = grant::amount(&args.amount, 6)?;
    let hub = caller(access)?;
    // Written by hand, so that the amount never passes through a float.
    let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(args.owner), amount.text(2));
    let (_, answer) = hub.call_text(Method::POST, "/v1/operator/burns", Some(body)).await?;
    balance::show(access, &answer)
}
