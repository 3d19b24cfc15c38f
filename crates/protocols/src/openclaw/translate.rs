//! Translates this protocol's messages into commands of the core.

use std::sync::Arc;

use rialto_core::agent::key::KeyHash;
use rialto_core::agent::presence::Stance;
use rialto_core::agent::status::Condition;
use rialto_core::agent::{Liveness, Skill, Terms};
use rialto_core::alias::{Digest, Protocol};
use rialto_core::command::{self, Actor, Canceller, Command, Enrol, JobRef, OpenJob, ReportWork};
use rialto_core::price_step::Grain;
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Policy, Requester, Selection, acceptance};
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::ID;
use super::codes::Rejected;
use super::message::{
    Answer, Capability, Failed, Identity, Message, Outcome, Output, Rejection, Report, Request,
    Response, StatusUpdate,
};
use super::settings::Settings;
use super::state::{ErrorType, Mode, Status};
use crate::kit::ijson;
use crate::kit::jcs;
use crate::kit::object::Object;

/// A request without a deadline ends after this long if it still waits for its agent.
const LIFE: Millis = Millis::hours(30 * 24);

/// The parts of a publication that only the hub knows.
pub struct Publication {
    pub actor: Actor,
    pub aliases: Vec<(Protocol, String)>,
    pub key: KeyHash,
    pub correlation_id: Uuid,
    pub at: Timestamp,
}

pub fn enrol(message: &Message<Identity>, by: Publication) -> Command {
    let identity = &message.said;
    let native = identity.agent_id.to_string();
    let limit = |n: Option<i64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    // An identity need not have an error type (D8), but a status update must. Until the agent
    // reports one, its error counts as transient.
    let mut report = identity.report.clone();
    if report.status == Status::Error {
        report.details.error_type.get_or_insert(ErrorType::Transient);
    }
    let first = StatusUpdate {
        agent_id: identity.agent_id,
        report,
        previous: None,
        correlation_id: by.correlation_id,
        timestamp: by.at,
    };
    Command::Enrol(Box::new(Enrol {
        actor: by.actor,
        home: ID,
        aliases: by.aliases,
        owner: format!("{ID}:{native}"),
        native,
        name: identity.agent_name.clone(),
        liveness: if identity.endpoint.is_some() { Liveness::Reached } else { Liveness::Polls },
        endpoint: identity.endpoint.clone(),
        skills: identity.capabilities.iter().map(skill).collect(),
        terms: Terms {
            at_once: limit(identity.limits.max_concurrent_tasks),
            per_minute: limit(identity.limits.rate_limit_per_minute),
            answers_itself: identity.response_mode == Mode::Ask,
            strict: identity.capabilities.iter().any(|one| one.input.is_some()),
            urgent_first: true,
        },
        condition: Some(condition(&identity.report, first.write().into())),
        card: message.raw.to_string(),
        key: Some(by.key),
        rotate: false,
    }))
}

fn skill(capability: &Capability) -> Skill {
    let text = |schema: &Option<crate::kit::schema::Schema>| {
        schema.as_ref().map_or("{}", |schema| schema.text()).to_owned()
    };
    Skill {
        name: capability.id.clone(),
        price: capability.price.unwrap_or(Credits::ZERO),
        by_offer: false,
        takes: capability.estimated_duration_ms.map(Millis),
        approval: capability.requires_approval,
        sort: Some(capability.category.as_str().to_owned()),
        stands_for: None,
        about: capability.description.clone(),
        input: text(&capability.input),
        output: text(&capability.output),
    }
}

/// The availability that an agent reports.
pub fn condition(report: &Report, words: Arc<str>) -> Condition {
    let stance = match (report.status, report.details.error_type) {
        (Status::Idle, _) => Stance::Idle,
        (Status::Busy, _) => Stance::Busy,
        (Status::Error, Some(ErrorType::Permanent)) => Stance::Broken,
        (Status::Error, _) => Stance::Error,
        (Status::Maintenance, _) => Stance::Maintenance,
    };
    let until = report.details.maintenance_until.filter(|_| stance == Stance::Maintenance);
    Condition { stance, until, words: Some((report.at, words)) }
}

/// A request that is about to be assigned to an agent.
pub struct Order<'r> {
    pub request: &'r Message<Request>,
    /// The digest by which repeats are recognized.
    pub content: Digest,
    /// Only tests whether the core would accept it. The content does not matter then.
    pub probe: bool,
    pub requester: Requester,
    pub worker: AgentId,
    /// How long the worker estimates that it takes.
    pub takes: Option<Millis>,
    /// Whether the worker charges nothing. Then nothing is held, whatever the budget is (R88).
    pub free: bool,
    /// The hub's id of the job.
    pub uuid: Uuid,
    /// The requester's name for the job.
    pub name: String,
    /// Why the request will be rejected once its worker is back.
    pub flaw: Option<&'r Rejection>,
}

