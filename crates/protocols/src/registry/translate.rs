//! Translates this protocol's requests to commands, and jobs to its results and forwarded jobs.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rialto_core::agent::key::KeyHash;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::{Digest, Protocol};
use rialto_core::command::{Actor, Command, JobRef, Pay, Registration, ReportResult, WorkerReport};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Job, Requester, State};
use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_core::world::World;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::auth::callback_token;
use super::errors::{cause_of_code, code_of_cause};
use super::wire::StatusName;
use super::wire::{
    CURRENCY, DECIMALS, JobPost, JobStatus, PassthroughMembers, RegisterBody, ResultPost,
    SkillOffer, TransferPost,
};
use super::{ID, RegistryContext};
use crate::adapter::INPUT_MODES;
use crate::adapter::open_job::{JobRequest, WorkerChoice, requester_name, skill_name};
use crate::adapter::question_view::QuestionView;
use crate::adapter::{bridge, fidelity};
use crate::kit::raw_json::Number;
use crate::kit::{raw_json, rfc3339};

pub fn register_agent(
    wire: RegisterBody,
    native: Uuid,
    actor: Actor,
    aliases: Vec<(Protocol, String)>,
    key: KeyHash,
) -> Command {
    let mut card = serde_json::json!({
        "version": wire.version,
        "timestamp_utc": wire.timestamp_utc.map(rfc3339::format_seconds),
    });
    if let Some(modes) = wire.input_modes {
        card[INPUT_MODES] = modes.into();
    }
    let reached = wire.api_endpoint.as_deref().is_some_and(is_callable);
    Command::Register(Box::new(Registration {
        actor,
        home: ID,
        native_id: native.to_string(),
        aliases,
        owner: wire.owner_id,
        name: wire.agent_name,
        liveness: if reached { Liveness::ByEndpoint } else { Liveness::ByPolling },
        endpoint: wire.api_endpoint,
        skills: wire.skills.into_iter().map(skill).collect(),
        terms: Default::default(),
        status: None,
        card: card.to_string(),
        key: Some(key),
        rotate_key: wire.rotate_key,
    }))
}

/// Only these are ever called. `local://…` and the like mean that the agent polls.
pub fn is_callable(url: &str) -> bool {
    let scheme = url.split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https")
}

fn skill(offer: SkillOffer) -> Skill {
    Skill {
        name: offer.skill_name,
        price: offer.cost_per_call,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        category: None,
        native_name: None,
        description: offer.description,
        input: offer.input_schema,
        output: offer.output_schema,
    }
}

/// A request for work in the hub's form.
pub fn job_request(wire: JobPost, requester: Requester, worker: Option<AgentId>) -> JobRequest {
    JobRequest {
        id: wire.job_id,
        requester,
        worker,
        choice: WorkerChoice::Best,
        skill: wire.skill_name,
        input: wire.input_data,
        budget: wire.budget,
        callback: wire.callback_url,
        deadline: None,
        requester_waits: false,
        meta: serde_json::to_string(&wire.passthrough).unwrap_or_default(),
        content: wire.content,
    }
}

/// A worker's result of a job, whichever way it came.
pub fn report_result(wire: ResultPost, job: JobRef, by: AgentId) -> WorkerReport {
    if wire.status == JobStatus::Pending {
        return WorkerReport::Started { job, by };
    }
    let ok = wire.status == JobStatus::Success;
    let silent = "the agent reported a failure";
    let warned = !wire.warnings.is_empty();
    WorkerReport::Result(Box::new(ReportResult {
        job,
        by,
        epoch: None,
        ok,
        is_final: true,
        knows_work: true,
        no_response: false,
        output: wire.output_data,
        // A worker that names no cost wants its price, which caps the payment anyway.
        cost: wire.execution_cost.unwrap_or(Credits::MAX),
        took: Some(Millis(wire.execution_time_ms)),
        cause: (!ok).then(|| wire.error_code.as_deref().map_or(Cause::Execution, cause_of_code)),
        text: (!ok).then(|| wire.error_message.unwrap_or_else(|| silent.to_owned())),
        meta: warned.then(|| write_warnings(&wire.warnings)),
        content: wire.content,
    }))
}

/// An answer without a result.
pub struct UnusableAnswer {
    /// The answer says nothing about the work: the request was refused, or the connection broke.
    pub silent: bool,
    pub why: String,
}

/// An answer without a result: the job failed. It counts against the worker only if the answer is
/// about the work.
pub fn report_unusable_answer(job: JobRef, by: AgentId, answer: UnusableAnswer) -> WorkerReport {
    let UnusableAnswer { silent, why } = answer;
    WorkerReport::Result(Box::new(ReportResult {
        job,
        by,
        epoch: None,
        ok: false,
        is_final: true,
        knows_work: true,
        no_response: silent,
        output: None,
        cost: Credits::ZERO,
        took: Some(Millis(0)),
        cause: Some(Cause::Unusable),
        meta: None,
        content: Digest::of(&[b"unusable", why.as_bytes()]),
        text: Some(why),
    }))
}

pub fn transfer_credits(wire: TransferPost, fresh: Uuid, open_payee: bool) -> Command {
    Command::Pay(Box::new(Pay {
        origin: ID,
        id_given: wire.transfer_id.is_some(),
        foreign_id: wire.transfer_id.unwrap_or(fresh).to_string(),
        from: wire.from_owner,
        to: wire.to_owner,
        amount: wire.amount,
        job: wire.job_id.map(|id| id.to_string()),
        open_payee,
        content: wire.content,
    }))
}

