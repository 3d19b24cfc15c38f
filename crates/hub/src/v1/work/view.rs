//! A job as its worker sees it.

use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_protocols::adapter::api_protocol;
use rialto_protocols::adapter::open_job::{requester_name, skill_name};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::v1::jobs::questions::{AskedQuestion, asked_questions};
use crate::v1::jobs::view::Viewer;
use crate::v1::response::{format_amount, format_time};

/// What a worker needs to do a job and to report its result.
#[derive(Serialize, JsonSchema)]
pub struct WorkView {
    id: Uuid,
    /// The epoch of this assignment; a report that includes it never counts for another assignment.
    epoch: u32,
    /// The skill by the worker's own name for it.
    skill: String,
    input: Box<RawValue>,
    requester: String,
    /// The protocol of the request.
    protocol: String,
    /// For workers of that protocol the budget; for others the agreed price.
    budget: Number,
    price: Number,
    /// When the result must be reported.
    deadline: Time,
    lease_until: Time,
    opened_at: Time,
    /// This worker's questions and their answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    questions: Vec<AskedQuestion>,
    /// What the requester sent after the request, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<Box<RawValue>>,
}

impl WorkView {
    /// `None` for a job without a worker.
    pub fn of(world: &World, job: &Job) -> Option<Self> {
        let turn = job.assignment?;
        let at_home =
            world.agent(turn.worker).is_some_and(|worker| worker.home == job.request.origin);
        Some(Self {
            id: job.uuid,
            epoch: job.epoch,
            skill: skill_name(world, job),
            input: raw_json::verbatim(&job.request.input),
            requester: requester_name(world, job, api_protocol().id()),
            protocol: job.request.origin.to_string(),
            budget: format_amount(if at_home { job.payment.budget } else { turn.price }),
            price: format_amount(turn.price),
            deadline: format_time(turn.until.min(job.request.deadline)),
            lease_until: format_time(turn.until),
            opened_at: format_time(job.request.opened_at),
            questions: asked_questions(job, Viewer::Worker),
            messages: job.messages.iter().map(|sent| raw_json::verbatim(&sent.input)).collect(),
        })
    }
}

/// The requester's answer to a question of this worker.
#[derive(Serialize, JsonSchema)]
pub struct AnswerView {
    kind: &'static str,
    job_id: Uuid,
    epoch: u32,
    question: u32,
    /// The answer, unless it is only a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

impl AnswerView {
    /// The answers in a job after a question.
    pub fn after(job: &Job, question: u32) -> impl Iterator<Item = Self> {
        let later = job.current_questions().filter(move |(number, _)| *number > question);
        later.filter_map(|(question, asked)| {
            let answer = asked.answer.as_deref()?;
            let text = text_alone(answer);
            let input = text.is_none().then(|| raw_json::verbatim(answer));
            let (kind, job_id, epoch) = ("answer", job.uuid, job.epoch);
            Some(Self { kind, job_id, epoch, question, input, text })
        })
    }
}

/// The text of `{"text":…}`.
fn text_alone(answer: &str) -> Option<String> {
    #[derive(serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Text {
        text: String,
    }
    serde_json::from_str::<Text>(answer).ok().map(|answer| answer.text)
}
