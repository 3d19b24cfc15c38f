//! Checks the payee. On some hubs a mistyped name is a valid account, and credits paid to it are
//! lost.

use rialto_client::{CallError, Hub};
use serde::Deserialize;

use super::super::views::{Pages, read};

/// Pages of the hub's list searched, and agents per page.
const PARTS_MAX: usize = 20;
const PART: usize = 200;

#[derive(Deserialize)]
struct Owned {
    owner: String,
}

/// Whether a listed agent belongs to this owner. A hub with more agents than can be searched
/// decides by itself.
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
