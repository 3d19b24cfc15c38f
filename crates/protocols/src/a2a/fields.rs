//! The field map of this protocol: how a job looks to its requesters and workers.

use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::log::{LogContent, Step};
use rialto_core::job::{Job, Question};
use rialto_core::time::Timestamp;
use rialto_engine::run::{LogEntry, LoggedReport};
use uuid::Uuid;

use super::original;
use super::remote::RemoteAgent;
use super::remote::handover_state::HandoverState;
use super::remote::outgoing;
use super::task_log::{self, TaskLog};
use super::translate::{self, Hire, MESSAGE_SKILL, TaskMeta, TaskView};
use super::wire::content::{self, OutputForm};
use super::wire::message::{Message, Part as MessagePart, Role, write_array};
use super::wire::params::SendParams;
use super::wire::task::TaskState;
use super::wire::{Version, error};
use super::{A2aContext, ID, extensions};
use crate::adapter::fidelity::{
    self, Field, FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest,
    Part, TracedJob, read_fields,
};
use crate::kit::ijson::{self, Json, JsonValue};
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// The parameters of a send, in both versions and both spellings of their names.
const SEND: FieldParts = &[
    ("/message/messageId", Part::Extra),
    ("/message/message_id", Part::Extra),
    ("/message/contextId", Part::Conversation),
    ("/message/context_id", Part::Conversation),
    ("/message/taskId", Part::Id),
    ("/message/task_id", Part::Id),
    ("/message/role", Part::Framing),
    ("/message/kind", Part::Framing),
    ("/message/parts", Part::Input),
    ("/message/extensions", Part::Framing),
    ("/message/referenceTaskIds", Part::Conversation),
    ("/message/reference_task_ids", Part::Conversation),
    ("/message/metadata/skillId", Part::Skill),
    ("/message/metadata/urn:rialto:a2a:hire:v1/skill", Part::Skill),
    ("/message/metadata/urn:rialto:a2a:hire:v1/budget", Part::Budget),
    ("/message/metadata/urn:rialto:a2a:hire:v1/price", Part::Budget),
    ("/message/metadata/urn:rialto:a2a:hire:v1/deadline", Part::Deadline),
    ("/message/metadata/urn:rialto:a2a:hire:v1/queue", Part::Queueing),
    ("/message/metadata/urn:rialto:a2a:hire:v1/select", Part::Strategy),
    ("/message/metadata/urn:rialto:a2a:hire:v1/key", Part::IdempotencyKey),
    ("/message/metadata/urn:rialto:a2a:hire:v1/job", Part::Id),
    ("/message/metadata/urn:rialto:a2a:hire:v1/requester", Part::Requester),
    ("/message/metadata/urn:rialto:a2a:hire:v1/protocol", Part::Framing),
    ("/message/metadata/urn:rialto:a2a:hire:v1/hop", Part::Framing),
    ("/metadata/urn:rialto:a2a:hire:v1/skill", Part::Skill),
    ("/metadata/urn:rialto:a2a:hire:v1/budget", Part::Budget),
    ("/metadata/urn:rialto:a2a:hire:v1/deadline", Part::Deadline),
    ("/metadata/urn:rialto:a2a:hire:v1/queue", Part::Queueing),
    ("/metadata/urn:rialto:a2a:hire:v1/select", Part::Strategy),
    ("/metadata/urn:rialto:a2a:hire:v1/key", Part::IdempotencyKey),
    ("/metadata/urn:rialto:a2a:hire:v1/hop", Part::Framing),
    ("/configuration/taskPushNotificationConfig", Part::Callback),
    ("/configuration/task_push_notification_config", Part::Callback),
    ("/configuration/pushNotificationConfig", Part::Callback),
    ("/configuration/push_notification_config", Part::Callback),
    ("/configuration/acceptedOutputModes", Part::Framing),
    ("/configuration/accepted_output_modes", Part::Framing),
    ("/configuration/historyLength", Part::Framing),
    ("/configuration/history_length", Part::Framing),
    ("/configuration/returnImmediately", Part::Framing),
    ("/configuration/return_immediately", Part::Framing),
    ("/configuration/blocking", Part::Framing),
    ("/tenant", Part::Worker),
];

/// The members around the parameters of a JSON-RPC request.
const RPC: FieldParts =
    &[("/jsonrpc", Part::Framing), ("/id", Part::Framing), ("/method", Part::Framing)];

/// A task at its end.
const TASK: FieldParts = &[
    ("/kind", Part::Framing),
    ("/id", Part::Id),
    ("/contextId", Part::Conversation),
    ("/status/state", Part::Outcome),
    ("/status/message", Part::Reason),
    ("/status/timestamp", Part::Time),
    ("/artifacts", Part::Output),
    ("/history", Part::History),
    ("/metadata/urn:rialto:a2a:hire:v1/skill", Part::Skill),
    ("/metadata/urn:rialto:a2a:hire:v1/worker", Part::Worker),
    ("/metadata/urn:rialto:a2a:hire:v1/protocol", Part::Framing),
    ("/metadata/urn:rialto:a2a:hire:v1/price", Part::Budget),
    ("/metadata/urn:rialto:a2a:hire:v1/deadline", Part::Deadline),
    ("/metadata/urn:rialto:a2a:hire:v1/paid", Part::Paid),
];

