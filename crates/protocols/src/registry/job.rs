//! Jobs of this protocol, for its own operations and for the hub's /v1 API: opens them, for any
//! requester, and names their parties.

use std::sync::Arc;

use rialto_core::answer::Answer;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use rialto_engine::{Failure as EngineFailure, Idempotency};

use super::ID;
pub use super::errors::cause_of_code;
use super::translate::{self, GeneratedIds};
use super::wire::{JobPost, write_canonical};
use crate::adapter::HubContext;
use crate::adapter::input_check::{self, InputCheck};
use crate::kit::ijson;

/// How long an assigned worker may be silent, unless the operator sets it.
const LEASE: Millis = Millis::minutes(10);
/// An unfinished job expires after this time, whatever its workers do.
pub const JOB_LIFETIME: Millis = Millis::hours(24);

/// A job, its requester and its worker.
pub struct JobOrder {
    pub request: JobPost,
    pub requester: Requester,
    /// `None` lets the hub choose.
    pub worker: Option<AgentId>,
    pub preferences: JobPreferences,
}

/// Options that have no members in a job's body.
#[derive(Clone, Copy, Debug, Default)]
pub struct JobPreferences {
    pub choice: WorkerChoice,
    /// When the job expires.
    pub deadline: Option<Timestamp>,
    /// Whether the requester waits for the result, whichever agent does the work.
    pub requester_waits: bool,
}

/// How the hub chooses a worker when none is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WorkerChoice {
    #[default]
    Best,
    Cheapest,
    /// The hub does not choose: the requester accepts one of the offers.
    Offers,
}

/// Opens the job, or refuses it and leaves nothing behind. A repeat returns the first job.
pub async fn open_job(
    context: &HubContext,
    order: JobOrder,
    once: Option<Idempotency>,
) -> Result<Arc<Job>, EngineFailure> {
    let ids = context.engine.random();
    let fresh = GeneratedIds { uuid: ids.new_uuid(), job_id: ids.new_uuid() };
    let (names, input) = ([order.request.skill_name.as_str()], &order.request.input_data);
    let wanted = InputCheck { origin: ID, skill_names: &names, agent: order.worker, input };
    let unfit = input_check::find_unfit_agents(context, &wanted).await;
    let (lease, now) = (context.settings.lease_or(LEASE), context.engine.now());
    let command = translate::open_job(order, fresh, unfit, lease, now);
    match context.engine.run_once(command, once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Refusal::NotFound.into()),
    }
}

/// The worker's name for the requested skill.
pub fn skill_name(world: &World, job: &Job) -> String {
    let worker = job.worker().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job));
    skill.map_or_else(|| job.skill.clone(), |skill| skill.name.clone())
}

/// The requester's name in this protocol.
pub fn requester_name(world: &World, job: &Job) -> String {
    match &job.requester {
        Requester::Agent(id) => world.alias_of(*id, ID).unwrap_or_default().to_owned(),
        Requester::Guest(name) => name.clone(),
    }
}

/// The canonical bytes of JSON text: independent of spacing, member order and escapes.
pub fn canonical_bytes(text: &str) -> Vec<u8> {
    let mut meaning = Vec::new();
    match ijson::read(text.as_bytes()) {
        Ok(json) => write_canonical(&json, &mut meaning),
        Err(_) => meaning.extend(text.as_bytes()),
    }
    meaning
}
