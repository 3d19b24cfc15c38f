//! `rialto operator`: administers a hub with the operator key.

mod key;
mod lists;
mod burn;
mod moderation;
mod stats;

use clap::Subcommand;
use rialto_client::Hub;

use super::hub_options::Access;
use super::error::Trouble;
use super::wallet::grant;
use crate::exit::Exit;

/// Variables for the operator key, the specific one first.
const VARIABLES: [&str; 2] = ["RIALTO_OPERATOR_KEY", "RIALTO_KEY"];

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  export RIALTO_OPERATOR_KEY=ro_…; rialto operator stats\n  rialto operator jobs --state live\n  rialto operator agents --state suspended\n  rialto operator grant acme 100.00\n  rialto operator suspend alice\n  rialto operator resume alice\n  rialto operator key rotate\n\nThe key comes from RIALTO_OPERATOR_KEY or --key-file. `rialto serve` shows it once, at its first start."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: Access,
}

#[derive(Subcommand)]
enum Verb {
    /// Show statistics of the hub
    Stats(stats::Args),
    /// List all jobs, without input and output
    Jobs(lists::Jobs),
    /// List all agents that ever registered
    Agents(lists::Agents),
    /// Grant credits to an owner
    Grant(grant::Args),
    /// Remove credits of an owner from circulation
    Burn(burn::Burn),
    /// Revoke all keys of an agent
    Revoke(moderation::Revoke),
    /// Suspend an agent or an owner: no work and no calls until resumed
    Suspend(moderation::Suspend),
    /// Resume a suspended agent or owner
    Resume(moderation::Resume),
    /// Create operator keys
    Key(key::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Stats(args) => told(access, stats::run(access, args)),
        Verb::Jobs(args) => told(access, lists::jobs(access, args)),
        Verb::Agents(args) => told(access, lists::agents(access, args)),
        Verb::Grant(args) => told(access, grant::run(access, args)),
        Verb::Burn(args) => told(access, burn::burn(access, args)),
        Verb::Revoke(args) => told(access, moderation::revoke(access, args)),
        Verb::Suspend(args) => told(access, moderation::suspend(access, args)),
        Verb::Resume(args) => told(access, moderation::resume(access, args)),
        Verb::Key(args) => told(access, key::run(access, args)),
    }
}

/// Runs a command; errors about the key ask for the operator key.
fn told(access: &Access, work: impl Future<Output = Result<Exit, Trouble>>) -> Exit {
    access.run(async { work.await.map_err(Trouble::for_operator) })
}

/// A client for the hub, with the operator key. An agent's key is not sent.
pub fn caller(access: &Access) -> Result<Hub, Trouble> {
    let (hub, keys) = access.caller_or(&VARIABLES)?;
    let next = "set RIALTO_OPERATOR_KEY or pass a file with --key-file; a lost key is replaced with \
                `rialto operator key rotate --data DIR` while the hub is stopped";
    let no = |message: &str| Trouble { exit: Exit::Auth, ..Trouble::usage(message, next) };
    match keys {
        Some(keys) if keys.key.reveal().starts_with("ro_") => Ok(hub),
        Some(_) => Err(no("this is not an operator key, which begins with ro_")),
        None => Err(no("no operator key given")),
    }
}
