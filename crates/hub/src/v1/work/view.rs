//! A job as its worker sees it.

use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_protocols::adapter::open_job::{requester_name, skill_name};
use rialto_protocols::adapter::{api_protocol, fidelity};
use rialto_protocols::kit::api_doc::Time;
use rialto_protocols::kit::raw_json;
use rialto_protocols::kit::raw_json::Number;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::v1::jobs::questions::{AskedQuestion, answer_meta, asked_questions};
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
    /// What the requester sent after the request, in order, apart from answers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageView>,
    /// Members of the request that the requester's protocol does not define.
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
    /// The requester follows the job step by step: it is told when the worker reports that it starts.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    followed: bool,
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
            messages: MessageView::after(job, 0).collect(),
            meta: fidelity::extras(job).as_deref().map(raw_json::verbatim),
            followed: job.policy.requester.follows_log,
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
    #[serde(flatten)]
    content: ContentView,
    /// The worker must report again by then.
    lease_until: Option<Time>,
}

/// A later message of the requester that answers no question.
#[derive(Serialize, JsonSchema)]
pub struct MessageView {
    kind: &'static str,
    job_id: Uuid,
    epoch: u32,
    message: u32,
    #[serde(flatten)]
    content: ContentView,
}

/// What a requester sent after the request.
#[derive(Serialize, JsonSchema)]
pub struct ContentView {
    /// The content, unless it is only a text.
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    /// Members that the requester's protocol does not define.
    #[serde(skip_serializing_if = "Option::is_none")]
    meta: Option<Box<RawValue>>,
}

impl ContentView {
    fn of(input: &str, meta: Option<String>) -> Self {
        let text = text_alone(input);
        let input = text.is_none().then(|| raw_json::verbatim(input));
        Self { input, text, meta: meta.as_deref().map(raw_json::verbatim) }
    }

    fn bytes(&self) -> usize {
        let length =
            |json: &Option<Box<RawValue>>| json.as_ref().map_or(0, |json| json.get().len());
        length(&self.input) + length(&self.meta) + self.text.as_ref().map_or(0, String::len)
    }
}

impl AnswerView {
    /// The answers in a job after a question.
    pub fn after(job: &Job, question: u32) -> impl Iterator<Item = Self> {
        let later = job.current_questions().filter(move |(number, _)| *number > question);
        later.filter_map(|(question, asked)| {
            Some(Self {
                kind: "answer",
                job_id: job.uuid,
                epoch: job.epoch,
                question,
                content: ContentView::of(asked.answer.as_deref()?, answer_meta(job, question)),
                lease_until: job.assignment.map(|turn| format_time(turn.until)),
            })
        })
    }

    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        self.content.bytes()
    }
}

impl MessageView {
    /// The messages in a job after one of them.
    pub fn after(job: &Job, message: u32) -> impl Iterator<Item = Self> {
        let later = job.plain_messages().filter(move |(number, _)| *number > message);
        later.map(|(message, sent)| Self {
            kind: "message",
            job_id: job.uuid,
            epoch: job.epoch,
            message,
            content: ContentView::of(&sent.input, fidelity::extras_of_message(job, sent)),
        })
    }

    /// The size of its content.
    pub fn content_bytes(&self) -> usize {
        self.content.bytes()
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
