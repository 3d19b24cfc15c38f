//! `rialto wallet grant`: grants credits to an owner.

use std::io::{self, IsTerminal, Write as _};

use rialto_client::{CallError, Hub, Method};
use rialto_core::money::Credits;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::operator;
use super::super::output::escape_line;
use super::balance;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(after_help = "Examples:
  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant acme 100.00
  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant new-owner 5 --create

With --create, credits can be granted to an owner that has not registered yet. Any name belongs to the
first caller that registers it; if that matters, grant after the registration.")]
pub struct Args {
    /// Name of the owner in the ledger
    owner: String,
    /// Credits, like 100.00
    #[arg(allow_negative_numbers = true)]
    amount: String,
    /// Open an account if no owner has this name
    #[arg(long)]
    create: bool,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let amount = parse_amount(&args.amount, 6)?;
    access.reject_acting("granting needs RIALTO_OPERATOR_KEY")?;
    let hub = operator::operator_client(access)?;
    let order = GrantRequest { owner: &args.owner, amount, create: args.create };
    let asked = match order.post(&hub).await {
        Err(error) if is_unknown(&error) && confirm_create(&args.owner) => {
            GrantRequest { create: true, ..order }.post(&hub).await
        }
        asked => asked,
    };
    balance::print_account(access, &asked.map_err(grant_error)?)
}

struct GrantRequest<'a> {
    owner: &'a str,
    amount: Credits,
    create: bool,
}

impl GrantRequest<'_> {
    async fn post(&self, hub: &Hub) -> Result<String, CallError> {
        let Self { owner, amount, create } = self;
        // Built as text, so that the amount never passes through a float.
        let (owner, amount) = (json!(owner), amount.to_text(2));
        let body = format!(r#"{{"owner":{owner},"amount":{amount},"create":{create}}}"#);
        let path = "/v1/operator/grants";
        hub.call_text(Method::POST, path, Some(body)).await.map(|(_, answer)| answer)
    }
}

/// The hub's code for an owner that does not exist.
const NO_SUCH_OWNER: &str = "no_such_owner";

fn is_unknown(error: &CallError) -> bool {
    matches!(error, CallError::Refused { code, .. } if code == NO_SUCH_OWNER)
}

/// Asks for confirmation on a terminal; a program must pass --create.
fn confirm_create(owner: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let _ = write!(
        io::stderr(),
        "owner {} does not exist; open an account? [y/N] ",
        escape_line(owner)
    );
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn grant_error(error: CallError) -> CliError {
    let unknown = is_unknown(&error);
    let cli_error = CliError::from(error).with_operator_hint();
    match unknown {
        true => {
            CliError { next: Some("check the spelling, or add --create".to_owned()), ..cli_error }
        }
        false => cli_error,
    }
}

/// An amount that was typed.
pub fn parse_amount(text: &str, decimals: usize) -> Result<Credits, CliError> {
    Credits::parse(text, decimals)
        .map_err(|why| CliError::usage(format!("the amount {why}"), "write it like 100.00"))
}
