//! `rialto wallet`: shows an account and its movements, and pays from it.

mod ledger;

use std::io::{self, IsTerminal, Write as _};

use clap::Subcommand;
use rialto_client::{CallError, Method, RetryPolicy};
use rialto_core::money::Credits;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::v1::{AccountView, Amount, parse_json, unreadable};
use super::{Answer, CliError, CliResult, Exit, HubOptions, V1, escape_line, operator, output};

/// Pages of the hub's list searched for a payee.
const PAGES_MAX: usize = 20;
/// Decimals of a payment.
const DECIMALS: usize = 2;
/// The hub's code for an owner that does not exist.
const NO_SUCH_OWNER: &str = "no_such_owner";

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show a balance: your own, or that of an owner
    Balance {
        /// Owner's name in the ledger [default: your own]; other owners need RIALTO_OPERATOR_KEY
        owner: Option<String>,
    },
    /// Pay another owner
    Transfer(TransferArgs),
    /// List the movements of your account, newest first
    Ledger(ledger::Args),
    /// Recount your account from its ledger entries
    Verify,
    /// Grant credits to an owner; needs RIALTO_OPERATOR_KEY
    Grant(GrantArgs),
}

#[derive(clap::Args)]
struct TransferArgs {
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

#[derive(clap::Args)]
pub struct GrantArgs {
    /// Name of the owner in the ledger
    owner: String,
    /// Credits, like 100.00
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// Open an account if no owner has this name
    #[arg(long)]
    create: bool,
}

/// `POST /registry/transfer`.
#[derive(Serialize)]
struct TransferRequest<'a> {
    transfer_id: Uuid,
    from_owner: &'a str,
    to_owner: &'a str,
    amount: Amount,
    #[serde(skip_serializing_if = "Option::is_none")]
    job_id: Option<Uuid>,
}

#[derive(Deserialize)]
struct TransferResponse {
    transfer: PaidTransfer,
    sender_balance: Box<RawValue>,
    settlement: String,
}

#[derive(Deserialize)]
struct PaidTransfer {
    to_owner: String,
    amount: Box<RawValue>,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    match &args.verb {
        Verb::Balance { owner } => options.run(balance(options, owner.as_deref())),
        Verb::Transfer(args) => options.run(transfer(options, args)),
        Verb::Ledger(args) => options.run(ledger::list(options, args)),
        Verb::Verify => options.run(ledger::verify(options)),
        Verb::Grant(args) => options.run(grant(options, args)),
    }
}

async fn balance(options: &HubOptions, owner: Option<&str>) -> CliResult {
    let Some(owner) = owner else {
        let (api, _) = options.client_with_key()?;
        return print_account(options, &api.own_account().await?);
    };
    let (api, _) = options.client_from(&operator::VARIABLES)?;
    let account = api.account(owner).await.map_err(|error| {
        let next = "`rialto wallet balance` shows your own account; other accounts need RIALTO_OPERATOR_KEY";
        CliError::from(error).with_hint_on(Exit::NotFound, next).with_operator_hint()
    })?;
    print_account(options, &account)
}

/// Prints an account, with the digits the hub sent.
pub fn print_account(options: &HubOptions, account: &Answer<AccountView>) -> CliResult {
    output::print_answer(options.json, account, describe)
}

fn describe(account: AccountView) -> String {
    let AccountView { owner, available, held } = account;
    format!("{}: {} available, {} held", escape_line(&owner), available.get(), held.get())
}

async fn transfer(options: &HubOptions, args: &TransferArgs) -> CliResult {
    let amount = parse_amount(&args.amount, DECIMALS)?;
    let (api, _) = options.client_with_key()?;
    let from = api.me().await?.account.owner;
    if from == args.to {
        let message = format!("{from} is your own account");
        return Err(CliError::usage(message, "name another owner with --to"));
    }
    if !args.anyway && !is_known_owner(&api, &args.to).await? {
        let message = format!("no agent on the hub's lists belongs to {}", args.to);
        let next = "`rialto agent show AGENT` shows the owner of an agent; --anyway pays this name in any case";
        return Err(CliError::not_found(message, next));
    }
    let id = args.id.map_or_else(new_transfer_id, Ok)?;
    let request = TransferRequest {
        transfer_id: id,
        from_owner: &from,
        to_owner: &args.to,
        amount: Amount(amount),
        job_id: args.job,
    };
    let body = serde_json::to_string(&request).map_err(unreadable)?;
    // Sent until there is an answer: with its id it is paid only once.
    let send =
        async || api.0.call_text(Method::POST, "/registry/transfer", Some(body.clone())).await;
    let sent = RetryPolicy::default().call(send).await;
    let (_, answer): (u16, String) = sent.map_err(|error| transfer_error(error, id))?;
    let text = if options.json { String::new() } else { describe_transfer(&answer, id)? };
    Ok(output::print(options.json, answer, || text))
}

