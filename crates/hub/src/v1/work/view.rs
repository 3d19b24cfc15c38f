//! A job as its worker sees it.

use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_protocols::adapter::api_protocol;
use rialto_protocols::adapter::open_job::{requester_name, skill_name};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::v1::response::{format_amount, format_time};

/// What a worker needs to do a job and to report its result.
#[derive(Serialize, JsonSchema)]
pub struct WorkView {
    id: Uuid,
    /// The epoch of this assignment; a report that includes it never counts for another assignment.
    epoch: u32,
    /// The skill by the worker's own name for it.
    skill: String,
    input: Box<RawValue>,
    requester: String,
    /// The protocol of the request.
    protocol: String,
    /// For workers of that protocol the budget; for others the agreed price.
    budget: Number,
    price: Number,
    /// When the result must be reported.
    deadline: Time,
    lease_until: Time,
    opened_at: Time,
}

impl WorkView {
    /// `None` for a job without a worker.
    pub fn of(world: &World, job: &Job) -> Option<Self> {
        let turn = job.assignment?;
        let at_home =
            world.agent(turn.worker).is_some_and(|worker| worker.home == job.request.origin);
        Some(Self {
            id: job.uuid,
            epoch: job.epoch,
            skill: skill_name(world, job),
            input: raw_json::verbatim(&job.request.input),
            requester: requester_name(world, job, api_protocol().id()),
            protocol: job.request.origin.to_string(),
            budget: format_amount(if at_home { job.payment.budget } else { turn.price }),
            price: format_amount(turn.price),
            deadline: format_time(turn.until.min(job.request.deadline)),
            lease_until: format_time(turn.until),
            opened_at: format_time(job.request.opened_at),
        })
    }
}
