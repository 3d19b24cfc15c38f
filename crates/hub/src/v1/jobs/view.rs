//! JSON views of a job; each viewer sees only what it may see.

use rialto_core::job::{Cause, Job, JobResult, Requester, Selection, State};
pub use rialto_protocols::adapter::fidelity::{StateName, state_name};
use rialto_protocols::adapter::question_view::QuestionView;
use rialto_protocols::kit::api_doc::{Nullable, Time};
use rialto_protocols::kit::raw_json::Number;
use rialto_protocols::kit::{raw_json, rfc3339};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::offers::{self, BriefOffer};
use super::progress::{PartView, ProgressView};
use super::questions::{AskedQuestion, asked_questions};
use crate::v1::response::{format_amount, format_time};

/// Who views the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Viewer {
    Requester,
    Worker,
    Operator,
}

/// The fields of a job.
#[derive(Serialize, JsonSchema)]
pub struct JobView {
    id: Uuid,
    protocol: String,
    /// The requester's own id for it.
    foreign_id: String,
    skill: String,
    #[schemars(with = "StateName")]
    state: &'static str,
    /// The requesting agent; `null` for a guest.
    requester: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    guest: Option<String>,
    worker: Option<u64>,
    /// The agent that was named, while the job waits for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    waits_for: Option<u64>,
    epoch: u32,
    /// Agreed at assignment; `null` while the worker may still make an offer.
    price: Option<Number>,
    /// The worker lists no price and makes an offer, within the budget, before it begins.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    by_offer: bool,
    #[serde(flatten)]
    budget_view: Option<BudgetView>,
    paid: Option<Number>,
    #[schemars(with = "Option<CauseName>")]
    cause: Option<&'static str>,
    opened_at: Time,
    assigned_at: Option<Time>,
    /// If the worker is silent beyond this time, the assignment fails.
    lease_until: Option<Time>,
    deadline: Time,
    ended_at: Option<Time>,
    #[serde(flatten)]
    content: Option<JobContent>,
}

/// Hidden from the worker: it gets its price, whatever the budget is.
#[derive(Serialize, JsonSchema)]
pub struct BudgetView {
    budget: Number,
    held: Number,
}

/// Visible to the parties only.
#[derive(Serialize, JsonSchema)]
pub struct JobContent {
    input: Box<RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    progress: Option<ProgressView>,
    /// The newest parts of the result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartView>,
    /// The open question.
    #[serde(skip_serializing_if = "Option::is_none")]
    question: Option<QuestionView>,
    /// The questions so far.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<AskedQuestion>,
    #[schemars(with = "Nullable<ResultView>")]
    result: Option<ResultView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    callback: Option<String>,
    /// The offers, for the requester.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    offers: Vec<BriefOffer>,
}

#[derive(Serialize, JsonSchema)]
pub struct ResultView {
    ok: bool,
    output: Option<Box<RawValue>>,
    text: Option<String>,
    took_ms: i64,
}

impl JobView {
    /// Everything but input, result and callback.
    pub fn summary(job: &Job, eyes: Viewer) -> Self {
        let (requester, guest) = match &job.request.requester {
            Requester::Agent(id) => (Some(id.0), None),
            Requester::Guest(name) => (None, Some(name.clone())),
        };
        let account = || BudgetView {
            budget: format_amount(job.payment.budget),
            held: format_amount(job.payment.held),
        };
        Self {
            id: job.uuid,
            protocol: job.request.origin.to_string(),
            foreign_id: job.request.foreign_id.clone(),
            skill: job.request.skill.clone(),
            state: state_name(job.state),
            requester,
            guest,
            worker: job.worker().map(|id| id.0),
            waits_for: match (job.state, &job.selection) {
                (State::Queued, Selection::Direct(agent)) => Some(agent.0),
                _ => None,
            },
            epoch: job.epoch,
            price: job
                .assignment
                .filter(|turn| !turn.price_open)
                .map(|turn| format_amount(turn.price)),
            by_offer: job.assignment.is_some_and(|turn| turn.price_open),
            budget_view: (eyes != Viewer::Worker).then(account),
            paid: job.result.as_ref().map(|report| format_amount(report.paid)),
            cause: job.result.as_ref().and_then(|report| report.cause).map(cause_name),
            opened_at: format_time(job.request.opened_at),
            assigned_at: job.assignment.map(|turn| format_time(turn.since)),
            lease_until: job
                .active_worker()
                .and(job.assignment)
                .map(|turn| format_time(turn.until)),
            deadline: format_time(job.request.deadline),
            ended_at: job.ended_at.map(format_time),
            content: None,
        }
    }

    /// Everything, for a party. Only the requester sees the callback.
    pub fn full(job: &Job, eyes: Viewer) -> Self {
        let content = JobContent {
            input: raw_json::verbatim(&job.request.input),
            progress: ProgressView::of(job),
            parts: Vec::new(),
            question: QuestionView::of(job, rfc3339::format_millis),
            questions: asked_questions(job, eyes),
            result: job.result.as_ref().map(ResultView::of),
            callback: job.request.callback.clone().filter(|_| eyes == Viewer::Requester),
            offers: match job.request.requester {
                Requester::Agent(by) if eyes == Viewer::Requester => offers::brief_offers(job, by),
                _ => Vec::new(),
            },
        };
        Self {
            content: Some(content).filter(|_| eyes != Viewer::Operator),
            ..Self::summary(job, eyes)
        }
    }
}

impl JobView {
    /// The same with parts of the result, which are stored apart from the job.
    pub fn with_parts(mut self, parts: Vec<PartView>) -> Self {
        if let Some(content) = &mut self.content {
            content.parts = parts;
        }
        self
    }
}

impl ResultView {
    fn of(report: &JobResult) -> Self {
        Self {
            ok: report.ok,
            output: report.output.as_deref().map(raw_json::verbatim),
            text: report.text.clone(),
            took_ms: report.duration.0,
        }
    }
}

rialto_protocols::words! {
    /// Why a job ended without success.
    CauseName: "no_such_skill" | "budget_too_low" | "offline" | "execution" | "payment" | "unusable"
        | "timed_out" | "worker_left" | "cancelled" | "policy" | "nobody_left" | "no_fair_time"
        | "no_answer" | "input_misfit" | "unknown_fate"
}

/// The public name of a cause.
pub fn cause_name(cause: Cause) -> &'static str {
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
        Cause::NoWorkerLeft => "nobody_left",
        Cause::WithinGracePeriod => "no_fair_time",
        Cause::NoAnswer => "no_answer",
        Cause::InputMisfit => "input_misfit",
        Cause::UnknownFate => "unknown_fate",
    }
}
