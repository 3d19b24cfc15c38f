//! Whoever is to be paid: a name that was typed wrong may be an account on some hubs, and what is
//! paid there is gone.

use rialto_client::{CallError, Hub};
use serde::Deserialize;

use super::super::views::{Pages, read};

/// Parts of the hub's list that are looked through, and agents in each.
const PARTS_MAX: usize = 20;
const PART: usize = 200;

#[derive(Deserialize)]
struct Owned {
    owner: String,
}

/// Whether an agent on the hub's lists belongs to this owner. A hub with more agents than can be
/// looked through judges by itself.
pub async fn is_known(hub: &Hub, owner: &str) -> Result<bool, CallError> {
    let mut pages = Pages::new(hub, "/v1/agents", Vec::new());
    for _ in 0..PARTS_MAX {
        let Some(agents) = pages.more(PART).await? else { return Ok(false) };
        for agent in agents {
            let agent: Owned = read(agent.get())?;
            if agent.owner == owner {
                return Ok(true);
            }
        }
    }
    Ok(pages.has_more())
}
