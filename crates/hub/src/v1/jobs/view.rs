//! JSON views of a job; each viewer sees only what it may see.

use rialto_core::job::{Cause, Job, Report, Requester};
pub use rialto_protocols::adapter::fidelity::state;
use rialto_protocols::kit::raw_json;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::offers::{self, BriefOffer};
use crate::v1::response::{money, time};

/// Who views the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eyes {
    Requester,
    Worker,
    Operator,
}

/// The fields of a job.
#[derive(Serialize)]
pub struct JobView {
    id: Uuid,
    protocol: String,
    /// The requester's own id for it.
    foreign_id: String,
    skill: String,
    state: &'static str,
    /// The requesting agent; `null` for a guest.
    requester: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
    worker: Option<u64>,
    epoch: u32,
    /// Agreed at assignment; `null` while the worker may still make an offer.
    price: Option<Box<RawValue>>,
    /// The worker lists no price and makes an offer, within the budget, before it begins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_offer: bool,
    #[serde(flatten)]
    purse: Option<Purse>,
    paid: Option<Box<RawValue>>,
    cause: Option<&'static str>,
    opened_at: String,
    assigned_at: Option<String>,
    /// If the worker is silent beyond this time, the assignment fails.
    lease_until: Option<String>,
    deadline: String,
    ended_at: Option<String>,
    #[serde(flatten)]
    content: Option<Content>,
}

/// Hidden from the worker: it gets its price, whatever the budget is.
#[derive(Serialize)]
struct Purse {
    budget: Box<RawValue>,
    held: Box<RawValue>,
}

/// Visible to the parties only.
#[derive(Serialize)]
struct Content {
    input: Box<RawValue>,
    result: Option<ResultView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<String>,
    /// The offers, for the requester.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    offers: Vec<BriefOffer>,
}

#[derive(Serialize)]
struct ResultView {
    ok: bool,
    output: Option<Box<RawValue>>,
    text: Option<String>,
    took_ms: i64,
}

impl JobView {
    /// Everything but input, result and callback.
    pub fn outline(job: &Job, eyes: Eyes) -> Self {
        let (requester, guest) = match &job.requester {
            Requester::Agent(id) => (Some(id.0), None),
            Requester::Guest(name) => (None, Some(name.clone())),
        };
        let purse = || Purse { budget: money(job.budget), held: money(job.held) };
        Self {
            id: job.uuid,
            protocol: job.origin.to_string(),
            foreign_id: job.foreign.clone(),
            skill: job.skill.clone(),
            state: state(job.state),
            requester,
            guest,
            worker: job.worker().map(|id| id.0),
            epoch: job.epoch,
            price: job.assignment.filter(|turn| !turn.price_open).map(|turn| money(turn.price)),
            by_offer: job.assignment.is_some_and(|turn| turn.price_open),
            purse: (eyes != Eyes::Worker).then(purse),
            paid: job.report.as_ref().map(|report| money(report.paid)),
            cause: job.report.as_ref().and_then(|report| report.cause).map(cause),
            opened_at: time(job.opened_at),
            assigned_at: job.assignment.map(|turn| time(turn.since)),
            lease_until: job.in_hand_of().and(job.assignment).map(|turn| time(turn.until)),
            deadline: time(job.deadline),
            ended_at: job.ended_at.map(time),
            content: None,
        }
    }

    /// Everything, for a party. Only the requester sees the callback.
    pub fn whole(job: &Job, eyes: Eyes) -> Self {
        let content = Content {
            input: raw_json::verbatim(&job.input),
            result: job.report.as_ref().map(ResultView::of),
            callback: job.callback.clone().filter(|_| eyes == Eyes::Requester),
            offers: match job.requester {
                Requester::Agent(by) if eyes == Eyes::Requester => offers::shown(job, by),
                _ => Vec::new(),
            },
        };
        Self {
            content: Some(content).filter(|_| eyes != Eyes::Operator),
            ..Self::outline(job, eyes)
        }
    }
}

impl ResultView {
    fn of(report: &Report) -> Self {
        Self {
            ok: report.ok,
            output: report.output.as_deref().map(raw_json::verbatim),
            text: report.text.clone(),
            took_ms: report.took.0,
        }
    }
}

/// The public name of a cause.
pub fn cause(cause: Cause) -> &'static str {
    match cause {
        Cause::NoSuchSkill => "no_such_skill",
        Cause::BudgetTooLow => "budget_too_low",
        Cause::Offline => "offline",
        Cause::Execution => "execution",
        Cause::Payment => "payment",
        Cause::Unusable => "unusable",
        Cause::TimedOut => "timed_out",
        Cause::WorkerLeft => "worker_left",
        Cause::Cancelled => "cancelled",
        Cause::Policy => "policy",
        Cause::NobodyLeft => "nobody_left",
        Cause::NoFairTime => "no_fair_time",
    }
}
