//! Translates this protocol's messages into commands of the core, and checks an input against a
//! capability's schema, whatever the home protocol of either agent.

use std::sync::Arc;

use rialto_core::agent::key::KeyHash;
use rialto_core::agent::presence::Availability;
use rialto_core::agent::status::AgentStatusUpdate;
use rialto_core::agent::{Agent, Liveness, Skill, Terms};
use rialto_core::agent::{Capacity, JobIntake};
use rialto_core::alias::{Digest, Protocol};
use rialto_core::command::{
    self, Actor, Canceller, Command, JobRef, OpenJob, Registration, ReportResult,
};
use rialto_core::id::AgentId;
use rialto_core::job::RequesterOptions;
use rialto_core::job::{Cause, Job, Policy, Requester, Selection, acceptance};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::OpenclawState;
use super::wire::error::Rejected;
use super::wire::words::{Category, ErrorType, Mode, Status};
use super::wire::{
    self, CollaborationResult, Identity, Message, PublishedCapability, Rejection, ReportedStatus,
    Request, Response, ResponseAnswer, ResultError, ResultOutcome, StatusUpdate,
};
use super::{DECIMALS, ID, IDENTITY_MAX};
use crate::adapter::profile::{ChangedProfile, ProfileChange, PublishedProfile, SkillListing};
use crate::adapter::skill_schema;
use crate::kit::fields::Malformed;
use crate::kit::object::ObjectWriter;
use crate::kit::schema::{Schema, Violation};
use crate::kit::{ijson, jcs};

/// A request without a deadline ends after this long if it still waits for its agent.
const REQUEST_LIFETIME: Millis = Millis::hours(30 * 24);

/// The parts of a publication that only the hub knows.
pub struct Publication {
    pub actor: Actor,
    pub aliases: Vec<(Protocol, String)>,
    pub key: KeyHash,
    pub correlation_id: Uuid,
    pub at: Timestamp,
}

pub fn publish_identity(message: &Message<Identity>, by: Publication) -> Command {
    let identity = &message.body;
    let native = identity.agent_id.to_string();
    // An identity need not have an error type (D8), but a status update must. Until the agent
    // reports one, its error counts as transient.
    let mut report = identity.report.clone();
    if report.status == Status::Error {
        report.details.error_type.get_or_insert(ErrorType::Transient);
    }
    let first = StatusUpdate {
        agent_id: identity.agent_id,
        report,
        previous_status: None,
        correlation_id: by.correlation_id,
        timestamp: by.at,
    };
    Command::Register(Box::new(Registration {
        actor: by.actor,
        home: ID,
        aliases: by.aliases,
        owner: format!("{ID}:{native}"),
        native_id: native,
        name: identity.agent_name.clone(),
        liveness: if identity.endpoint.is_some() {
            Liveness::ByEndpoint
        } else {
            Liveness::ByPolling
        },
        endpoint: identity.endpoint.clone(),
        skills: identity.capabilities.iter().map(skill).collect(),
        terms: terms(identity),
        status: Some(availability(&identity.report, first.write().into())),
        card: message.raw.to_string(),
        key: Some(by.key),
        rotate_key: false,
    }))
}

/// What a change makes of an agent: its identity is written anew, with all members that the change
/// does not name, and read like one that it publishes itself.
pub fn change_profile(agent: &Agent, change: &ProfileChange) -> Result<ChangedProfile, Malformed> {
    change.check(DECIMALS)?;
    let whole = |what: &str| Malformed { field: String::new(), message: what.to_owned() };
    let unreadable = || whole("the identity cannot be read; publish it again");
    let old = wire::read::<Identity>(agent.card.as_bytes()).map_err(|_| unreadable())?;
    let mut identity = old.body;
    if let Some(name) = &change.name {
        identity.agent_name.clone_from(name);
    }
    if let Some(listed) = &change.skills {
        let known = std::mem::take(&mut identity.capabilities);
        let made = listed.iter().map(|listing| capability(listing, &known));
        identity.capabilities = made.collect::<Result<_, _>>().map_err(|bad| whole(&bad))?;
    }
    let json = ijson::read(old.raw.as_bytes()).map_err(|_| unreadable())?;
    let card = ObjectWriter::copy_without(&json, &["agent_name", "capabilities"])
        .text("agent_name", &identity.agent_name)
        .raw("capabilities", &identity.write_capabilities())
        .finish();
    if card.len() > IDENTITY_MAX {
        let message = format!("skills bring the identity to more than {IDENTITY_MAX} bytes");
        return Err(Malformed { field: "/skills".to_owned(), message });
    }
    let read = wire::read::<Identity>(card.as_bytes());
    let read = read.map_err(|bad| whole(&bad.violations.join("; ")))?;
    Ok(ChangedProfile {
        name: Some(read.body.agent_name.clone()),
        skills: Some(read.body.capabilities.iter().map(skill).collect()),
        published: Some(PublishedProfile { terms: terms(&read.body), card: read.raw.into() }),
    })
}

