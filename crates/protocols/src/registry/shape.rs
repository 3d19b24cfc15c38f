//! Response bodies: results, discovery entries, forwarded jobs, transfers.

use std::borrow::Cow;
use std::collections::BTreeMap;

use axum::response::Response;
use rialto_core::agent::{Agent, AgentState, Liveness, Skill};
use rialto_core::job::{Cause, Job, State};
use rialto_core::ledger::Transfer;
use rialto_core::money::Credits;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::errors::{self, code_of_cause};
use super::wire::{CURRENCY, DECIMALS, JobStatus, PassthroughMembers};
use super::{ID, lent, token};
use crate::adapter::{HubContext, bridge, fidelity};
use crate::kit::{raw_json, rfc3339};

/// An amount with two decimals; finer ones are rounded down, as balances are.
pub fn format_amount(amount: Credits) -> Box<RawValue> {
    raw_json::amount(amount.floor(DECIMALS), DECIMALS)
}

/// A price in this protocol's price step: rounded up, so that no worker gets less than it asked
/// for.
pub fn round_price_up(amount: Credits) -> Credits {
    amount.ceil(DECIMALS).unwrap_or(amount)
}

/// A job's result, or that there is none yet.
#[derive(Serialize)]
pub struct ResultBody<'a> {
    job_id: &'a str,
    agent_id: Option<String>,
    status: &'static str,
    output_data: Option<Box<RawValue>>,
    execution_cost: Box<RawValue>,
    execution_time_ms: i64,
    error_message: Option<&'a str>,
    error_code: Option<&'static str>,
    timestamp_utc: String,
    /// The worker's figures that could not be used, and what is used instead.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The stored warnings about figures that could not be used.
#[derive(Serialize, Deserialize)]
struct StoredWarnings<'a> {
    warnings: Cow<'a, [String]>,
}

/// The same as JSON text.
pub fn write_warnings(warnings: &[String]) -> String {
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
        | State::Running => JobStatus::Pending,
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
        job_id: &job.foreign_id,
        agent_id: worker,
        status: status.as_str(),
        output_data: report.and_then(|r| r.output.as_deref()).map(raw_json::verbatim),
        execution_cost: format_amount(report.map_or(Credits::ZERO, |report| report.paid)),
        execution_time_ms: report.map_or(0, |report| report.duration.0),
        error_message: failed.then(|| text.unwrap_or("the agent gave no error message")),
        error_code: cause.and_then(code_of_cause),
        timestamp_utc: rfc3339::format_seconds(job.ended_at.unwrap_or(job.opened_at)),
        warnings: read_warnings(world, job),
    }
}

/// The HTTP status of a job's answer.
pub fn result_status(job: &Job) -> u16 {
    match job_status(job) {
        JobStatus::Pending => 202,
        JobStatus::Success => 200,
        // Only a result that the worker sent itself is an ordinary answer.
        JobStatus::Failure => match job.result.as_ref().and_then(|report| report.cause) {
            Some(Cause::Unusable) => 502,
            _ => 200,
        },
    }
}

/// The response to the requester of a job.
pub fn job_response(context: &HubContext, job: &Job, status: u16) -> Response {
    let mut answer =
        context.engine.with_world(|world| errors::json_response(status, &result_body(world, job)));
    if let Ok(id) = job.uuid.to_string().parse() {
        answer.headers_mut().insert("rialto-job", id);
    }
    answer
}

/// A job as its worker gets it: the requester's own text except for the callback URL.
#[derive(Serialize)]
pub struct ForwardedJob {
    pub job_id: String,
    pub orchestrator_id: String,
    pub skill_name: String,
    pub input_data: Box<RawValue>,
    pub budget: Box<RawValue>,
    pub currency: &'static str,
    pub callback_url: String,
    pub timestamp_utc: String,
    #[serde(flatten)]
    pub more: BTreeMap<String, Box<RawValue>>,
}

pub fn forward_job(context: &HubContext, world: &World, job: &Job) -> ForwardedJob {
    let native = job.origin == ID;
    let agreed = job.assignment.map_or(job.budget, |turn| turn.price);
    // What another protocol stores there is not for this one's agents, except members that protocol
    // does not define itself (B11).
    let rest: PassthroughMembers = match native {
        true => serde_json::from_str(&job.meta).unwrap_or_default(),
        false => {
            let mut more = meta_member(fidelity::extras(job));
            let bridge = raw_json::verbatim(&bridge::bridge_of_requester(world, job));
            more.insert(bridge::MEMBER.to_owned(), bridge);
            PassthroughMembers { timestamp_utc: None, more }
        }
    };
    ForwardedJob {
        // A requester of another protocol keeps its own id; the worker sees the hub's.
        job_id: if native { job.foreign_id.clone() } else { job.uuid.to_string() },
        orchestrator_id: lent::requester_name(world, job),
        skill_name: skill_name(world, job),
        input_data: raw_json::verbatim(&job.input),
        budget: format_amount(if native { job.budget } else { agreed }),
        currency: CURRENCY,
        callback_url: format!(
            "{}/registry/callbacks/{}",
            context.hub_url,
            token::callback_token(context.engine.hub_secret(), job)
        ),
        timestamp_utc: rest.timestamp_utc.unwrap_or_else(|| rfc3339::format_seconds(job.opened_at)),
        more: rest.more,
    }
}

