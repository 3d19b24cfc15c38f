//! The field map of this protocol: how a job looks to its requesters.

use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::progress::ProgressUpdate;
use rialto_core::job::{Job, Question};
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::task_log::TaskLog;
use super::translate::{self, Hire, TaskMeta, TaskView};
use super::wire::message::{Message, Part as MessagePart, Role};
use super::wire::params::SendParams;
use super::wire::{Version, content};
use super::{A2aContext, ID, extensions};
use crate::adapter::fidelity::{
    FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part, TracedJob,
    question_member,
};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// The parameters of a send.
const SEND: FieldParts = &[
    ("/message/messageId", Part::Extra),
    ("/message/contextId", Part::Conversation),
    ("/message/taskId", Part::Id),
    ("/message/role", Part::Framing),
    ("/message/parts", Part::Input),
    ("/message/extensions", Part::Framing),
    ("/message/referenceTaskIds", Part::Conversation),
    ("/message/metadata/urn:rialto:a2a:hire:v1/skill", Part::Skill),
    ("/message/metadata/urn:rialto:a2a:hire:v1/budget", Part::Budget),
    ("/message/metadata/urn:rialto:a2a:hire:v1/price", Part::Budget),
    ("/message/metadata/urn:rialto:a2a:hire:v1/deadline", Part::Deadline),
    ("/message/metadata/urn:rialto:a2a:hire:v1/queue", Part::Strategy),
    ("/message/metadata/urn:rialto:a2a:hire:v1/select", Part::Strategy),
    ("/message/metadata/urn:rialto:a2a:hire:v1/key", Part::IdempotencyKey),
    ("/message/metadata/urn:rialto:a2a:hire:v1/job", Part::Id),
    ("/message/metadata/urn:rialto:a2a:hire:v1/requester", Part::Requester),
    ("/message/metadata/urn:rialto:a2a:hire:v1/protocol", Part::Framing),
    ("/message/metadata/urn:rialto:a2a:hire:v1/hop", Part::Framing),
];

/// A task at its end.
const TASK: FieldParts = &[
    ("/id", Part::Id),
    ("/contextId", Part::Conversation),
    ("/status/state", Part::Outcome),
    ("/status/message", Part::Reason),
    ("/status/timestamp", Part::Time),
    ("/artifacts", Part::Output),
    ("/history", Part::Framing),
    ("/metadata/urn:rialto:a2a:hire:v1/skill", Part::Skill),
    ("/metadata/urn:rialto:a2a:hire:v1/worker", Part::Worker),
    ("/metadata/urn:rialto:a2a:hire:v1/protocol", Part::Framing),
    ("/metadata/urn:rialto:a2a:hire:v1/price", Part::Budget),
    ("/metadata/urn:rialto:a2a:hire:v1/deadline", Part::Deadline),
    ("/metadata/urn:rialto:a2a:hire:v1/paid", Part::Paid),
];

/// A part of a result, before its end.
const ARTIFACT: FieldParts = &[("/artifactId", Part::Framing), ("/parts", Part::PartialOutput)];

/// This protocol's field map.
pub struct A2aFieldMap;

impl JobMessages for A2aContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        let meta = TaskMeta::of(shown.job);
        let message = meta.as_ref().map_or("{}", |meta| meta.message.get());
        let body = ObjectWriter::new().raw("message", message).finish();
        MessageView::from_json(ID, body, SEND)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        job.worker()?;
        let name = self
            .engine
            .with_world(|world| crate::adapter::open_job::requester_name(world, job, ID));
        let wanted = NeutralRequest {
            skill: job.request.skill.clone(),
            input: job.request.input.clone(),
            budget: job.assignment.map(|turn| turn.price),
            deadline: Some(job.request.deadline),
            extras: None,
        };
        let message = worker_message(&wanted, &job.uuid.to_string(), &name);
        Some(MessageView::from_json(ID, message, SEND))
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let result = shown.job.result.as_ref().filter(|result| result.content.is_some())?;
        let state = if result.ok { "TASK_STATE_COMPLETED" } else { "TASK_STATE_FAILED" };
        let body = ObjectWriter::new()
            .raw("status", &ObjectWriter::new().text("state", state).finish())
            .maybe_raw("artifacts", result.output.as_deref())
            .finish();
        Some(MessageView::from_json(ID, body, TASK))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let meta = TaskMeta::of(job)?;
        let (log, view) = (TaskLog::default(), TaskView::FULL);
        let task = self.engine.with_world(|world| translate::task(world, job, &meta, &log, view));
        Some(MessageView::from_json(ID, task.write(Version::V1), TASK))
    }

    fn progress_received(&self, job: &Job, update: &ProgressUpdate) -> Option<MessageView> {
        let part = update.part.as_ref()?;
        let artifact = content::artifact_of_part(&part.content, job.progress.parts.max(1));
        Some(MessageView::from_json(ID, artifact.write(Version::V1), ARTIFACT))
    }

    fn question_received(&self, _: &Job, question: &Question) -> Option<MessageView> {
        Some(question_member(ID, question))
    }

    fn find_job<'a>(&'a self, _: AgentId, id: &'a str) -> FindJobFuture<'a> {
        let wanted = JobRef::Foreign { origin: ID, id: id.to_lowercase() };
        Box::pin(async move { self.engine.find_job(&wanted).await })
    }
}

