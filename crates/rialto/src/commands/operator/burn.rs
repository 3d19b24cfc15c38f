//! `rialto operator burn`: removes credits from circulation.

use rialto_client::Method;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::wallet::{balance, grant};
use super::operator_client;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto operator burn acme 1.00\n\nRemoves available credits of an owner from circulation; credits held for jobs stay."
)]
pub struct BurnArgs {
    /// Name of the owner in the ledger
    owner: String,
    /// Credits, like 100.00
    #[arg(allow_negative_numbers = true)]
    amount: String,
}

pub async fn burn(access: &HubOptions, args: &BurnArgs) -> Result<Exit, CliError> {
    let amount = grant::parse_amount(&args.amount, 6)?;
    let hub = operator_client(access)?;
    // Built as text, so that the amount never passes through a float.
    let body = format!(r#"{{"owner":{},"amount":{}}}"#, json!(args.owner), amount.to_text(2));
    let (_, answer) = hub.call_text(Method::POST, "/v1/operator/burns", Some(body)).await?;
    balance::print_account(access, &answer)
}
