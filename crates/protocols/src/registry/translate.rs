//! Translates this protocol's requests to commands.

use rialto_core::agent::key::KeyHash;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::command::{
    Actor, Command, JobRef, OpenJob, Pay, Registration, ReportResult, UnfitAgent,
};
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Policy, Selection};
use rialto_core::money::Credits;
use rialto_core::price_step::PriceStep;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::errors::cause_of_code;
use super::job::{JobOrder, WorkerChoice};
use super::shape;
use super::wire::{JobPost, JobStatus, RegisterBody, ResultPost, SkillOffer, TransferPost};
use super::{ID, Settings};

/// An unfinished job expires after this time, whatever its workers do.
pub const JOB_LIFETIME: Millis = Millis::hours(24);

/// Amounts here have two decimals.
const PRICE_STEP: PriceStep = PriceStep { decimals: 2, minimum: Credits::ZERO };

pub fn register_agent(
    wire: RegisterBody,
    native: Uuid,
    actor: Actor,
    aliases: Vec<(rialto_core::alias::Protocol, String)>,
    key: KeyHash,
) -> Command {
    let card = serde_json::json!({
        "version": wire.version,
        "timestamp_utc": wire.timestamp_utc.map(crate::kit::rfc3339::format_seconds),
    });
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

/// Ids that only the hub can generate.
#[derive(Clone, Copy, Debug)]
pub struct GeneratedIds {
    pub uuid: Uuid,
    pub job_id: Uuid,
}

pub fn open_job(
    order: JobOrder,
    fresh: GeneratedIds,
    unfit: Vec<UnfitAgent>,
    settings: &Settings,
    now: Timestamp,
) -> Command {
    let JobOrder { request: wire, requester, worker, preferences: wishes } = order;
    let by_hub = worker.is_none() && wishes.choice != WorkerChoice::Offers;
    let choice = match wishes.choice {
        WorkerChoice::Best => Selection::BestReputation,
        WorkerChoice::Cheapest => Selection::Cheapest,
        WorkerChoice::Offers => Selection::Offers,
    };
    Command::OpenJob(Box::new(OpenJob {
        uuid: fresh.uuid,
        origin: ID,
        foreign_id: wire.job_id.unwrap_or(fresh.job_id).to_string(),
        content: content(&wire, worker),
        requester,
        skill: wire.skill_name,
        alternative_skills: Vec::new(),
        input: wire.input_data,
        budget: wire.budget,
        price_step: PRICE_STEP,
        unfit_agents: unfit,
        selection: worker.map_or(choice, Selection::Direct),
        policy: Policy {
            next_when_unreachable: by_hub,
            next_when_declined: by_hub,
            next_when_failed: false,
            queue_unmatched: false,
            requester_waits: wishes.requester_waits,
            ..Policy::default()
        },
        deadline: wishes.deadline.unwrap_or(now.plus(JOB_LIFETIME)),
        lease: settings.lease,
        wanted_by: None,
        priority: rialto_core::job::DEFAULT_PRIORITY,
        callback: wire.callback_url,
        input_error: None,
        meta: serde_json::to_string(&wire.passthrough).unwrap_or_default(),
        hops: 0,
        request_id: None,
    }))
}

/// The digest of the request and its worker: a worker named in the path counts like one in the
/// body.
fn content(wire: &JobPost, worker: Option<AgentId>) -> rialto_core::alias::Digest {
    let worker = worker.map_or(0, |worker| worker.0).to_be_bytes();
    rialto_core::alias::Digest::of(&[&wire.content.0, &worker])
}

/// A worker's result of a job, whichever way it came.
pub fn report_result(wire: ResultPost, job: JobRef, by: AgentId) -> Command {
    if wire.status == JobStatus::Pending {
        return Command::Start { job, by };
    }
    let ok = wire.status == JobStatus::Success;
    let silent = "the agent reported a failure";
    let warned = !wire.warnings.is_empty();
    Command::ReportResult(Box::new(ReportResult {
        job,
        by,
        epoch: None,
        ok,
        no_response: false,
        output: wire.output_data,
        // A worker that names no cost wants its price, which caps the payment anyway.
        cost: wire.execution_cost.unwrap_or(Credits::MAX),
        took: Millis(wire.execution_time_ms),
        cause: (!ok).then(|| cause_of_code(wire.error_code.as_deref())),
        text: (!ok).then(|| wire.error_message.unwrap_or_else(|| silent.to_owned())),
        meta: warned.then(|| shape::write_warnings(&wire.warnings)),
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
pub fn report_unusable_answer(job: JobRef, by: AgentId, answer: UnusableAnswer) -> Command {
    let UnusableAnswer { silent, why } = answer;
    Command::ReportResult(Box::new(ReportResult {
        job,
        by,
        epoch: None,
        ok: false,
        no_response: silent,
        output: None,
        cost: Credits::ZERO,
        took: Millis(0),
        cause: Some(Cause::Unusable),
        meta: None,
        content: rialto_core::alias::Digest::of(&[b"unusable", why.as_bytes()]),
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
