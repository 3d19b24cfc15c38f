//! The field map of this protocol: how a message that is work looks to both parties.

use std::sync::Arc;

use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Cause, Job, Question, Requester};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_engine::run::JobRole;
use uuid::Uuid;

use super::RelayContext;
use super::wire::envelope::write_annotated_receive_body;
use super::wire::inbox::Annotations;
use super::wire::work::{MESSAGE_SKILL, WorkTerms, json_as_text};
use super::{Envelope, ID, VERSION, translate};
use crate::adapter::HubContext;
use crate::adapter::fidelity::{
    Field, FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part,
    TracedJob, read_fields,
};
use crate::kit::ijson::{self, Json};
use crate::kit::object::ObjectWriter;

/// An envelope that requests work.
const ASKED: FieldParts = &[
    ("/chorus_version", Part::Framing),
    ("/sender_id", Part::Requester),
    ("/original_text", Part::Input),
    ("/input", Part::Input),
    ("/skill", Part::Skill),
    ("/budget", Part::Budget),
    ("/sender_culture", Part::Culture),
    ("/cultural_context", Part::Culture),
    ("/conversation_id", Part::Conversation),
    ("/turn_number", Part::Turn),
];

/// The members around an envelope that is sent.
const AROUND: FieldParts = &[("/receiver_id", Part::Worker), ("/stream", Part::Framing)];

/// An envelope with work and its annotations: its conversation is the job (B10).
const GIVEN: FieldParts = &[
    ("/envelope/chorus_version", Part::Framing),
    ("/envelope/sender_id", Part::Requester),
    ("/envelope/original_text", Part::Input),
    ("/envelope/sender_culture", Part::Culture),
    ("/envelope/conversation_id", Part::Id),
    ("/envelope/turn_number", Part::Turn),
    ("/job/id", Part::Id),
    ("/job/skill", Part::Skill),
    ("/job/price", Part::Budget),
    ("/bridge", Part::Framing),
];

/// An envelope with the result of work, as its worker wrote it.
const MADE: FieldParts = &[
    ("/chorus_version", Part::Framing),
    ("/sender_id", Part::Worker),
    ("/original_text", Part::Output),
    ("/conversation_id", Part::Id),
];

/// The envelope with a result, as the requester gets it, and its annotations.
const TOLD: FieldParts = &[
    ("/envelope/chorus_version", Part::Framing),
    ("/envelope/sender_id", Part::Worker),
    ("/envelope/original_text", Part::Output),
    ("/envelope/sender_culture", Part::Culture),
    ("/envelope/conversation_id", Part::Conversation),
    ("/envelope/turn_number", Part::Turn),
    ("/job/id", Part::Id),
    ("/job/skill", Part::Framing),
    ("/job/price", Part::Paid),
    ("/bridge", Part::Framing),
];

/// A question of the worker.
const ASKED_BACK: FieldParts = &[
    ("/envelope/original_text", Part::Question),
    ("/envelope/conversation_id", Part::Conversation),
    ("/question", Part::Framing),
];

/// How many finished jobs are searched for a conversation.
const ENDED_MAX: usize = 256;
/// A placeholder for a name that only a hub can give.
const BY_HUB: &str = "(named by the hub)";
/// The place of an envelope in a sent message.
const ENVELOPE: &str = "/envelope";

/// This protocol's field map.
pub struct RelayFieldMap;

impl JobMessages for RelayContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        asked(&shown.job.request.meta)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let news = NoticeKind::Assigned { job: job.id, epoch: job.epoch };
        let given = job_message(self, job, job.worker()?, news)?;
        let side = MessageView::from_json(ID, given, GIVEN);
        Some(if job.request.origin == ID { side } else { side.expand_field("/meta") })
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let report = job.result.as_ref()?;
        let said = match (&report.output, report.cause) {
            (Some(output), None) => json_as_text(output),
            (_, Some(Cause::TimedOut | Cause::WorkerLeft | Cause::Cancelled) | None) => {
                return None;
            }
            (_, Some(_)) => translate::error_text(report.text.as_deref().unwrap_or_default()),
        };
        let sender =
            self.engine.with_world(|world| translate::address_of(world, job.worker()).into_owned());
        let envelope = ObjectWriter::new()
            .text("chorus_version", VERSION)
            .text("sender_id", &sender)
            .text("original_text", &said)
            .uuid("conversation_id", job.uuid);
        Some(as_result(MessageView::from_json(ID, envelope.finish(), MADE), report.ok))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let Requester::Agent(reader) = job.request.requester else { return None };
        let ok = job.result.as_ref().is_some_and(|report| report.ok);
        let received = job_message(self, job, reader, NoticeKind::Ended { job: job.id })?;
        Some(as_result(MessageView::from_json(ID, received, TOLD), ok))
    }

    fn question_received(&self, shown: TracedJob<'_>, question: &Question) -> Option<MessageView> {
        let translate::Conversation { id, .. } = translate::conversation(shown.job);
        let envelope = ObjectWriter::new()
            .text("original_text", &question.text)
            .text("conversation_id", &id)
            .finish();
        let annotations = Annotations { question: true, ..Annotations::default() };
        let message = annotated(&envelope, &annotations);
        Some(MessageView::from_json(ID, message, ASKED_BACK))
    }

    fn find_job<'a>(&'a self, by: AgentId, id: &'a str) -> FindJobFuture<'a> {
        Box::pin(async move {
            let wanted = JobRef::Foreign { origin: ID, id: id.to_owned() };
            let named = self.engine.find_job(&wanted).await?;
            let is_it = |job: &&Arc<Job>| {
                job.request.origin == ID
                    && asked(&job.request.meta).text(Part::Conversation).as_deref() == Some(id)
            };
            let live = || {
                self.engine
                    .with_world(|world| world.jobs_requested_by(by).filter(is_it).last().cloned())
            };
            if let Some(job) = named.or_else(live) {
                return Ok(Some(job));
            }
            // Ended conversations are found by the jobs of the agent that started them, newest
            // first.
            let last = self.engine.with_world(|world| world.agent_state(by)?.last_requested);
            let ended = self.engine.jobs_of(JobRole::Requester, last, ENDED_MAX).await?;
            Ok(ended.rows.iter().find(is_it).cloned())
        })
    }
}

