//! Opens jobs that the hub assigns, for its own API and for protocols whose requests need nothing
//! else.

use std::sync::Arc;

use axum::http::HeaderValue;
use axum::response::Response;
use rialto_core::alias::{Digest, Protocol};
use rialto_core::answer::Answer;
use rialto_core::command::{Command, OpenJob};
use rialto_core::id::AgentId;
use rialto_core::job::{
    DEFAULT_PRIORITY, Job, Policy, Reassignment, Requester, RequesterOptions, Selection, State,
};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use rialto_engine::{Engine, Failure, Idempotency};
use uuid::Uuid;

use super::HubContext;
use super::input_check::{self, InputCheck};

/// The response header with the hub's id of a job.
const JOB_HEADER: &str = "rialto-job";
/// An unfinished job expires after this time, whatever its workers do.
pub const JOB_LIFETIME: Millis = Millis::hours(24);
/// How long an assigned worker may be silent, unless the operator sets it.
const LEASE: Millis = Millis::minutes(10);
/// Budgets have two decimals.
const PRICE_STEP: PriceStep = PriceStep { decimals: 2, minimum: Credits::ZERO };

/// A request for work, in no protocol's words.
#[derive(Clone, Debug)]
pub struct JobRequest {
    /// The requester's own id of the job; without one the hub generates it.
    pub id: Option<Uuid>,
    pub requester: Requester,
    /// `None` lets the hub choose.
    pub worker: Option<AgentId>,
    pub choice: WorkerChoice,
    pub skill: String,
    /// JSON text.
    pub input: String,
    pub budget: Credits,
    pub callback: Option<String>,
    /// When the job expires, if before the end of its lifetime.
    pub deadline: Option<Timestamp>,
    /// Whether the requester waits for the result, whichever agent does the work.
    pub requester_waits: bool,
    /// What its protocol keeps with it: JSON text.
    pub meta: String,
    /// The digest of everything that distinguishes it but its worker.
    pub content: Digest,
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

/// A job that was requested.
#[derive(Clone, Debug)]
pub struct OpenedJob {
    pub job: Arc<Job>,
    /// An earlier request opened it.
    pub repeated: bool,
}

/// Opens the job as one of the protocol `origin`, or refuses it and leaves nothing behind. A repeat
/// returns the first job.
pub async fn open_job(
    context: &HubContext,
    origin: Protocol,
    request: JobRequest,
    idempotency: Option<Idempotency>,
) -> Result<OpenedJob, Failure> {
    let ids = context.engine.random();
    let (skill_names, input) = ([request.skill.as_str()], request.input.as_str());
    let check = InputCheck { origin, skill_names: &skill_names, agent: request.worker, input };
    let unfit_agents = input_check::find_unfit_agents(context, &check).await;
    let by_hub = request.worker.is_none() && request.choice != WorkerChoice::Offers;
    let choice = match request.choice {
        WorkerChoice::Best => Selection::BestReputation,
        WorkerChoice::Cheapest => Selection::Cheapest,
        WorkerChoice::Offers => Selection::Offers,
    };
    // A worker named in a path counts like one in the body.
    let worker = request.worker.map_or(0, |worker| worker.0).to_be_bytes();
    let command = Command::OpenJob(Box::new(OpenJob {
        uuid: ids.new_uuid(),
        origin,
        foreign_id: request.id.unwrap_or_else(|| ids.new_uuid()).to_string(),
        content: Digest::of(&[&request.content.0, &worker]),
        requester: request.requester,
        skill: request.skill,
        alternative_skills: Vec::new(),
        input: request.input,
        budget: request.budget,
        price_step: PRICE_STEP,
        unfit_agents,
        selection: request.worker.map_or(choice, Selection::Direct),
        policy: Policy {
            reassignment: Reassignment {
                when_unreachable: by_hub,
                when_declined: by_hub,
                when_failed: false,
            },
            requester: RequesterOptions {
                waits: request.requester_waits,
                ..RequesterOptions::default()
            },
            ..Policy::default()
        },
        deadline: request.deadline.unwrap_or(context.engine.now().plus(JOB_LIFETIME)),
        lease: context.settings.lease_or(LEASE),
        wanted_by: None,
        priority: DEFAULT_PRIORITY,
        callback: request.callback,
        input_error: None,
        meta: request.meta,
        hops: 0,
        request_id: None,
    }));
    match context.engine.run_once(command, idempotency).await?.answer {
        Answer::Job { job, repeated } => Ok(OpenedJob { job, repeated }),
        _ => Err(Refusal::NotFound.into()),
    }
}

/// The job as its requester is answered when it waits no longer. A job that has not ended is marked
/// as pending, so that the requester gets a notice of its end.
pub async fn settle(engine: &Engine, mut job: Arc<Job>) -> Result<Arc<Job>, Failure> {
    if !job.state.is_final() && !job.pending {
        job = match engine.run(Command::MarkPending { job: job.id }).await {
            Ok(Answer::Job { job, .. }) => job,
            // It ended just before it could be marked.
            Ok(_) | Err(Failure::Refused(_)) => {
                engine.load_job(job.id).await?.ok_or(Refusal::NotFound)?
            }
            Err(failure) => return Err(failure),
        };
    }
    if job.state == State::Withdrawn { Err(Refusal::Offline.into()) } else { Ok(job) }
}

/// Adds the hub's id of the job to a response, if it is about one (B18).
pub fn set_job_header(response: &mut Response, job: impl Into<Option<Uuid>>) {
    if let Some(id) = job.into().and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        response.headers_mut().insert(JOB_HEADER, id);
    }
}

/// The worker's name for the requested skill.
pub fn skill_name(world: &World, job: &Job) -> String {
    let worker = job.worker().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job));
    skill.map_or_else(|| job.request.skill.clone(), |skill| skill.name.clone())
}

/// The requester's name in a protocol.
pub fn requester_name(world: &World, job: &Job, protocol: Protocol) -> String {
    match &job.request.requester {
        Requester::Agent(id) => world.alias_of(*id, protocol).unwrap_or_default().to_owned(),
        Requester::Guest(name) => name.clone(),
    }
}
