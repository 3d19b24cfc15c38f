//! Lists the work that the hub considers this agent's, whether or not an event came for it.

use rialto_protocols::openclaw::wire::words::{Role, State};

use crate::call::CallError;
use crate::openclaw::agent::Agent;
use crate::openclaw::collaboration::{Collaboration, CollaborationFilter};
use crate::openclaw::event::IncomingRequest;
use crate::openclaw::request::retry_forever;

/// Maximum number of pages per state.
const PAGES_MAX: usize = 100;
/// Page size.
const PAGE: u32 = 100;

/// Lists everything that runs or waits for a response, across temporary errors.
pub(super) async fn find_unfinished(agent: &Agent) -> Result<Vec<IncomingRequest>, CallError> {
    let mut found = Vec::new();
    for state in [State::Running, State::AwaitingResponse] {
        let listing = CollaborationFilter {
            role: Some(Role::Responder),
            state: Some(state),
            limit: Some(PAGE),
        };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = retry_forever(|| agent.collaborations(&listing, cursor.as_deref())).await?;
            // Running work comes first: after an empty page there is only finished work.
            cursor = page.next_cursor.filter(|_| !page.collaborations.is_empty());
            found.extend(page.collaborations.into_iter().filter_map(incoming));
            if cursor.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Converts a collaboration to its event.
fn incoming(one: Collaboration) -> Option<IncomingRequest> {
    let Collaboration { collaboration_id, state, request, .. } = one;
    let accepted = match state {
        State::Running => collaboration_id.is_some().then_some(true)?,
        State::AwaitingResponse => false,
        _ => return None,
    };
    Some(IncomingRequest { request, collaboration_id, accepted, awaiting_approval: false })
}