/// Members that this protocol has no field for, under `meta`.
pub fn meta_member(extras: Option<String>) -> BTreeMap<String, Box<RawValue>> {
    extras.map(|extras| ("meta".to_owned(), raw_json::verbatim(&extras))).into_iter().collect()
}

/// The worker's name for the requested skill.
pub fn skill_name(world: &World, job: &Job) -> String {
    let worker = job.worker().and_then(|worker| world.agent(worker));
    let skill = worker.and_then(|worker| worker.skill_for(job));
    skill.map_or_else(|| job.skill.clone(), |skill| skill.name.clone())
}

/// An agent as discovery shows it.
#[derive(Serialize)]
pub struct AgentEntry {
    agent_id: String,
    agent_name: String,
    api_endpoint: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    skill: Option<MatchedSkill>,
    reputation_score: Box<RawValue>,
    status: &'static str,
    owner_id: String,
    skills: Vec<SkillEntry>,
    hub_endpoint: String,
    protocol: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    native_id: Option<String>,
    jobs_settled: u64,
    registered_at: String,
    last_heartbeat: String,
}

/// The skill that was asked for.
#[derive(Serialize)]
struct MatchedSkill {
    skill_name: String,
    cost_per_call: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<&'static str>,
}

#[derive(Serialize)]
struct SkillEntry {
    skill_name: String,
    description: String,
    cost_per_call: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    price: Option<&'static str>,
    input_schema: Box<RawValue>,
    output_schema: Box<RawValue>,
}

/// One discovery entry; with `asked`, the matching skill.
pub fn agent_entry(
    context: &HubContext,
    world: &World,
    (agent, agent_state): (&Agent, &AgentState),
    asked: Option<&str>,
    now: Timestamp,
) -> AgentEntry {
    let id = world.alias_of(agent.id, ID).unwrap_or_default().to_owned();
    let hub_endpoint = format!("{}/registry/agents/{id}", context.hub_url);
    let own = agent.endpoint.clone().filter(|_| {
        agent.home == ID
            && agent.liveness == Liveness::ByEndpoint
            && !context.settings.registry.hide_endpoints
    });
    let owner = world.owner(agent.owner).map(|owner| owner.name.clone()).unwrap_or_default();
    let skill = asked.and_then(|name| agent.skill(name)).map(|skill| MatchedSkill {
        skill_name: skill.name.clone(),
        cost_per_call: format_amount(round_price_up(skill.price)),
        price: by_offer(skill),
    });
    let offered = agent.skills_for_other_protocols().map(|skill| SkillEntry {
        skill_name: skill.name.clone(),
        description: skill.description.clone(),
        cost_per_call: format_amount(round_price_up(skill.price)),
        price: by_offer(skill),
        input_schema: raw_json::verbatim(&skill.input),
        output_schema: raw_json::verbatim(&skill.output),
    });
    AgentEntry {
        agent_id: id,
        agent_name: agent.name.clone(),
        api_endpoint: own.unwrap_or_else(|| hub_endpoint.clone()),
        skill,
        reputation_score: raw_json::score(agent_state.standing.score.millionths()),
        status: if world.is_online(agent.id, now) { "online" } else { "offline" },
        owner_id: owner,
        skills: offered.collect(),
        hub_endpoint,
        protocol: agent.home.to_string(),
        native_id: (agent.home != ID).then(|| agent.native_id.clone()),
        jobs_settled: agent_state.standing.settled_jobs(),
        registered_at: rfc3339::format_seconds(agent.registered_at),
        // An agent that sent nothing since it registered was last active then.
        last_heartbeat: rfc3339::format_seconds(
            agent_state.presence.last_heartbeat.unwrap_or(agent.registered_at),
        ),
    }
}

/// Marks skills whose price is offered for each job (B9).
fn by_offer(skill: &Skill) -> Option<&'static str> {
    skill.by_offer.then_some("by_offer")
}

/// A payment, as this protocol lists it.
#[derive(Serialize)]
pub struct TransferBody {
    transfer_id: String,
    from_owner: String,
    to_owner: String,
    amount: Box<RawValue>,
    job_id: Option<String>,
    timestamp_utc: String,
}

impl TransferBody {
    pub fn of(world: &World, transfer: &Transfer) -> Self {
        Self {
            transfer_id: transfer.foreign_id.clone(),
            from_owner: owner_name(world, transfer.from),
            to_owner: owner_name(world, transfer.to),
            amount: format_amount(transfer.amount),
            job_id: transfer.job.clone(),
            timestamp_utc: rfc3339::format_seconds(transfer.at),
        }
    }

    /// A job's payment by its hold, which was not ordered as a transfer.
    pub fn of_entry(
        world: &World,
        entry: &rialto_core::ledger::Entry,
        job_id: Option<String>,
    ) -> Self {
        let digest =
            rialto_core::alias::Digest::of(&[b"registry entry", &entry.id.0.to_be_bytes()]);
        let id = uuid::Builder::from_random_bytes(digest.0).into_uuid();
        Self {
            transfer_id: id.to_string(),
            from_owner: owner_name(world, entry.from.owner),
            to_owner: owner_name(world, entry.to.owner),
            amount: format_amount(entry.amount),
            job_id,
            timestamp_utc: rfc3339::format_seconds(entry.at),
        }
    }
}

fn owner_name(world: &World, id: rialto_core::id::OwnerId) -> String {
    world.owner(id).map(|owner| owner.name.clone()).unwrap_or_default()
}