/// An amount with two decimals; finer ones are rounded down, as balances are.
pub fn format_amount(amount: Credits) -> Number {
    raw_json::amount(amount.floor(DECIMALS), DECIMALS)
}

/// A job's result, or that there is none yet.
#[derive(Serialize, JsonSchema)]
pub struct ResultBody<'a> {
    job_id: &'a str,
    agent_id: Option<String>,
    #[schemars(with = "StatusName")]
    status: &'static str,
    output_data: Option<Box<RawValue>>,
    execution_cost: Number,
    execution_time_ms: i64,
    error_message: Option<&'a str>,
    error_code: Option<&'static str>,
    timestamp_utc: String,
    /// The worker's figures that could not be used, and what is used instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    /// The worker's question, answered with `POST /v1/jobs/{id}/answer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionView>,
}

/// The stored warnings about figures that could not be used.
#[derive(Serialize, Deserialize)]
struct StoredWarnings<'a> {
    warnings: Cow<'a, [String]>,
}

/// The same as JSON text.
fn write_warnings(warnings: &[String]) -> String {
    serde_json::to_string(&StoredWarnings { warnings: warnings.into() }).unwrap_or_default()
}

/// Warnings for the worker of a job about its figures; none for workers of other protocols.
pub fn read_warnings(world: &World, job: &Job) -> Vec<String> {
    let own = job.worker().and_then(|id| world.agent(id)).is_some_and(|agent| agent.home == ID);
    let words = job.result.as_ref().and_then(|report| report.meta.as_deref()).filter(|_| own);
    let kept = words.and_then(|words| serde_json::from_str::<StoredWarnings<'_>>(words).ok());
    kept.map(|kept| kept.warnings.into_owned()).unwrap_or_default()
}

/// A job's status: one of the three of this protocol.
pub fn job_status(job: &Job) -> JobStatus {
    match job.state {
        State::Completed => JobStatus::Success,
        State::Failed | State::Expired | State::Cancelled | State::Withdrawn => JobStatus::Failure,
        State::Open
        | State::Queued
        | State::Negotiating
        | State::Deferred { .. }
        | State::Assigned
        | State::Running
        | State::InputRequired { .. } => JobStatus::Pending,
    }
}

/// The result body of a job.
pub fn result_body<'a>(world: &World, job: &'a Job) -> ResultBody<'a> {
    let status = job_status(job);
    let report = job.result.as_ref();
    let worker = job.worker().and_then(|id| world.alias_of(id, ID)).map(str::to_owned);
    let cause = report.and_then(|report| report.cause);
    let text = report.and_then(|report| report.text.as_deref());
    let failed = status == JobStatus::Failure;
    ResultBody {
        job_id: &job.request.foreign_id,
        agent_id: worker,
        status: status.as_str(),
        output_data: report.and_then(|r| r.output.as_deref()).map(raw_json::verbatim),
        execution_cost: format_amount(report.map_or(Credits::ZERO, |report| report.paid)),
        execution_time_ms: report.map_or(0, |report| report.duration.0),
        error_message: failed.then(|| text.unwrap_or("the agent gave no error message")),
        error_code: cause.and_then(code_of_cause),
        timestamp_utc: rfc3339::format_seconds(job.ended_at.unwrap_or(job.request.opened_at)),
        warnings: read_warnings(world, job),
        question: QuestionView::of(job, rfc3339::format_seconds),
    }
}

/// A job as its worker gets it: the requester's own text except for the callback URL.
#[derive(Serialize, JsonSchema)]
pub struct ForwardedJob {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    pub input_data: Box<RawValue>,
    pub budget: Number,
    pub currency: &'static str,
    pub callback_url: String,
    pub timestamp_utc: String,
    #[serde(flatten)]
    pub more: BTreeMap<String, Box<RawValue>>,
}

pub fn forward_job(context: &RegistryContext, world: &World, job: &Job) -> ForwardedJob {
    let native = job.request.origin == ID;
    let agreed = job.assignment.map_or(job.payment.budget, |turn| turn.price);
    // What another protocol stores there is not for this one's agents, except members that protocol
    // does not define itself (B11).
    let rest: PassthroughMembers = if native {
        serde_json::from_str(&job.request.meta).unwrap_or_default()
    } else {
        let mut more = meta_member(fidelity::extras(job));
        let bridge = raw_json::verbatim(&bridge::bridge_of_requester(world, job));
        more.insert(bridge::MEMBER.to_owned(), bridge);
        PassthroughMembers { timestamp_utc: None, more }
    };
    ForwardedJob {
        // A requester of another protocol keeps its own id; the worker sees the hub's.
        job_id: if native { job.request.foreign_id.clone() } else { job.uuid.to_string() },
        orchestrator_id: requester_name(world, job, ID),
        skill_name: skill_name(world, job),
        input_data: raw_json::verbatim(&job.request.input),
        budget: format_amount(if native { job.payment.budget } else { agreed }),
        currency: CURRENCY,
        callback_url: format!(
            "{}/registry/callbacks/{}",
            context.hub_url,
            callback_token(context.engine.hub_secret(), job)
        ),
        timestamp_utc: rest
            .timestamp_utc
            .unwrap_or_else(|| rfc3339::format_seconds(job.request.opened_at)),
        more: rest.more,
    }
}

/// Members that this protocol has no field for, under `meta`.
pub fn meta_member(extras: Option<String>) -> BTreeMap<String, Box<RawValue>> {
    extras.map(|extras| ("meta".to_owned(), raw_json::verbatim(&extras))).into_iter().collect()
}
