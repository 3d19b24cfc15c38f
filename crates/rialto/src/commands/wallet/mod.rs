//! `rialto wallet`: shows an account and its movements, and pays from it.

pub mod balance;
pub mod grant;
mod ledger;
mod ledger_entry;
mod payee;
mod transfer;
mod verify;

use clap::Subcommand;

use super::hub_options::HubOptions;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto wallet balance\n  rialto wallet transfer --to globex 0.10\n  rialto wallet ledger --limit 5\n  rialto wallet verify\n  RIALTO_OPERATOR_KEY=ro_… rialto wallet grant acme 100.00"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show a balance: your own, or that of an owner
    Balance(balance::Args),
    /// Pay another owner
    Transfer(transfer::Args),
    /// List the movements of your account, newest first
    Ledger(ledger::Args),
    /// Recount your account from its ledger entries
    Verify(verify::Args),
    /// Grant credits to an owner; needs RIALTO_OPERATOR_KEY
    Grant(grant::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Balance(args) => access.run(balance::run(access, args)),
        Verb::Transfer(args) => access.run(transfer::run(access, args)),
        Verb::Ledger(args) => access.run(ledger::run(access, args)),
        Verb::Verify(args) => access.run(verify::run(access, args)),
        Verb::Grant(args) => access.run(grant::run(access, args)),
    }
}