impl FieldMap for A2aFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        let meta = TaskMeta::of(job)?;
        let message = translate::read_message(meta.message.get())?;
        let strangers = message.metadata.as_deref().and_then(|metadata| {
            let json = ijson::read(metadata.as_bytes()).ok()?;
            let rest = ObjectWriter::copy_without(&json, &[extensions::HIRE]).finish();
            (rest != "{}").then_some(rest)
        });
        let extras = ObjectWriter::new()
            .text("messageId", &message.message_id)
            .maybe_raw("metadata", strangers.as_deref());
        Some(extras.finish())
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let json = ijson::read(bytes).map_err(|bad| bad.to_string())?;
        // Either the parameters alone or the whole JSON-RPC request.
        let params = json.get("params").unwrap_or(&json);
        let read = SendParams::read(params, Version::V1);
        let read = read.map_err(|wrong| super::wire::error::A2aError::invalid(wrong).message)?;
        let hire = Hire::read(&read.message, read.metadata.as_deref());
        let hire = hire.map_err(|error| error.message)?;
        let view = MessageView::from_json(ID, params.raw().to_owned(), SEND);
        let wanted = NeutralRequest {
            skill: hire.skill.unwrap_or_else(|| "message".to_owned()),
            input: content::input_of(&read.message.parts),
            budget: Some(hire.budget.unwrap_or_default()),
            deadline: hire.deadline,
            extras: view.extras(),
        };
        Ok((view, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, _: Timestamp) -> MessageView {
        let id = Uuid::nil().to_string();
        MessageView::from_json(ID, worker_message(wanted, &id, "(generated by the hub)"), SEND)
    }
}

/// The parameters that an agent with a server of this protocol gets.
fn worker_message(wanted: &NeutralRequest, job: &str, requester: &str) -> String {
    let hire = ObjectWriter::new()
        .text("job", job)
        .text("skill", &wanted.skill)
        .maybe_text("price", wanted.budget.map(translate::price_text).as_deref())
        .maybe_text("deadline", wanted.deadline.map(rfc3339::format_millis).as_deref())
        .text("requester", requester)
        .finish();
    let metadata = ObjectWriter::new()
        .raw(extensions::HIRE, &hire)
        .maybe_raw("meta", wanted.extras.as_deref())
        .finish();
    let part = match ijson::read(wanted.input.as_bytes()).ok() {
        Some(json) => {
            only_text(&json).map_or_else(|| MessagePart::data(&*wanted.input), MessagePart::text)
        }
        None => MessagePart::text(&*wanted.input),
    };
    let message = Message {
        role: Role::User,
        metadata: Some(metadata),
        ..Message::of_agent(format!("{job}-1"), vec![part])
    };
    ObjectWriter::new().raw("message", &message.write(Version::V1)).finish()
}

/// The text of `{"text":…}`.
fn only_text(json: &ijson::Json<'_>) -> Option<String> {
    let ijson::JsonValue::Object(members) = json.value() else { return None };
    match &members[..] {
        [(name, value)] if name == "text" => match value.value() {
            ijson::JsonValue::String(text) => Some(text.clone().into_owned()),
            _ => None,
        },
        _ => None,
    }
}