pub fn open_job(order: Order<'_>, settings: &Settings, now: Timestamp) -> Command {
    let said = &order.request.said;
    // With a deadline, nothing else limits the work. Without one, the lease does.
    let (deadline, lease) = match (said.deadline, order.takes) {
        (Some(deadline), _) => (deadline, deadline.since(now)),
        (None, Some(takes)) => {
            (now.plus(LIFE), Millis(takes.0.saturating_add(acceptance::PATIENCE.0)))
        }
        (None, None) => (now.plus(LIFE), settings.lease),
    };
    Command::OpenJob(Box::new(OpenJob {
        uuid: order.uuid,
        origin: ID,
        foreign: order.name,
        content: order.content,
        requester: order.requester,
        skill: said.capability_id.clone(),
        also: Vec::new(),
        input: if order.probe { "{}".to_owned() } else { said.input_data.to_string() },
        budget: said.budget.filter(|_| !order.free).unwrap_or(Credits::ZERO),
        grain: Grain::FINE,
        selection: Selection::Direct(order.worker),
        unfit: Vec::new(),
        policy: Policy { presence_first: true, cancel_any_time: true, ..Policy::default() },
        deadline,
        lease,
        promised: said.deadline,
        priority: said.priority(),
        callback: None,
        flaw: order.flaw.map(Rejection::write),
        meta: match order.probe {
            true => "{}".to_owned(),
            false => without(&order.request.raw, "input_data"),
        },
        hops: 0,
        request_id: Some(said.request_id.to_string()),
    }))
}

/// A message without one of its members, the rest unchanged.
fn without(raw: &str, member: &str) -> String {
    let json = ijson::read(raw.as_bytes());
    json.map_or_else(|_| "{}".to_owned(), |json| Object::copy(&json, &[member]).finish())
}

/// The digest by which requests are the same: all that is requested, but not its time and ids.
pub fn content(said: &Request) -> Digest {
    let input = canonical(&said.input_data);
    let text = |id: Option<Uuid>| id.map_or_else(String::new, |id| id.to_string());
    let number = |n: Option<i64>| n.map_or_else(String::new, |n| n.to_string());
    Digest::of(&[
        said.capability_id.as_bytes(),
        input.as_bytes(),
        text(said.responder_agent_id).as_bytes(),
        number(said.deadline.map(|at| at.0)).as_bytes(),
        &[said.priority()],
        number(said.budget.map(Credits::micros)).as_bytes(),
    ])
}

/// JSON in canonical form: the order of members and the spelling of numbers do not matter.
fn canonical(raw: &str) -> String {
    let json = ijson::read(raw.as_bytes());
    let canonical = json.ok().and_then(|json| jcs::canonical(&json).ok());
    canonical.unwrap_or_else(|| raw.to_owned())
}

/// The command for a responder's response.
pub fn respond(said: &Response, job: &Job, by: AgentId) -> Command {
    let said = match &said.answer {
        Answer::Accepted { collaboration_id, estimated_completion } => command::Response::Accept {
            ready_at: *estimated_completion,
            called: Some(*collaboration_id),
        },
        Answer::Rejected(reason) => command::Response::Refuse {
            cause: cause(reason.code),
            text: reason.message.clone(),
            words: Some(reason.write()),
        },
        Answer::Deferred { until } => command::Response::Defer { until: *until },
    };
    Command::Respond { job: JobRef::Id(job.id), by, said }
}

fn cause(code: Rejected) -> Cause {
    match code {
        Rejected::CapabilityNotAvailable => Cause::NoSuchSkill,
        Rejected::InvalidInput => Cause::Unusable,
        Rejected::ResourceExhausted => Cause::Offline,
        Rejected::PolicyViolation => Cause::Policy,
        Rejected::DeadlineTooSoon => Cause::TimedOut,
    }
}

/// The command for a responder's result. `unfit` lists the violations of the output schema (R60).
pub fn report(message: &Message<Output>, job: &Job, by: AgentId, unfit: &[String]) -> Command {
    let job = JobRef::Id(job.id);
    let Output { outcome, execution_duration_ms, .. } = &message.said;
    let (ok, output, cause, text) = match outcome {
        Outcome::Completed { output_data } if unfit.is_empty() => {
            (true, Some(output_data.to_string()), None, None)
        }
        Outcome::Completed { output_data } => {
            (false, Some(output_data.to_string()), Some(Cause::Unusable), Some(unfit.join("; ")))
        }
        Outcome::Failed(Failed { message, .. }) => {
            (false, None, Some(Cause::Execution), Some(message.clone()))
        }
        Outcome::Cancelled { reason } => {
            let (by, reason) = (Canceller::Agent(by), reason.clone());
            return Command::Cancel { job, by, reason };
        }
    };
    Command::Report(Box::new(ReportWork {
        job,
        by,
        epoch: None,
        ok,
        silent: false,
        output,
        // The agreed price is paid.
        cost: Credits::MAX,
        took: Millis(execution_duration_ms.unwrap_or(0)),
        cause,
        text,
        words: Some(without(&message.raw, "output_data")),
        content: result_content(outcome),
    }))
}

/// The digest by which results are the same.
fn result_content(outcome: &Outcome) -> Digest {
    match outcome {
        Outcome::Completed { output_data } => {
            Digest::of(&[b"completed", canonical(output_data).as_bytes()])
        }
        Outcome::Failed(failed) => {
            let details = failed.details.as_deref().map(canonical).unwrap_or_default();
            let parts = [failed.code.as_bytes(), failed.message.as_bytes(), details.as_bytes()];
            Digest::of(&[b"failed", parts[0], parts[1], parts[2]])
        }
        Outcome::Cancelled { .. } => Digest::of(&[b"cancelled"]),
    }
}
