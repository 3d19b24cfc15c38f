//! `rialto doctor`: checks everything a client command needs and reports problems.

mod agents;
mod caller;
mod check;
mod files;
mod hub;
mod tools;

use serde_json::json;

use super::hub_options::Access;
use super::output;
use super::error::Trouble;
use crate::exit::Exit;
use check::{Check, Verdict};

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto doctor\n  rialto doctor --context work\n  rialto doctor --json | jq -r '.checks[] | select(.verdict != \"ok\") | .what'\n\nChecks the files of the command line, the hub, the clock, your key, inbox and credits, the agents\nof the context, and tools that handlers often use. Changes nothing. Exits with 1 if a check fails."
)]
pub struct Args {
    #[command(flatten)]
    access: Access,
}

pub fn run(args: &Args) -> Exit {
    args.access.run(look(&args.access))
}

async fn look(access: &Access) -> Result<Exit, Trouble> {
    let mut checks = files::checks(access);
    checks.extend(at_the_hub(access).await);
    checks.extend(tools::checks());
    let fine = checks.iter().all(|check| check.verdict != Verdict::Fail);
    if access.json {
        let all: Vec<_> = checks.iter().map(Check::document).collect();
        let _ = output::line(&json!({"ok": fine, "checks": all}).to_string());
    } else {
        let _ = checks.iter().try_for_each(|check| output::line(&check.told()));
    }
    Ok(if fine { Exit::Ok } else { Exit::Failed })
}

/// The checks that need a hub that answers.
async fn at_the_hub(access: &Access) -> Vec<Check> {
    let (hub, keys) = match access.caller() {
        Ok(caller) => caller,
        Err(trouble) => return vec![Check::trouble("key", trouble)],
    };
    let mut checks = hub::checks(hub.base()).await;
    if checks.iter().all(|check| check.verdict != Verdict::Fail) {
        checks.extend(caller::checks(&hub, keys.is_some()).await);
        checks.extend(agents::checks(access, hub.base()).await);
    }
    checks
}
