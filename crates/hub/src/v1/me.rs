//! The caller's own view of itself.

use axum::extract::State;
use rialto_core::message::inbox::Inbox;
use rialto_protocols::adapter::HubContext;
use schemars::JsonSchema;
use serde::Serialize;

use super::accounts::AccountView;
use super::agents::view::AgentView;
use super::auth::AgentCaller;
use super::problem::Problem;
use super::response::{HandlerResult, ok_response};

#[derive(Serialize, JsonSchema)]
pub struct MeView {
    agent: AgentView,
    account: AccountView,
    inbox: InboxView,
    jobs_in_hand: usize,
}

/// Positions of an inbox.
#[derive(Serialize, JsonSchema)]
pub struct InboxView {
    head: u64,
    acked: u64,
}

impl InboxView {
    pub fn of(inbox: Inbox) -> Self {
        Self { head: inbox.head, acked: inbox.acked }
    }
}

/// `GET /v1/me`.
pub async fn show_me(State(context): State<HubContext>, by: AgentCaller) -> HandlerResult {
    let now = context.engine.now();
    let me = context.engine.with_world(|world| {
        let owner = world.agent(by.id).and_then(|agent| world.owner(agent.owner))?;
        Some(MeView {
            agent: AgentView::for_itself(world, by.id, now)?,
            account: AccountView::of(owner),
            inbox: InboxView::of(world.inbox(by.id)),
            jobs_in_hand: world.assigned_job_count(by.id),
        })
    });
    Ok(ok_response(&me.ok_or_else(Problem::not_found)?))
}
