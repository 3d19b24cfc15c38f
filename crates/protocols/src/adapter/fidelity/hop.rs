//! Hops: the crossings of a job between its two parties, one with the request and one with the
//! result.

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::message_view::MessageView;
use super::note::{Note, compare_fields};
use super::{FieldMap, TracedJob};
use crate::adapter::HubContext;

/// One crossing.
#[derive(Clone, Debug)]
pub struct Hop {
    pub kind: HopKind,
    pub from: Protocol,
    pub to: Protocol,
    pub at: Timestamp,
    /// The message as sent; `None` where the hub wrote it because the party had sent nothing.
    pub sent: Option<MessageView>,
    /// The message as received.
    pub received: MessageView,
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HopKind {
    Request,
    Result,
}

impl HopKind {
    /// Its name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Request => "request",
            Self::Result => "result",
        }
    }
}

impl Hop {
    /// What became of every field.
    pub fn notes(&self) -> Vec<Note> {
        let nothing =
            || MessageView { protocol: self.from, payload: String::new(), fields: Vec::new() };
        compare_fields(&self.sent.clone().unwrap_or_else(nothing), &self.received)
    }
}

/// The field map of a protocol the hub speaks.
pub(super) fn field_map_of(protocol: Protocol) -> Option<&'static dyn FieldMap> {
    crate::ALL.iter().find(|adapter| adapter.id() == protocol).map(|adapter| adapter.field_map())
}

/// The hops of a job so far: none before it has a worker.
pub fn hops(context: &HubContext, shown: TracedJob<'_>) -> Vec<Hop> {
    let job = shown.job;
    let home = |world: &World| job.worker().and_then(|id| world.agent(id)).map(|agent| agent.home);
    let Some(home) = context.engine.with_world(home) else { return Vec::new() };
    let messages = |of| Some(context.protocol(of)?.clone().job_messages(context));
    let (Some(requester), Some(worker)) = (messages(job.request.origin), messages(home)) else {
        return Vec::new();
    };
    let request = worker.request_received(shown).map(|received| Hop {
        kind: HopKind::Request,
        from: job.request.origin,
        to: home,
        at: job.assignment.map_or(job.request.opened_at, |turn| turn.since),
        sent: Some(requester.request_sent(shown)),
        received,
    });
    let result = job.ended_at.and_then(|at| {
        let received = requester.result_received(shown)?;
        let sent = worker.result_sent(shown);
        Some(Hop { kind: HopKind::Result, from: home, to: job.request.origin, at, sent, received })
    });
    request.into_iter().chain(result).collect()
}