impl FieldMap for RelayFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        asked(&job.request.meta).extras()
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let json = ijson::read(bytes).map_err(|bad| bad.to_string())?;
        let inner = json.get("envelope").unwrap_or(&json);
        let envelope = Envelope::read(inner, ENVELOPE).map_err(|bad| bad.body.message())?;
        let terms = WorkTerms::read(inner).map_err(|bad| bad.message())?;
        let side = sent(&json);
        let wanted = NeutralRequest {
            skill: terms.skill.unwrap_or(MESSAGE_SKILL).to_owned(),
            input: terms.input(&envelope, None),
            budget: terms.budget,
            deadline: None,
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, _: Timestamp) -> MessageView {
        let price = wanted.budget.unwrap_or_default();
        let job = ObjectWriter::new()
            .uuid("id", Uuid::nil())
            .text("skill", &wanted.skill)
            .credits("price", price)
            .finish();
        let envelope = ObjectWriter::new()
            .text("chorus_version", VERSION)
            .text("sender_id", BY_HUB)
            .text("original_text", &json_as_text(&wanted.input))
            .text("sender_culture", translate::DEFAULT_CULTURE)
            .uuid("conversation_id", Uuid::nil())
            .integer("turn_number", 1)
            .finish();
        let meta = wanted.extras.clone();
        let annotations = Annotations { job: Some(job), meta, ..Annotations::default() };
        MessageView::from_json(ID, annotated(&envelope, &annotations), GIVEN).expand_field("/meta")
    }
}

/// What a reader is sent about a job. The text is the same at any time.
fn job_message(
    context: &HubContext,
    job: &Job,
    reader: AgentId,
    news: NoticeKind,
) -> Option<String> {
    let at = job.assignment.map_or(job.request.opened_at, |turn| turn.since);
    let notice = Notice { id: NoticeId(0), to: Some(reader), position: 0, before: None, at, news };
    let message =
        context.engine.with_world(|world| translate::job_envelope(world, &notice, job))?;
    Some(annotated(&message.envelope, &message.annotations))
}

/// An envelope and its annotations, as an endpoint gets them.
fn annotated(envelope: &str, annotations: &Annotations) -> String {
    String::from_utf8(write_annotated_receive_body(envelope, None, "", annotations))
        .unwrap_or_default()
}

/// An envelope that requests work. If it has an input, its text is only for people.
fn asked(envelope: &str) -> MessageView {
    let mut side = MessageView::from_json(ID, envelope.to_owned(), ASKED);
    if side.fields.iter().any(|field| field.name == "/input") {
        let text = side.fields.iter_mut().find(|field| field.name == "/original_text");
        text.into_iter().for_each(|field| field.part = Part::Extra);
    }
    side
}

/// The same as sent, or the envelope alone.
fn sent(json: &Json<'_>) -> MessageView {
    let Some(envelope) = json.get("envelope") else { return asked(json.raw()) };
    let inside = asked(envelope.raw()).fields.into_iter();
    let inside = inside.map(|field| Field { name: format!("{ENVELOPE}{}", field.name), ..field });
    let around =
        read_fields(json.raw(), "", AROUND).into_iter().filter(|field| field.name != ENVELOPE);
    let fields = around.chain(inside).collect();
    MessageView { protocol: ID, payload: json.raw().to_owned(), fields }
}

/// Treats the text of a final message as output on success, and as a reason on failure.
fn as_result(mut side: MessageView, ok: bool) -> MessageView {
    let text = side.fields.iter_mut().filter(|field| field.part == Part::Output && !ok);
    text.for_each(|field| field.part = Part::Reason);
    side
}
