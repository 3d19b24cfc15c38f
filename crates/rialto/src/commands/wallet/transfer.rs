//! `rialto wallet transfer`: pays another owner.

use rialto_client::{CallError, Hub, Method, RetryPolicy};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output::{self, escape_line};
use super::super::views::{CallerView, parse_json};
use super::grant::parse_amount;
use super::payee;
use crate::exit::Exit;

/// Decimals of a payment.
const DECIMALS: usize = 2;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto wallet transfer --to globex 0.10\n  rialto wallet transfer --to globex 0.10 --job f81d4fae-7dec-11d0-a765-00a0c91e6bf6\n  rialto wallet transfer --to globex 0.10 --id 0e37df36-f698-41e6-8a1c-0d2f6e2c7a10     retry\n\nA transfer is paid once per id, however often it is sent. Without --id, a new id is printed before\nanything is sent, so that a failed transfer can be retried with it. An owner without a listed agent\nis not paid without --anyway: some hubs open an account for every name."
)]
pub struct Args {
    /// Credits, like 0.10
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// Owner to pay, by the name in the ledger
    #[arg(long, value_name = "OWNER")]
    to: String,
    /// Job to pay for; what its escrow has already paid is not paid again
    #[arg(long, value_name = "ID")]
    job: Option<Uuid>,
    /// Id of the transfer
    #[arg(long, value_name = "UUID")]
    id: Option<Uuid>,
    /// Pay an owner even if no listed agent belongs to it
    #[arg(long)]
    anyway: bool,
}

/// The hub's answer.
#[derive(Deserialize)]
struct TransferResponse {
    transfer: TransferBody,
    sender_balance: Box<RawValue>,
    settlement: String,
}

#[derive(Deserialize)]
struct TransferBody {
    to_owner: String,
    amount: Box<RawValue>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let amount = parse_amount(&args.amount, DECIMALS)?;
    let (hub, _) = access.client_with_key()?;
    let from = CallerView::fetch(&hub).await?.account.owner;
    if from == args.to {
        let message = format!("{from} is your own account");
        return Err(CliError::usage(message, "name another owner with --to"));
    }
    if !args.anyway && !payee::is_known_owner(&hub, &args.to).await? {
        let message = format!("no agent on the hub's lists belongs to {}", args.to);
        let next = "`rialto agent show AGENT` shows the owner of an agent; --anyway pays this name in any case";
        return Err(CliError::not_found(message, next));
    }
    let id = match args.id {
        Some(id) => id,
        None => new_transfer_id()?,
    };
    // Built as text, so that the amount never passes through a float.
    let job = args.job.map(|job| format!(r#","job_id":"{job}""#)).unwrap_or_default();
    let body = format!(
        r#"{{"transfer_id":"{id}","from_owner":{},"to_owner":{},"amount":{}{job}}}"#,
        json!(from),
        json!(args.to),
        amount.to_text(DECIMALS),
    );
    let answer = send_transfer(&hub, &body).await.map_err(|error| transfer_error(error, id))?;
    let _ = match access.json {
        true => output::print_line(&answer),
        false => output::print_line(&describe(&answer, id)?),
    };
    Ok(Exit::Ok)
}

/// A new transfer id, printed before it is used.
fn new_transfer_id() -> Result<Uuid, CliError> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        CliError::failed(
            format!("the system's random number generator failed: {error}"),
            "pass your own id with --id",
        )
    })?;
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    output::print_stderr(&format!("transfer {id}"));
    Ok(id)
}

/// Sends the transfer until there is an answer: with its id it is paid only once.
async fn send_transfer(hub: &Hub, body: &str) -> Result<String, CallError> {
    let send =
        async || hub.call_text(Method::POST, "/registry/transfer", Some(body.to_owned())).await;
    RetryPolicy::default().call(send).await.map(|(_, answer)| answer)
}

/// The error for a failed transfer. If the outcome is unknown, retrying is safe and shows it.
fn transfer_error(error: CallError, id: Uuid) -> CliError {
    let unsure = error.min_retry_delay().is_some();
    let differs = matches!(error, CallError::Refused { status: 422, .. });
    let cli_error = CliError::from(error);
    if unsure {
        let next = format!(
            "the transfer may have succeeded; repeat it with --id {id}: it is paid only once"
        );
        return CliError { next: Some(next), ..cli_error };
    }
    match differs {
        true => CliError::conflict(
            cli_error.message,
            "an id is for one payment: remove --id to make another, and check --job",
        ),
        false => cli_error,
    }
}

fn describe(answer: &str, id: Uuid) -> Result<String, CallError> {
    let TransferResponse { transfer, sender_balance, settlement } = parse_json(answer)?;
    let (amount, to) = (transfer.amount.get(), escape_line(&transfer.to_owner));
    let how = match settlement.as_str() {
        "escrow" => "the job's escrow has paid",
        _ => "paid",
    };
    Ok(format!("{how} {amount} to {to}, {} left (transfer {id})", sender_balance.get()))
}
