//! Checks the payee. On some hubs a mistyped name is a valid account, and credits paid to it are
//! lost.

use rialto_client::{CallError, Hub};
use serde::Deserialize;

use super::super::views::{Pages, parse_json};

/// Pages of the hub's list searched, and agents per page.
const PAGES_MAX: usize = 20;
const PAGE_SIZE: usize = 200;

#[derive(Deserialize)]
struct AgentOwner {
    owner: String,
}

/// Whether a listed agent belongs to this owner. A hub with more agents than can be searched
/// decides by itself.
pub async fn is_known_owner(hub: &Hub, owner: &str) -> Result<bool, CallError> {
    let mut pages = Pages::new(hub, "/v1/agents", Vec::new());
    for _ in 0..PAGES_MAX {
        let Some(agents) = pages.next_page(PAGE_SIZE).await? else { return Ok(false) };
        for agent in agents {
            let agent: AgentOwner = parse_json(agent.get())?;
            if agent.owner == owner {
                return Ok(true);
            }
        }
    }
    Ok(pages.has_more())
}
