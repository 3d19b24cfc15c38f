//! The field map: which members of this protocol's envelopes carry which part of a job.

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Cause, Job};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::run::LoggedReport;
use uuid::Uuid;

use super::AgoraContext;
use super::delivery::{notice_envelope, part_payload, with_meta};
use super::hub_envelope::signable_object;
use super::operations::requests::find_request;
use super::stored_envelope::restore_envelope;
use super::translate::foreign_id;
use super::wire::envelope::{Envelope, MessageType, read_json};
use super::wire::error::Failure;
use super::wire::payload::{Budget, Payload, Request, ResultPayload, ResultStatus, TIMEOUT_MAX};
use super::{ID, VERSION, directory};
use crate::adapter::fidelity::{
    FieldMap, FieldParts, FindJobFuture, JobMessages, MessageView, NeutralRequest, Part, TracedJob,
};
use crate::kit::object::ObjectWriter;
use crate::kit::rfc3339;

/// A REQUEST.
const REQUEST: FieldParts = &[
    ("/id", Part::Id),
    ("/sender/id", Part::Requester),
    ("/sender/signature", Part::Signature),
    ("/recipient/id", Part::Worker),
    ("/payload/resource", Part::Skill),
    ("/payload/params", Part::Input),
    ("/payload/budget/max", Part::Budget),
    ("/payload/budget/max_cost", Part::Budget),
    ("/payload/budget/currency", Part::Currency),
    ("/payload/timeout", Part::Deadline),
    ("/timestamp", Part::Time),
    ("/protocol", Part::Framing),
    ("/type", Part::Framing),
    ("/bridge", Part::Framing),
];

/// A RESULT or an ERROR. Its own id is not the job's.
const RESULT: FieldParts = &[
    ("/id", Part::Framing),
    ("/sender/id", Part::Worker),
    ("/sender/signature", Part::Signature),
    ("/recipient/id", Part::Requester),
    ("/payload/request_id", Part::Id),
    ("/payload/status", Part::Outcome),
    ("/payload/data", Part::Output),
    ("/payload/code", Part::Cause),
    ("/payload/message", Part::Reason),
    ("/timestamp", Part::Time),
    ("/protocol", Part::Framing),
    ("/type", Part::Framing),
    ("/bridge", Part::Framing),
];

/// A RESULT that is only a part.
const PARTIAL: FieldParts = &[
    ("/type", Part::Framing),
    ("/payload/request_id", Part::Id),
    ("/payload/status", Part::Framing),
    ("/payload/data", Part::PartialOutput),
];

/// Placeholder for a signature that only the hub can make.
const BY_HUB: &str = "(signed by the hub)";
/// Placeholder for the key that the hub holds for an agent.
const ALIAS: &str = "did:key:(held by the hub)";

/// The field map of this protocol.
pub struct AgoraFieldMap;

impl JobMessages for AgoraContext {
    fn request_sent(&self, shown: TracedJob<'_>) -> MessageView {
        let envelope = AgoraFieldMap.evidence(shown.job).unwrap_or_else(|| bare(shown.job));
        MessageView::from_json(ID, envelope, REQUEST)
    }

