//! Checks the caller: the key works, the inbox can be read, and there are credits to spend.

use rialto_client::{CallError, Hub};

use super::super::output::escape_line;
use super::super::views::{CallerView, get_text, millionths};
use super::check::HealthCheck;

pub async fn checks(hub: &Hub, has_key: bool) -> Vec<HealthCheck> {
    if !has_key {
        let next =
            "the first `rialto job post` creates one; or pass one with --key-file or RIALTO_KEY";
        return vec![HealthCheck::warn("key", "none", next)];
    }
    let me = match CallerView::fetch(hub).await {
        Ok(me) => me,
        Err(error) => return vec![refused(error)],
    };
    let whose = format!("{} (number {})", escape_line(&me.agent.name), me.agent.id);
    vec![HealthCheck::ok("key", format!("of {whose}")), inbox(hub).await, credits(&me)]
}

fn refused(error: CallError) -> HealthCheck {
    let unknown = matches!(error, CallError::Refused { status: 401, .. });
    let check = HealthCheck::from_error("key", error);
    match unknown {
        true => HealthCheck {
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
async fn inbox(hub: &Hub) -> HealthCheck {
    match get_text(hub, "/v1/inbox?limit=1").await {
        Ok(_) => HealthCheck::ok("inbox", "opens"),
        Err(error) => HealthCheck::from_error("inbox", error),
    }
}

fn credits(me: &CallerView) -> HealthCheck {
    let owner = escape_line(&me.account.owner);
    let available = me.account.available.get();
    match millionths(available) {
        Some(1..) => HealthCheck::ok("credits", format!("{available} available to {owner}")),
        _ => {
            let next =
                format!("the operator grants some with `rialto operator grant {owner} 10.00`");
            HealthCheck::warn("credits", format!("{owner} has none to spend"), next)
        }
    }
}
