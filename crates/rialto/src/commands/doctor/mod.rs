//! `rialto doctor`: checks everything a client command needs and reports problems.

mod agents;
mod caller;
mod check;
mod files;
mod hub;
mod tools;

use serde_json::json;

use super::error::CliError;
use super::hub_options::HubOptions;
use super::output;
use crate::exit::Exit;
use check::{CheckStatus, HealthCheck};

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto doctor\n  rialto doctor --context work\n  rialto doctor --json | jq -r '.checks[] | select(.verdict != \"ok\") | .what'\n\nChecks the files of the command line, the hub, the clock, your key, inbox and credits, the agents\nof the context, and tools that handlers often use. Changes nothing. Exits with 1 if a check fails."
)]
pub struct Args {
    #[command(flatten)]
    access: HubOptions,
}

pub fn run(args: &Args) -> Exit {
    args.access.run(run_checks(&args.access))
}

async fn run_checks(access: &HubOptions) -> Result<Exit, CliError> {
    let mut checks = files::checks(access);
    checks.extend(hub_checks(access).await);
    checks.extend(tools::checks());
    let fine = checks.iter().all(|check| check.status != CheckStatus::Fail);
    if access.json {
        let all: Vec<_> = checks.iter().map(HealthCheck::to_json).collect();
        let _ = output::print_line(&json!({"ok": fine, "checks": all}).to_string());
    } else {
        let _ = checks.iter().try_for_each(|check| output::print_line(&check.line()));
    }
    Ok(if fine { Exit::Ok } else { Exit::Failed })
}

/// The checks that need a hub that answers.
async fn hub_checks(access: &HubOptions) -> Vec<HealthCheck> {
    let (hub, keys) = match access.client() {
        Ok(caller) => caller,
        Err(error) => return vec![HealthCheck::from_error("key", error)],
    };
    let mut checks = hub::checks(hub.base()).await;
    if checks.iter().all(|check| check.status != CheckStatus::Fail) {
        checks.extend(caller::checks(&hub, keys.is_some()).await);
        checks.extend(agents::checks(access, hub.base()).await);
    }
    checks
}