    fn request_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let turn = job.assignment?;
        // Within its own protocol, an envelope is forwarded unchanged (B3).
        if job.request.origin == ID {
            return Some(self.request_sent(shown));
        }
        let told = shown.start.cloned().unwrap_or(Notice {
            id: NoticeId(0),
            to: Some(turn.worker),
            position: 0,
            before: None,
            at: turn.since,
            news: NoticeKind::Assigned { job: job.id, epoch: job.epoch },
        });
        let outbound = notice_envelope(self, &told, Some(job))?;
        Some(
            MessageView::from_json(ID, outbound.envelope.into_owned(), REQUEST)
                .expand_field("/payload/meta"),
        )
    }

    /// Only a part has a message: a RESULT that is not the last (R42). Parts in the words of another
    /// protocol, whose worker the hub calls, are only in the log.
    fn progress_received(
        &self,
        shown: TracedJob<'_>,
        logged: &LoggedReport,
    ) -> Option<MessageView> {
        let part = logged.report.update.part.as_ref();
        let payload = part_payload(shown.job, part.filter(|_| shown.job.handover.is_none())?);
        let kind = MessageType::Result.as_str();
        let said = ObjectWriter::new().text("type", kind).raw("payload", &payload).finish();
        Some(MessageView::from_json(ID, said, PARTIAL))
    }

    fn result_sent(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let report = job.result.as_ref()?;
        let request_id = foreign_id(job);
        let (kind, payload) = match (&report.output, report.cause) {
            (Some(data), None) => {
                let status = ResultStatus::Success;
                let output = ResultPayload { request_id: &request_id, status, data: data.as_str() };
                (MessageType::Result, output.write())
            }
            (_, Some(Cause::TimedOut | Cause::WorkerLeft | Cause::Cancelled) | None) => {
                return None;
            }
            (_, Some(_)) => {
                let text = report.text.as_deref().unwrap_or_default();
                let failed =
                    ObjectWriter::new().text("message", text).text("request_id", &request_id);
                (MessageType::Error, failed.finish())
            }
        };
        let said =
            ObjectWriter::new().text("type", kind.as_str()).raw("payload", &payload).finish();
        Some(MessageView::from_json(ID, said, RESULT))
    }

    fn result_received(&self, shown: TracedJob<'_>) -> Option<MessageView> {
        let job = shown.job;
        let outbound = shown.end.and_then(|end| notice_envelope(self, end, Some(job)));
        match outbound {
            Some(outbound) => {
                Some(MessageView::from_json(ID, outbound.envelope.into_owned(), RESULT))
            }
            // An envelope between agents of this protocol arrives as it was signed.
            None => self.result_sent(shown),
        }
    }

    fn find_job<'a>(&'a self, by: AgentId, id: &'a str) -> FindJobFuture<'a> {
        Box::pin(find_request(self, by, id))
    }
}

impl FieldMap for AgoraFieldMap {
    fn extras(&self, job: &Job) -> Option<String> {
        let envelope = self.evidence(job)?;
        MessageView::from_json(ID, envelope, REQUEST).extras()
    }

    fn evidence(&self, job: &Job) -> Option<String> {
        restore_envelope(&job.request.meta, &job.request.input).filter(|_| job.request.origin == ID)
    }

    fn read_request(
        &self,
        bytes: &[u8],
        at: Timestamp,
    ) -> Result<(MessageView, NeutralRequest), String> {
        let bad = |bad: Failure| bad.message.to_string();
        let json = read_json(bytes).map_err(bad)?;
        let envelope = Envelope::read(&json).map_err(bad)?;
        let Payload::Request(request) = Payload::read(&envelope).map_err(bad)? else {
            return Err("only a REQUEST can be converted".to_owned());
        };
        let side = MessageView::from_json(ID, envelope.raw().to_owned(), REQUEST);
        let wanted = NeutralRequest {
            skill: directory::skill_name(request.resource).to_owned(),
            input: request.params.to_owned(),
            budget: request.budget.and_then(|budget| budget.max),
            deadline: request.timeout.map(|timeout| at.plus(timeout)),
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn write_request(&self, wanted: &NeutralRequest, at: Timestamp) -> MessageView {
        let resource = directory::resource_from_name(&wanted.skill);
        let params = signable_object(&wanted.input, "input");
        let payload = Request {
            resource: &resource,
            params: &params,
            budget: wanted.budget.map(|max| Budget { max: Some(max), currency: None }),
            timeout: wanted
                .deadline
                .map(|deadline| Millis(deadline.since(at).0.clamp(1, TIMEOUT_MAX.0))),
        };
        let payload = with_meta(payload.write(), wanted.extras.as_deref());
        let sender = ObjectWriter::new().text("id", ALIAS).text("signature", BY_HUB).finish();
        let envelope = ObjectWriter::new()
            .text("id", &Uuid::nil().to_string())
            .raw("payload", &payload)
            .text("protocol", VERSION)
            .raw("sender", &sender)
            .text("timestamp", &rfc3339::format_millis(at))
            .text("type", MessageType::Request.as_str());
        MessageView::from_json(ID, envelope.finish(), REQUEST).expand_field("/payload/meta")
    }
}

/// The envelope of a job that has no stored one, reconstructed from the job.
fn bare(job: &Job) -> String {
    let payload = ObjectWriter::new()
        .text("resource", &directory::resource_from_name(&job.request.skill))
        .raw("params", &job.request.input);
    ObjectWriter::new()
        .text("id", &foreign_id(job))
        .raw("payload", &payload.finish())
        .text("type", MessageType::Request.as_str())
        .finish()
}
