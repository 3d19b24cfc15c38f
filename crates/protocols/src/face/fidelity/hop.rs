//! Hops: a job's way from one side to the other, once with the request and once with the result.

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::note::{Note, notes};
use super::side::Side;
use super::{Shown, Sides};

/// One crossing.
#[derive(Clone, Debug)]
pub struct Hop {
    pub what: What,
    pub from: Protocol,
    pub to: Protocol,
    pub at: Timestamp,
    /// As it was sent; nothing where the hub spoke for somebody who had not said a word.
    pub asked: Option<Side>,
    /// As it arrived.
    pub given: Side,
}

/// What crossed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    Request,
    Result,
}

impl What {
    /// Its name outside.
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

/// The sides of a protocol the hub speaks.
pub(super) fn sides_of(protocol: Protocol) -> Option<&'static dyn Sides> {
    crate::ALL.iter().find(|face| face.id() == protocol).map(|face| face.sides())
}

/// The hops of a job so far: none before somebody has it.
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
