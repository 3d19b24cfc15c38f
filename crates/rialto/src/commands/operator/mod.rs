//! `rialto operator`: administers a hub with the operator key.

mod burn;
mod key;
mod lists;
mod moderation;
mod stats;

use clap::Subcommand;
use rialto_client::Hub;

use super::error::CliError;
use super::hub_options::HubOptions;
use super::wallet::grant;
use crate::exit::Exit;

/// Variables for the operator key, the specific one first.
const VARIABLES: [&str; 2] = ["RIALTO_OPERATOR_KEY", "RIALTO_KEY"];

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  export RIALTO_OPERATOR_KEY=ro_…; rialto operator stats\n  rialto operator jobs --state live\n  rialto operator agents --state suspended\n  rialto operator grant acme 100.00\n  rialto operator suspend alice\n  rialto operator resume alice\n  rialto operator key rotate\n\nThe key comes from RIALTO_OPERATOR_KEY or --key-file. `rialto serve` shows it once, at its first start."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show statistics of the hub
    Stats(stats::Args),
    /// List all jobs, without input and output
    Jobs(lists::JobsArgs),
    /// List all agents that ever registered
    Agents(lists::AgentsArgs),
    /// Grant credits to an owner
    Grant(grant::Args),
    /// Remove credits of an owner from circulation
    Burn(burn::BurnArgs),
    /// Revoke all keys of an agent
    Revoke(moderation::RevokeArgs),
    /// Suspend an agent or an owner: no work and no calls until resumed
    Suspend(moderation::SuspendArgs),
    /// Resume a suspended agent or owner
    Resume(moderation::ResumeArgs),
    /// Create operator keys
    Key(key::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Stats(args) => run_as_operator(access, stats::run(access, args)),
        Verb::Jobs(args) => run_as_operator(access, lists::jobs(access, args)),
        Verb::Agents(args) => run_as_operator(access, lists::agents(access, args)),
        Verb::Grant(args) => run_as_operator(access, grant::run(access, args)),
        Verb::Burn(args) => run_as_operator(access, burn::burn(access, args)),
        Verb::Revoke(args) => run_as_operator(access, moderation::revoke(access, args)),
        Verb::Suspend(args) => run_as_operator(access, moderation::suspend(access, args)),
        Verb::Resume(args) => run_as_operator(access, moderation::resume(access, args)),
        Verb::Key(args) => run_as_operator(access, key::run(access, args)),
    }
}

/// Runs a command; errors about the key ask for the operator key.
fn run_as_operator(
    access: &HubOptions,
    work: impl Future<Output = Result<Exit, CliError>>,
) -> Exit {
    access.run(async { work.await.map_err(CliError::with_operator_hint) })
}

/// A client for the hub, with the operator key. An agent's key is not sent.
pub fn operator_client(access: &HubOptions) -> Result<Hub, CliError> {
    let (hub, keys) = access.client_from(&VARIABLES)?;
    let next = "set RIALTO_OPERATOR_KEY or pass a file with --key-file; a lost key is replaced with \
                `rialto operator key rotate --data DIR` while the hub is stopped";
    let no = |message: &str| CliError { exit: Exit::Auth, ..CliError::usage(message, next) };
    match keys {
        Some(keys) if keys.key.reveal().starts_with("ro_") => Ok(hub),
        Some(_) => Err(no("this is not an operator key, which begins with ro_")),
        None => Err(no("no operator key given")),
    }
}
