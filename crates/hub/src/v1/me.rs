//! The caller's own view of itself.

use axum::extract::State;
use rialto_core::message::inbox::Mailbox;
use rialto_protocols::adapter::Floor;
use serde::Serialize;

use super::accounts::AccountView;
use super::agents::view::AgentView;
use super::response::{Answered, ok};
use super::problem::Problem;
use super::auth::AsAgent;

#[derive(Serialize)]
struct Me {
    agent: AgentView,
    account: AccountView,
    inbox: InboxView,
    jobs_in_hand: usize,
}

/// Positions of an inbox.
#[derive(Serialize)]
pub struct InboxView {
    head: u64,
    acked: u64,
}

impl InboxView {
    pub fn of(inbox: Mailbox) -> Self {
        Self { head: inbox.head, acked: inbox.acked }
    }
}

/// `GET /v1/me`.
pub async fn show(State(floor): State<Floor>, by: AsAgent) -> Answered {
    let now = floor.engine.now();
    let me = floor.engine.look(|world| {
        let owner = world.agent(by.id).and_then(|agent| world.owner(agent.owner))?;
        Some(Me {
            agent: AgentView::own(world, by.id, now)?,
            account: AccountView::of(owner),
            inbox: InboxView::of(world.mailbox(by.id)),
            jobs_in_hand: world.jobs_in_hand(by.id),
        })
    });
    Ok(ok(&me.ok_or_else(Problem::not_found)?))
}