/// A skill as a capability. What only this protocol knows of it stays.
fn capability(
    listing: &SkillListing,
    known: &[PublishedCapability],
) -> Result<PublishedCapability, String> {
    let old = known.iter().find(|one| one.id == listing.name);
    let schema = |text: &Option<String>| {
        text.as_deref().map(Schema::compile).transpose().map_err(|bad| bad.to_string())
    };
    Ok(PublishedCapability {
        id: listing.name.clone(),
        name: old.map_or(&listing.name, |old| &old.name).clone(),
        description: listing.description.clone(),
        category: old.map_or_else(|| Category::guess_from_name(&listing.name), |old| old.category),
        estimated_duration_ms: old.and_then(|old| old.estimated_duration_ms),
        requires_approval: old.is_some_and(|old| old.requires_approval),
        price: Some(listing.price),
        input: schema(&listing.input)?,
        output: schema(&listing.output)?,
    })
}

/// How much work an agent accepts, and how it takes it.
fn terms(identity: &Identity) -> Terms {
    let limit = |n: Option<i64>| n.map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    Terms {
        capacity: Capacity {
            max_concurrent_jobs: limit(identity.limits.max_concurrent_tasks),
            max_starts_per_minute: limit(identity.limits.rate_limit_per_minute),
        },
        intake: JobIntake {
            confirms_jobs: identity.response_mode == Mode::Ask,
            strict_input: identity.capabilities.iter().any(|one| one.input.is_some()),
            urgent_first: true,
        },
    }
}

fn skill(capability: &PublishedCapability) -> Skill {
    let text =
        |schema: &Option<Schema>| schema.as_ref().map_or("{}", |schema| schema.text()).to_owned();
    Skill {
        name: capability.id.clone(),
        price: capability.price.unwrap_or(Credits::ZERO),
        by_offer: false,
        expected_duration: capability.estimated_duration_ms.map(Millis),
        needs_approval: capability.requires_approval,
        category: Some(capability.category.as_str().to_owned()),
        native_name: None,
        description: capability.description.clone(),
        input: text(&capability.input),
        output: text(&capability.output),
    }
}

/// The availability that an agent reports.
pub fn availability(report: &ReportedStatus, words: Arc<str>) -> AgentStatusUpdate {
    let availability = match (report.status, report.details.error_type) {
        (Status::Idle, _) => Availability::Idle,
        (Status::Busy, _) => Availability::Busy,
        (Status::Error, Some(ErrorType::Permanent)) => Availability::Broken,
        (Status::Error, _) => Availability::Error,
        (Status::Maintenance, _) => Availability::Maintenance,
    };
    let until =
        report.details.maintenance_until.filter(|_| availability == Availability::Maintenance);
    AgentStatusUpdate { availability, until, words: Some((report.at, words)) }
}

/// A request that is about to be assigned to an agent.
pub struct JobOrder<'r> {
    pub request: &'r Message<Request>,
    /// The digest by which repeats are recognized.
    pub content: Digest,
    /// Only tests whether the core would accept it. The content does not matter then.
    pub dry_run: bool,
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

pub fn open_job(order: JobOrder<'_>, lease: Millis, now: Timestamp) -> Command {
    let said = &order.request.body;
    // With a deadline, nothing else limits the work. Without one, the lease does.
    let (deadline, lease) = match (said.deadline, order.takes) {
        (Some(deadline), _) => (deadline, deadline.since(now)),
        (None, Some(takes)) => {
            (now.plus(REQUEST_LIFETIME), Millis(takes.0.saturating_add(acceptance::LATENESS_MAX.0)))
        }
        (None, None) => (now.plus(REQUEST_LIFETIME), lease),
    };
    Command::OpenJob(Box::new(OpenJob {
        uuid: order.uuid,
        origin: ID,
        foreign_id: order.name,
        content: order.content,
        requester: order.requester,
        skill: said.capability_id.clone(),
        alternative_skills: Vec::new(),
        input: if order.dry_run { "{}".to_owned() } else { said.input_data.to_string() },
        budget: said.budget.filter(|_| !order.free).unwrap_or(Credits::ZERO),
        price_step: PriceStep::FINEST,
        selection: Selection::Direct(order.worker),
        unfit_agents: Vec::new(),
        policy: Policy {
            requester: RequesterOptions {
                answered_at_once: true,
                cancels_any_time: true,
                ..RequesterOptions::default()
            },
            ..Policy::default()
        },
        deadline,
        lease,
        wanted_by: said.deadline,
        priority: said.priority(),
        callback: None,
        input_error: order.flaw.map(Rejection::write),
        meta: if order.dry_run {
            "{}".to_owned()
        } else {
            without(&order.request.raw, "input_data")
        },
        hops: 0,
        request_id: Some(said.request_id.to_string()),
    }))
}

