//! `rialto operator burn`: removes credits from circulation.

use rialto_client::Method;
use serde_json::json;

use super::super::hub_options::Access;
use super::super::error::Trouble;
use super::super::wallet::{balance, grant};
use super::caller;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator burn acme 1.00\n\nRemoves available credits of an owner from circulation; credits held for jobs stay."
)]
pub struct Burn {
    /// Name of the owner in the ledger
    owner: String,
    /// Credits, like 100.00
    #[arg(allow_negative_numbers = true)]
    amount: String,
}

pub async fn burn(access: &Access, args: &Burn) -> Result<Exit, Trouble> {
    let amount = grant::amount(&args.amount, 6)?;
    let hub = caller(access)?;
    // Built as text, so that the amount never passes through a float.
    let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(args.owner), amount.text(2));
    let (_, answer) = hub.call_text(Method::POST, "/v1/operator/burns", Some(body)).await?;
    balance::show(access, &answer)
}
