//! A job as its worker gets it.

use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_protocols::kit::write;
use rialto_protocols::registry::lent;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::v1::answer::{money, time};

/// What a worker needs to know to do it and to report it.
#[derive(Serialize)]
pub struct WorkView {
    id: Uuid,
    /// Which turn of the job this is; a report that names it is never taken for another one's.
    epoch: u32,
    /// As the worker calls it.
    skill: String,
    input: Box<RawValue>,
    requester: String,
    /// The protocol it was asked in.
    protocol: String,
    /// What was offered, to workers of that protocol; to others what was agreed on.
    budget: Box<RawValue>,
    price: Box<RawValue>,
    /// By when it must be reported.
    deadline: String,
    lease_until: String,
    opened_at: String,
}

impl WorkView {
    /// Nothing for a job that nobody has.
    pub fn of(world: &World, job: &Job) -> Option<Self> {
        let turn = job.assignment?;
        let at_home = world.agent(turn.worker).is_some_and(|worker| worker.home == job.origin);
        Some(Self {
            id: job.uuid,
            epoch: job.epoch,
            skill: lent::skill_name(world, job),
            input: write::verbatim(&job.input),
            requester: lent::requester_name(world, job),
            protocol: job.origin.to_string(),
            budget: money(if at_home { job.budget } else { turn.price }),
            price: money(turn.price),
            deadline: time(turn.until.min(job.deadline)),
            lease_until: time(turn.until),
            opened_at: time(job.opened_at),
        })
    }
}