/// A part of a result, or a status, before the end: as 1.0 and as 0.3 write it.
const EVENT: FieldParts = &[
    ("/artifactUpdate/taskId", Part::Id),
    ("/artifactUpdate/contextId", Part::Conversation),
    ("/artifactUpdate/artifact/artifactId", Part::Framing),
    ("/artifactUpdate/artifact/parts", Part::PartialOutput),
    ("/artifactUpdate/append", Part::Framing),
    ("/statusUpdate/taskId", Part::Id),
    ("/statusUpdate/contextId", Part::Conversation),
    ("/statusUpdate/status/state", Part::Framing),
    ("/statusUpdate/status/message", Part::Progress),
    ("/statusUpdate/status/timestamp", Part::Time),
    ("/kind", Part::Framing),
    ("/taskId", Part::Id),
    ("/contextId", Part::Conversation),
    ("/artifact/artifactId", Part::Framing),
    ("/artifact/parts", Part::PartialOutput),
    ("/append", Part::Framing),
    ("/status/state", Part::Framing),
    ("/status/message", Part::Progress),
    ("/status/timestamp", Part::Time),
    ("/final", Part::Framing),
];

/// The methods that ask for work, in 1.0 and 0.3.
const SENDS: [&str; 4] = ["SendMessage", "SendStreamingMessage", "message/send", "message/stream"];

/// Where a worker of this protocol finds members of other protocols (B11).
const META: &str = "/message/metadata/meta";

/// This protocol's field map.
pub struct A2aFieldMap;

impl JobMessages for A2aContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        let sent = TaskMeta::of(shown.job).map(|meta| meta.sent.get().to_owned());
        MessageView::from_json(ID, sent.unwrap_or_default(), SEND)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let worker = job.worker()?;
        let (sent, name) = self.engine.with_world(|world| {
            let remote = world.agent(worker).and_then(|agent| RemoteAgent::of(agent));
            let sent = remote.and_then(|remote| outgoing::request_params(world, job, &remote));
            (sent, crate::adapter::open_job::requester_name(world, job, ID))
        });
        let wanted = NeutralRequest {
            skill: job.request.skill.clone(),
            input: job.request.input.clone(),
            budget: job.assignment.map(|turn| turn.price),
            deadline: Some(job.request.deadline),
            extras: fidelity::extras(job),
        };
        let sent = sent.unwrap_or_else(|| worker_message(&wanted, &job.uuid.to_string(), &name));
        Some(MessageView::from_json(ID, sent, SEND).expand_field(META))
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let result = job.result.as_ref().filter(|result| result.content.is_some())?;
        let own_parts = |parts| {
            let id = translate::message_id(job, 0);
            Message::of_agent(id, parts).write(Version::V1)
        };
        let text = || result.text.clone().map(|text| vec![MessagePart::text(text)]);
        let (parts, artifacts) = match result.output.as_deref().map(content::form_of_output) {
            Some(OutputForm::Message(parts)) => (Some(parts), Vec::new()),
            Some(OutputForm::Task { artifacts, message }) => (message, artifacts),
            None => (text(), Vec::new()),
        };
        let status = || {
            let message = parts.map(own_parts);
            let status = ObjectWriter::new().text("state", end_state(job).name(Version::V1));
            status.maybe_raw("message", message.as_deref()).finish()
        };
        // Between two sides of this protocol, the messages of the worker are stored unchanged.
        let status = original::kept_status(result).unwrap_or_else(status);
        let handover = HandoverState::of(job);
        let logged = match handover {
            Some(_) => {
                let extend = |all: &mut Vec<_>, more| all.extend::<Vec<_>>(more);
                task_log::worker_artifacts(shown.log, job.epoch, extend)
            }
            None => Vec::new(),
        };
        let artifacts = if logged.is_empty() { artifacts } else { logged };
        let artifacts: Vec<String> =
            artifacts.iter().map(|artifact| artifact.write(Version::V1)).collect();
        let (task, context) = handover.map(|ids| (ids.task, ids.context)).unwrap_or_default();
        let body = ObjectWriter::new()
            .maybe_text("id", task.as_deref())
            .maybe_text("contextId", context.as_deref())
            .raw("status", &status);
        let body = match artifacts.is_empty() {
            true => body,
            false => body.raw("artifacts", &write_array(artifacts)),
        };
        Some(as_result(MessageView::from_json(ID, body.finish(), TASK), result.ok))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let meta = TaskMeta::of(job)?;
        let (log, view) = (TaskLog { entries: shown.log.to_vec() }, TaskView::FULL);
        let task = self.engine.with_world(|world| translate::task(world, job, &meta, &log, view));
        let ok = job.result.as_ref().is_some_and(|result| result.ok);
        let view = MessageView::from_json(ID, task.write(meta.version()), TASK);
        Some(as_result(view, ok))
    }

    /// Parts are artifact updates, everything else is a status.
    fn progress_received(
        &self,
        shown: TracedJob<'_>,
        logged: &LoggedReport,
    ) -> Option<MessageView> {
        let content = LogContent::Report(logged.report.update.clone());
        let (number, epoch) = (logged.report.number, logged.report.epoch);
        let entry = LogEntry { at: logged.at, number, epoch, content };
        event_view(shown.job, &entry)
    }

    fn question_received(&self, shown: TracedJob<'_>, _: &Question) -> Option<MessageView> {
        let question = shown.job.question_count();
        let step = LogContent::Step(Step::InputRequired { question });
        let entry = shown.log.iter().find(|entry| entry.content == step)?;
        let mut view = event_view(shown.job, entry)?;
        let texts = view.fields.iter_mut().filter(|field| field.part == Part::Progress);
        texts.for_each(|field| field.part = Part::Question);
        Some(view)
    }

    fn find_job<'a>(&'a self, _: AgentId, id: &'a str) -> FindJobFuture<'a> {
        let wanted = JobRef::Foreign { origin: ID, id: id.to_lowercase() };
        Box::pin(async move { self.engine.find_job(&wanted).await })
    }
}

