//! Checks the caller: the key works, the inbox can be read, and there are credits to spend.

use rialto_client::{CallError, Hub};

use super::super::output::one_line;
use super::super::views::{Me, get, millionths};
use super::check::Check;

pub async fn checks(hub: &Hub, has_key: bool) -> Vec<Check> {
    if !has_key {
        let next =
            "the first `rialto job post` creates one; or pass one with --key-file or RIALTO_KEY";
        return vec![Check::warn("key", "none", next)];
    }
    let me = match Me::ask(hub).await {
        Ok(me) => me,
        Err(error) => return vec![refused(error)],
    };
    let whose = format!("{} (number {})", one_line(&me.agent.name), me.agent.id);
    vec![Check::ok("key", format!("of {whose}")), inbox(hub).await, credits(&me)]
}

fn refused(error: CallError) -> Check {
    let unknown = matches!(error, CallError::Refused { status: 401, .. });
    let check = Check::trouble("key", error);
    match unknown {
        true => Check {
            next: Some(
                "check with `rialto context show` that it is for this hub; register again if it is lost"
                    .to_owned(),
            ),
            ..check
        },
        false => check,
    }
}

/// Reads one page instead of opening a stream: a stream would make the agent count as online.
async fn inbox(hub: &Hub) -> Check {
    match get(hub, "/v1/inbox?limit=1").await {
        Ok(_) => Check::ok("inbox", "opens"),
        Err(error) => Check::trouble("inbox", error),
    }
}

fn credits(me: &Me) -> Check {
    let owner = one_line(&me.account.owner);
    let available = me.account.available.get();
    match millionths(available) {
        Some(1..) => Check::ok("credits", format!("{available} available to {owner}")),
        _ => {
            let next =
                format!("the operator grants some with `rialto operator grant {owner} 10.00`");
            Check::warn("credits", format!("{owner} has none to spend"), next)
        }
    }
}
