//! Translates this protocol's requests to commands.

use rialto_core::agent::key::KeyHash;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::command::{Actor, Command, Enrol, JobRef, OpenJob, Pay, ReportWork, Unfit};
use rialto_core::price_step::Grain;
use rialto_core::id::AgentId;
use rialto_core::job::{Cause, Policy, Selection};
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::codes::to_cause;
use super::opening::{Choice, Order};
use super::shape;
use super::wire::{JobPost, Register, ResultPost, SkillOffer, Status, TransferPost};
use super::{ID, Settings};

/// An unfinished job expires after this time, whatever its workers do.
pub const JOB_LIFE: Millis = Millis::hours(24);

/// Amounts here have two decimals.
const GRAIN: Grain = Grain { decimals: 2, least: Credits::ZERO };

pub fn enrol(
    wire: Register,
    native: Uuid,
    actor: Actor,
    aliases: Vec<(rialto_core::alias::Protocol, String)>,
    key: KeyHash,
) -> Command {
    let card = serde_json::json!({
        "version": wire.version,
        "timestamp_utc": wire.timestamp_utc.map(crate::kit::rfc3339::seconds),
    });
    let reached = wire.api_endpoint.as_deref().is_some_and(is_callable);
    Command::Enrol(Box::new(Enrol {
        actor,
        home: ID,
        native: native.to_string(),
        aliases,
        owner: wire.owner_id,
        name: wire.agent_name,
        liveness: if reached { Liveness::Reached } else { Liveness::Polls },
        endpoint: wire.api_endpoint,
        skills: wire.skills.into_iter().map(skill).collect(),
        terms: Default::default(),
        condition: None,
        card: card.to_string(),
        key: Some(key),
        rotate: wire.rotate_key,
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
        takes: None,
        approval: false,
        sort: None,
        stands_for: None,
        about: offer.description,
        input: offer.input_schema,
        output: offer.output_schema,
    }
}

/// Ids that only the hub can generate.
#[derive(Clone, Copy, Debug)]
pub struct Fresh {
    pub uuid: Uuid,
    pub job_id: Uuid,
}

pub fn open_job(
    order: Order,
    fresh: Fresh,
    unfit: Vec<Unfit>,
    settings: &Settings,
    now: Timestamp,
) -> Command {
    let Order { wire, requester, worker, wishes } = order;
    let by_hub = worker.is_none() && wishes.choice != Choice::Offers;
    let choice = match wishes.choice {
        Choice::Best => Selection::BestReputation,
        Choice::Cheapest => Selection::Cheapest,
        Choice::Offers => Selection::Offers,
    };
    Command::OpenJob(Box::new(OpenJob {
        uuid: fresh.uuid,
        origin: ID,
        foreign: wire.job_id.unwrap_or(fresh.job_id).to_string(),
        content: content(&wire, worker),
        requester,
        skill: wire.skill_name,
        also: Vec::new(),
        input: wire.input_data,
        budget: wire.budget,
        grain: GRAIN,
        unfit,
        selection: worker.map_or(choice, Selection::Direct),
        policy: Policy {
            next_when_unreachable: by_hub,
            next_when_declined: by_hub,
            next_when_failed: false,
            queue_unmatched: false,
            requester_waits: wishes.waits,
            ..Policy::default()
        },
        deadline: wishes.deadline.unwrap_or(now.plus(JOB_LIFE)),
        lease: settings.lease,
        promised: None,
        priority: rialto_core::job::PRIORITY,
        callback: wire.callback_url,
        flaw: None,
        meta: serde_json::to_string(&wire.rest).unwrap_or_default(),
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
pub fn report(wire: ResultPost, job: JobRef, by: AgentId) -> Command {
    if wire.status == Status::Pending {
        return Command::Start { job, by };
    }
    let ok = wire.status == Status::Success;
    let silent = "the agent reported a failure";
    let warned = !wire.warnings.is_empty();
    Command::Report(Box::new(ReportWork {
        job,
        by,
        epoch: None,
        ok,
        silent: false,
        output: wire.output_data,
        // A worker that names no cost wants its price, which caps the payment anyway.
        cost: wire.execution_cost.unwrap_or(Credits::MAX),
        took: Millis(wire.execution_time_ms),
        cause: (!ok).then(|| to_cause(wire.error_code.as_deref())),
        text: (!ok).then(|| wire.error_message.unwrap_or_else(|| silent.to_owned())),
        words: warned.then(|| shape::warnings_text(&wire.warnings)),
        content: wire.content,
    }))
}

/// An answer without a result.
pub struct Unusable {
    /// The answer says nothing about the work: the request was refused, or the connection broke.
    pub silent: bool,
    pub why: String,
}

/// An answer without a result: the job failed. It counts against the worker only if the answer is
/// about the work.
pub fn unusable(job: JobRef, by: AgentId, answer: Unusable) -> Command {
    let Unusable { silent, why } = answer;
    Command::Report(Box::new(ReportWork {
        job,
        by,
        epoch: None,
        ok: false,
        silent,
        output: None,
        cost: Credits::ZERO,
        took: Millis(0),
        cause: Some(Cause::Unusable),
        words: None,
        content: rialto_core::alias::Digest::of(&[b"unusable", why.as_bytes()]),
        text: Some(why),
    }))
}

pub fn pay(wire: TransferPost, fresh: Uuid, open_payee: bool) -> Command {
    Command::Pay(Box::new(Pay {
        origin: ID,
        named: wire.transfer_id.is_some(),
        foreign: wire.transfer_id.unwrap_or(fresh).to_string(),
        from: wire.from_owner,
        to: wire.to_owner,
        amount: wire.amount,
        job: wire.job_id.map(|id| id.to_string()),
        open_payee,
        content: wire.content,
    }))
}