/// The state with which a worker ended its task.
fn end_state(job: &Job) -> TaskState {
    match translate::state_of(job) {
        state @ (TaskState::Completed | TaskState::Rejected) => state,
        _ => TaskState::Failed,
    }
}

/// The event of a task that an entry of its log is.
fn event_view(job: &Job, entry: &LogEntry) -> Option<MessageView> {
    let meta = TaskMeta::of(job)?;
    let part = job.progress.parts;
    let events = task_log::events(job, &meta, entry, part);
    let event = events.into_iter().next()?;
    Some(MessageView::from_json(ID, event.event.write(meta.version(), false), EVENT))
}

/// The message of a status is the output of a worker that answered with a message, and the reason
/// of a failure. What a worker that failed had done before is no result.
fn as_result(mut view: MessageView, ok: bool) -> MessageView {
    for field in &mut view.fields {
        field.part = match field.part {
            Part::Reason if ok => Part::Output,
            Part::Output if !ok => Part::PartialOutput,
            part => part,
        };
    }
    view
}

impl FieldMap for A2aFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        let sent = TaskMeta::of(job)?.sent.get().to_owned();
        MessageView::from_json(ID, sent, SEND).extras()
    }

    fn extras_of_message(&self, message: &str) -> Option<String> {
        let sent = ObjectWriter::new().raw("message", message).finish();
        MessageView::from_json(ID, sent, SEND).extras()
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let json = ijson::read(bytes).map_err(|bad| bad.to_string())?;
        if let Some(JsonValue::String(method)) = json.get("method").map(Json::value)
            && !SENDS.contains(&method.as_ref())
        {
            return Err(format!("{method} asks for no work; {} do", SENDS.join(", ")));
        }
        let params = json.get("params").unwrap_or(&json);
        let read = read_params(params)?;
        let hire = Hire::read(&read.message, read.metadata.as_deref());
        let hire = hire.map_err(|error| error.message)?;
        let view = sent(&json);
        let wanted = NeutralRequest {
            skill: hire.skill.unwrap_or_else(|| MESSAGE_SKILL.to_owned()),
            input: content::input_of(&read.message.parts),
            budget: Some(hire.budget.unwrap_or_default()),
            deadline: hire.deadline,
            extras: view.extras(),
        };
        Ok((view, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, _: Timestamp) -> MessageView {
        let id = Uuid::nil().to_string();
        let message = worker_message(wanted, &id, "(generated by the hub)");
        MessageView::from_json(ID, message, SEND).expand_field(META)
    }
}

/// The parameters of a send in either version; what is wrong with them in 1.0 if in both.
fn read_params(params: &Json<'_>) -> Result<SendParams, String> {
    let new = SendParams::read(params, Version::V1);
    let read = new.or_else(|wrong| SendParams::read(params, Version::V03).map_err(|_| wrong));
    read.map_err(|wrong| error::A2aError::invalid(wrong).message)
}

/// The parameters as sent, alone or in a JSON-RPC request.
fn sent(json: &Json<'_>) -> MessageView {
    let Some(params) = json.get("params") else {
        return MessageView::from_json(ID, json.raw().to_owned(), SEND);
    };
    let inside = read_fields(params.raw(), "", SEND).into_iter();
    let inside = inside.map(|field| Field { name: format!("/params{}", field.name), ..field });
    let around = read_fields(json.raw(), "", RPC).into_iter();
    let fields = around.filter(|field| field.name != "/params").chain(inside).collect();
    MessageView { protocol: ID, payload: json.raw().to_owned(), fields }
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
        Some(json) => outgoing::only_text(&json)
            .map_or_else(|| MessagePart::data(&*wanted.input), MessagePart::text),
        None => MessagePart::text(&*wanted.input),
    };
    let message = Message {
        role: Role::User,
        metadata: Some(metadata),
        ..Message::of_agent(format!("{job}-1"), vec![part])
    };
    ObjectWriter::new().raw("message", &message.write(Version::V1)).finish()
}