/// A message without one of its members, the rest unchanged.
fn without(raw: &str, member: &str) -> String {
    let json = ijson::read(raw.as_bytes());
    json.map_or_else(
        |_| "{}".to_owned(),
        |json| ObjectWriter::copy_without(&json, &[member]).finish(),
    )
}

/// The digest by which requests are the same: all that is requested, but not its time and ids.
pub fn request_digest(said: &Request) -> Digest {
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
    let canonical = json.ok().and_then(|json| jcs::canonicalize(&json).ok());
    canonical.unwrap_or_else(|| raw.to_owned())
}

/// The command for a responder's response.
pub fn respond(said: &Response, job: &Job, by: AgentId) -> Command {
    let said = match &said.answer {
        ResponseAnswer::Accepted { collaboration_id, estimated_completion } => {
            command::WorkerResponse::Accept {
                ready_at: *estimated_completion,
                worker_job_id: Some(*collaboration_id),
            }
        }
        ResponseAnswer::Rejected(reason) => command::WorkerResponse::Refuse {
            cause: cause(reason.code),
            text: reason.message.clone(),
            words: Some(reason.write()),
        },
        ResponseAnswer::Deferred { until } => command::WorkerResponse::Defer { until: *until },
    };
    Command::Respond { job: JobRef::Id(job.id), by, response: said }
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
pub fn report_result(
    message: &Message<CollaborationResult>,
    job: &Job,
    by: AgentId,
    unfit: &[String],
) -> Command {
    let job = JobRef::Id(job.id);
    let CollaborationResult { outcome, execution_duration_ms, .. } = &message.body;
    let (ok, output, cause, text) = match outcome {
        ResultOutcome::Completed { output_data } if unfit.is_empty() => {
            (true, Some(output_data.to_string()), None, None)
        }
        ResultOutcome::Completed { output_data } => {
            (false, Some(output_data.to_string()), Some(Cause::Unusable), Some(unfit.join("; ")))
        }
        ResultOutcome::Failed(ResultError { message, .. }) => {
            (false, None, Some(Cause::Execution), Some(message.clone()))
        }
        ResultOutcome::Cancelled { reason } => {
            let (by, reason) = (Canceller::Agent(by), reason.clone());
            return Command::Cancel { job, by, reason };
        }
    };
    Command::ReportResult(Box::new(ReportResult {
        job,
        by,
        epoch: None,
        ok,
        is_final: true,
        knows_work: true,
        no_response: false,
        output,
        // The agreed price is paid.
        cost: Credits::MAX,
        took: Some(Millis(execution_duration_ms.unwrap_or(0))),
        cause,
        text,
        meta: Some(without(&message.raw, "output_data")),
        content: result_content(outcome),
    }))
}

/// The digest by which results are the same.
fn result_content(outcome: &ResultOutcome) -> Digest {
    match outcome {
        ResultOutcome::Completed { output_data } => {
            Digest::of(&[b"completed", canonical(output_data).as_bytes()])
        }
        ResultOutcome::Failed(failed) => {
            let details = failed.details.as_deref().map(canonical).unwrap_or_default();
            let parts = [failed.code.as_bytes(), failed.message.as_bytes(), details.as_bytes()];
            Digest::of(&[b"failed", parts[0], parts[1], parts[2]])
        }
        ResultOutcome::Cancelled { .. } => Digest::of(&[b"cancelled"]),
    }
}

/// The violations of the schema under which a capability is listed. May be slow.
pub fn input_violations(
    state: &OpenclawState,
    agent: &Arc<Agent>,
    capability: &str,
    input: &str,
) -> Vec<String> {
    let checked = if agent.home == ID {
        native_violations(state, agent, capability, input)
    } else {
        listed_violations(agent, capability, input)
    };
    checked.unwrap_or_default().iter().map(ToString::to_string).collect()
}

/// Checks against the schema that the agent published.
fn native_violations(
    state: &OpenclawState,
    agent: &Arc<Agent>,
    capability: &str,
    input: &str,
) -> Option<Vec<Violation>> {
    let identity = state.identity(agent)?;
    identity.capability(capability)?.input.as_ref()?.check(input).err()
}

/// Checks against the schema shown for a bridged agent. These schemas are small.
fn listed_violations(agent: &Agent, capability: &str, input: &str) -> Option<Vec<Violation>> {
    let schema = skill_schema::to_json_schema(&agent.skill(capability)?.input);
    Schema::compile(&schema).ok()?.check(input).err()
}