/// Whether a listed agent belongs to this owner. On some hubs a mistyped name is a valid account, and
/// credits paid to it are lost. A hub with more agents than can be searched decides by itself.
async fn is_known_owner(api: &V1, owner: &str) -> Result<bool, CallError> {
    let mut pages = api.agents(Vec::new());
    let agents = pages.search(PAGES_MAX, 1, |agent| agent.owner == owner).await?;
    Ok(!agents.is_empty() || pages.has_more())
}

/// A new transfer id, printed before it is used.
fn new_transfer_id() -> CliResult<Uuid> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| CliError::no_randomness(error, "pass your own id with --id"))?;
    let id = uuid::Builder::from_random_bytes(bytes).into_uuid();
    output::print_stderr(&format!("transfer {id}"));
    Ok(id)
}

/// The error for a failed transfer. If the outcome is unknown, retrying is safe and shows it.
fn transfer_error(error: CallError, id: Uuid) -> CliError {
    let is_unsure = error.min_retry_delay().is_some();
    let differs = matches!(error, CallError::Refused { status: 422, .. });
    let cli_error = CliError::from(error);
    if is_unsure {
        let next = format!(
            "the transfer may have succeeded; repeat it with --id {id}: it is paid only once"
        );
        return CliError { next: Some(next), ..cli_error };
    }
    if differs {
        let next = "an id is for one payment: remove --id to make another, and check --job";
        return CliError::conflict(cli_error.message, next);
    }
    cli_error
}

fn describe_transfer(answer: &str, id: Uuid) -> Result<String, CallError> {
    let TransferResponse { transfer, sender_balance, settlement } = parse_json(answer)?;
    let (amount, to) = (transfer.amount.get(), escape_line(&transfer.to_owner));
    let paid = if settlement == "escrow" { "the job's escrow has paid" } else { "paid" };
    Ok(format!("{paid} {amount} to {to}, {} left (transfer {id})", sender_balance.get()))
}

pub async fn grant(options: &HubOptions, args: &GrantArgs) -> CliResult {
    let amount = parse_amount(&args.amount, 6)?;
    options.reject_acting("granting needs RIALTO_OPERATOR_KEY")?;
    let api = operator::client(options)?;
    let granted = match api.grant(&args.owner, amount, args.create).await {
        Err(error) if is_unknown(&error) && confirm_create(&args.owner) => {
            api.grant(&args.owner, amount, true).await
        }
        granted => granted,
    };
    print_account(options, &granted.map_err(grant_error)?)
}

fn is_unknown(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code, .. } if code == NO_SUCH_OWNER)
}

/// Asks for confirmation on a terminal; a program must pass --create.
fn confirm_create(owner: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let question = format!("owner {} does not exist; open an account? [y/N] ", escape_line(owner));
    let _ = io::stderr().write_all(question.as_bytes());
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn grant_error(error: CallError) -> CliError {
    let is_unknown = is_unknown(&error);
    let cli_error = CliError::from(error).with_operator_hint();
    if !is_unknown {
        return cli_error;
    }
    CliError { next: Some("check the spelling, or add --create".to_owned()), ..cli_error }
}

/// An amount that was typed.
pub fn parse_amount(text: &str, decimals: usize) -> CliResult<Credits> {
    Credits::parse(text, decimals)
        .map_err(|why| CliError::usage(format!("the amount {why}"), "write it like 100.00"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_told_with_the_digits_it_came_with() {
        let account = parse_json(r#"{"owner":"acme","available":100.00,"held":0.10}"#);
        assert_eq!(describe(account.expect("a balance")), "acme: 100.00 available, 0.10 held");
    }
}
