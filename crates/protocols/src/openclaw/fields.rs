//! The field map: which members of this protocol's messages carry which part of a job.

use rialto_core::id::AgentId;
use rialto_core::job::{Job, Question};
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::OpenclawContext;
use super::operations::collaborations;
use super::wire::{self, Request, stream};
use super::{ID, collaboration, delivery};
use crate::adapter::fidelity::{
    FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part, TracedJob,
    question_member,
};
use crate::kit::ijson;
use crate::kit::object::ObjectWriter;

/// A request, as it is sent and as its responder receives it.
const REQUEST: FieldParts = &[
    ("/request_id", Part::Id),
    ("/collaboration_id", Part::Id),
    ("/requester_agent_id", Part::Requester),
    ("/responder_agent_id", Part::Worker),
    ("/capability_id", Part::Skill),
    ("/input_data", Part::Input),
    ("/budget", Part::Budget),
    ("/deadline", Part::Deadline),
    ("/priority", Part::Priority),
    ("/idempotency_key", Part::IdempotencyKey),
    ("/correlation_id", Part::Correlation),
    ("/timestamp", Part::Time),
    ("/protocol_version", Part::Framing),
    ("/accepted", Part::Framing),
    ("/bridge", Part::Framing),
];

/// A result, or the response that rejects the request.
const RESULT: FieldParts = &[
    ("/request_id", Part::Id),
    ("/collaboration_id", Part::Id),
    ("/responder_agent_id", Part::Worker),
    ("/result_status", Part::Outcome),
    ("/response_status", Part::Outcome),
    ("/output_data", Part::Output),
    ("/error/code", Part::Cause),
    ("/error/message", Part::Reason),
    ("/rejection_reason/code", Part::Cause),
    ("/rejection_reason/message", Part::Reason),
    ("/reason", Part::Reason),
    ("/execution_duration_ms", Part::Duration),
    ("/correlation_id", Part::Correlation),
    ("/completed_at", Part::Time),
    ("/timestamp", Part::Time),
    ("/protocol_version", Part::Framing),
];

/// The field map of this protocol.
pub struct OpenclawFieldMap;

impl JobMessages for OpenclawContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        MessageView::from_json(ID, collaboration::request(self, shown.job), REQUEST)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        job.worker()?;
        let body = delivery::request_body(self, job, job.acceptance.accepted_at.is_some());
        let side = MessageView::from_json(ID, body, REQUEST);
        Some(if job.request.origin == ID { side } else { side.expand_field("/meta") })
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let report = shown.job.result.as_ref()?;
        let said = ijson::read(report.meta.as_deref()?.as_bytes()).ok()?;
        // A rejection is stored as its reason alone.
        let whole = match said.get("result_status") {
            Some(_) => ObjectWriter::copy_without(&said, &[])
                .maybe_raw("output_data", report.output.as_deref()),
            None => ObjectWriter::new()
                .text("response_status", "rejected")
                .raw("rejection_reason", said.raw()),
        };
        Some(MessageView::from_json(ID, whole.finish(), RESULT))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let at = job.ended_at.unwrap_or(job.request.opened_at);
        let refused = || collaboration::response(self, job, at).map(|response| response.write());
        let body = collaboration::result(self, job).or_else(refused)?;
        Some(MessageView::from_json(ID, body, RESULT))
    }

    fn question_received(&self, _: TracedJob<'_>, question: &Question) -> Option<MessageView> {
        Some(question_member(ID, question))
    }

    fn find_job<'a>(&'a self, by: AgentId, id: &'a str) -> FindJobFuture<'a> {
        Box::pin(async move {
            let Ok(id) = id.parse::<uuid::fmt::Hyphenated>() else { return Ok(None) };
            // The lookup across all protocols already asked the store for this id, and reported a
            // store error then.
            Ok(collaborations::find_collaboration(self, Some(by), id.into()).await.ok().flatten())
        })
    }
}

impl FieldMap for OpenclawFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        MessageView::from_json(ID, job.request.meta.clone(), REQUEST).extras()
    }

    fn read_request(
        &self,
        bytes: &[u8],
        _: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let request = wire::read::<Request>(bytes).map_err(|bad| bad.message.into_owned())?;
        let side = MessageView::from_json(ID, request.raw.to_string(), REQUEST);
        let said = request.body;
        let wanted = NeutralRequest {
            skill: said.capability_id,
            input: said.input_data.into(),
            budget: said.budget,
            deadline: said.deadline,
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, at: Timestamp) -> MessageView {
        let request = Request {
            request_id: Uuid::nil(),
            requester_agent_id: Uuid::nil(),
            capability_id: wanted.skill.clone(),
            input_data: collaboration::as_object(&wanted.input, "input").into(),
            idempotency_key: None,
            deadline: wanted.deadline,
            priority: None,
            responder_agent_id: None,
            budget: wanted.budget,
            correlation_id: Uuid::nil(),
            timestamp: at,
        };
        let request = collaboration::with_meta(request.write(), wanted.extras.as_deref());
        let body = match ijson::read(request.as_bytes()) {
            Ok(json) => stream::write_request(&json, Some(Uuid::nil()), true),
            Err(_) => request,
        };
        MessageView::from_json(ID, body, REQUEST).expand_field("/meta")
    }
}
