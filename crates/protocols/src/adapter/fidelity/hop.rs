//! Hops: the crossings of a job between its two parties, one with the request and one with the
//! result.

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::note::{Note, notes};
use super::message_view::Side;
use super::{Shown, Sides};

/// One crossing.
#[derive(Clone, Debug)]
pub struct Hop {
    pub what: What,
    pub from: Protocol,
    pub to: Protocol,
    pub at: Timestamp,
    /// The message as sent; `None` where the hub wrote it because the party had sent nothing.
    pub asked: Option<Side>,
    /// The message as received.
    pub given: Side,
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Request,
    Result,
}

impl What {
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
        let nothing = || Side { protocol: self.from, payload: String::new(), fields: Vec::new() };
        notes(&self.asked.clone().unwrap_or_else(nothing), &self.given)
    }
}

/// The field map of a protocol the hub speaks.
pub(super) fn sides_of(protocol: Protocol) -> Option<&'static dyn Sides> {
    crate::ALL.iter().find(|face| face.id() == protocol).map(|face| face.sides())
}

/// The hops of a job so far: none before it has a worker.
pub fn hops(shown: Shown<'_>) -> Vec<Hop> {
    let job = shown.job;
    let home = |world: &World| job.worker().and_then(|id| world.agent(id)).map(|agent| agent.home);
    let Some(home) = shown.floor.engine.look(home) else { return Vec::new() };
    let (Some(requester), Some(worker)) = (sides_of(job.origin), sides_of(home)) else {
        return Vec::new();
    };
    let request = worker.given(shown).map(|given| Hop {
        what: What::Request,
        from: job.origin,
        to: home,
        at: job.assignment.map_or(job.opened_at, |turn| turn.since),
        asked: Some(requester.asked(shown)),
        given,
    });
    let result = job.ended_at.and_then(|at| {
        let given = requester.told(shown)?;
        let asked = worker.made(shown);
        Some(Hop { what: What::Result, from: home, to: job.origin, at, asked, given })
    });
    request.into_iter().chain(result).collect()
}
