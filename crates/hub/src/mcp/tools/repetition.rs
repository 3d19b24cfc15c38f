//! The same action, asked for again, happens once.
//!
//! A caller may give an action a key of its own. Without one, the same call within two minutes counts
//! as a repetition, because clients repeat what a broken connection left unanswered. Both end as ids
//! that the engine stores with the action, so they outlive a restart of the hub.

use rialto_core::alias::Digest;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::idempotency::Principal;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::{Failure, Idempotency};
use rialto_protocols::adapter::idempotency::Turn;
use rialto_protocols::adapter::{HubContext, api_protocol, naming};
use uuid::Uuid;

/// Within this time the same call is a repetition.
const WINDOW: Millis = Millis::minutes(2);
/// What the hub derives the ids of calls without a key from.
const LABEL: &str = "rialto mcp repetition v1";

/// What a caller wants to happen once.
#[derive(Clone, Debug)]
pub struct Action {
    pub by: AgentId,
    /// Names the tool, and whatever else keeps its calls apart from others.
    pub tool: String,
    /// What is asked for: equal for calls that mean the same.
    pub content: Digest,
    /// The caller's own id of the action.
    pub key: Option<String>,
}

/// The id under which an action happens, and its turn among equal ones.
pub struct ActionId<T> {
    pub id: T,
    /// Equal calls wait until this is dropped.
    _turn: Option<Turn>,
}

impl Action {
    /// Whether the caller named the action.
    pub fn is_keyed(&self) -> bool {
        self.key.is_some()
    }

    /// The requester's id of the job that this action opens.
    pub async fn job_id(&self, context: &HubContext) -> Result<ActionId<Uuid>, Failure> {
        if let Some(key) = &self.key {
            let id = context.engine.with_world(|world| {
                let agent = world.agent(self.by)?;
                Some(naming::job_uuid(agent.home, &agent.native_id, key))
            });
            return Ok(ActionId { id: id.ok_or(Failure::Fault)?, _turn: None });
        }
        let turn = self.wait_for_turn(context).await;
        let now = context.engine.now();
        let window = window_at(now);
        let earlier = self.window_uuid(context, window - 1);
        let job = JobRef::Foreign { origin: api_protocol().id(), id: earlier.to_string() };
        let job = context.engine.find_job(&job).await?;
        let repeats = job.is_some_and(|job| is_recent(job.request.opened_at, now));
        let id = if repeats { earlier } else { self.window_uuid(context, window) };
        Ok(ActionId { id, _turn: Some(turn) })
    }

    /// The idempotency of the command that this action runs.
    pub async fn idempotency(&self, context: &HubContext) -> ActionId<Idempotency> {
        let once = |scope| Idempotency {
            scope,
            request: self.content,
            principal: Principal::Agent(self.by),
        };
        if let Some(key) = &self.key {
            let caller = self.by.0.to_be_bytes();
            let parts = [b"mcp key", caller.as_slice(), self.tool.as_bytes(), key.as_bytes()];
            return ActionId { id: once(Digest::of(&parts)), _turn: None };
        }
        let turn = self.wait_for_turn(context).await;
        let now = context.engine.now();
        let scope = |window| Digest::of(&[self.window_uuid(context, window).as_bytes()]);
        let earlier = scope(window_at(now) - 1);
        let repeats = context.engine.with_world(|world| {
            world.idempotency_entry(earlier, now).is_some_and(|known| is_recent(known.at, now))
        });
        let scope = if repeats { earlier } else { scope(window_at(now)) };
        ActionId { id: once(scope), _turn: Some(turn) }
    }

    /// Two equal calls must not fall into two windows because neither sees the other.
    async fn wait_for_turn(&self, context: &HubContext) -> Turn {
        let caller = self.by.0.to_be_bytes();
        let parts = [b"mcp turn", caller.as_slice(), self.tool.as_bytes(), &self.content.0];
        context.running_requests.wait_for_turn(Digest::of(&parts)).await
    }

    /// The id of this action in one window of time. Only the hub can compute it, so no other caller
    /// can take it.
    fn window_uuid(&self, context: &HubContext, window: i64) -> Uuid {
        let content: String = self.content.0.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("{}:{}:{content}:{window}", self.by.0, self.tool);
        let derived = context.engine.hub_secret().derive(LABEL, &text);
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&derived[..16]);
        uuid::Builder::from_random_bytes(bytes).into_uuid()
    }
}

fn window_at(now: Timestamp) -> i64 {
    now.0.div_euclid(WINDOW.0)
}

/// Whether something that happened then is still repeated now.
fn is_recent(then: Timestamp, now: Timestamp) -> bool {
    now.since(then) < WINDOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_a_repetition_for_two_minutes_and_never_longer() {
        let then = Timestamp(1_000_000);
        for (after, repeats) in [(0, true), (119_999, true), (120_000, false), (500_000, false)] {
            assert_eq!(is_recent(then, Timestamp(then.0 + after)), repeats, "{after}");
        }
        // Whatever the window of the first call, it is the present one or the one before it.
        for then in [0, 1, 119_999, 120_000, 1_234_567_890] {
            for after in [0, 1, 60_000, 119_999] {
                let windows = window_at(Timestamp(then + after)) - window_at(Timestamp(then));
                assert!((0..=1).contains(&windows));
            }
        }
    }
}
