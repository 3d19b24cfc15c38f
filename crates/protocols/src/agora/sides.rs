//! The field map: which members of this protocol's envelopes carry which part of a job.

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Cause, Job};
use rialto_core::notice::{News, Notice};
use rialto_core::time::{Millis, Timestamp};
use uuid::Uuid;

use super::envelope::{self, Envelope};
use super::intake::foreign_id;
use super::payload::request::TIMEOUT_MAX;
use super::payload::result::Status;
use super::payload::{Budget, Output, Payload, Request};
use super::routes::requests;
use super::{ID, Kind, VERSION, carried, evidence, letter, record};
use crate::adapter::Floor;
use crate::adapter::fidelity::{Finding, Layout, Part, Shown, Side, Sides, Wanted};
use crate::kit::object::Object;
use crate::kit::rfc3339;

/// A REQUEST.
const REQUEST: Layout = &[
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
    ("/protocol", Part::Form),
    ("/type", Part::Form),
    ("/bridge", Part::Form),
];

/// A RESULT or an ERROR. Its own id is not the job's.
const RESULT: Layout = &[
    ("/id", Part::Form),
    ("/sender/id", Part::Worker),
    ("/sender/signature", Part::Signature),
    ("/recipient/id", Part::Requester),
    ("/payload/request_id", Part::Id),
    ("/payload/status", Part::Outcome),
    ("/payload/data", Part::Output),
    ("/payload/code", Part::Cause),
    ("/payload/message", Part::Reason),
    ("/timestamp", Part::Time),
    ("/protocol", Part::Form),
    ("/type", Part::Form),
    ("/bridge", Part::Form),
];

/// Placeholder for a signature that only the hub can make.
const BY_HUB: &str = "(signed by the hub)";
/// Placeholder for the key that the hub holds for an agent.
const ALIAS: &str = "did:key:(held by the hub)";

/// The field map of this protocol.
pub struct AgoraSides;

impl Sides for AgoraSides {
    fn asked(&self, shown: Shown<'_>) -> Side {
        let envelope = self.evidence(shown.job).unwrap_or_else(|| bare(shown.job));
        Side::of_json(ID, envelope, REQUEST)
    }

    fn given(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        let turn = job.assignment?;
        // Within its own protocol, an envelope is forwarded unchanged (B3).
        if job.origin == ID {
            return Some(self.asked(shown));
        }
        let told = shown.start.cloned().unwrap_or(Notice {
            id: NoticeId(0),
            to: Some(turn.worker),
            position: 0,
            before: None,
            at: turn.since,
            news: News::Assigned { job: job.id, epoch: job.epoch },
        });
        let letter = letter::of(floor, &told, Some(job))?;
        Some(Side::of_json(ID, letter.envelope.into_owned(), REQUEST).opened("/payload/meta"))
    }

    fn made(&self, shown: Shown<'_>) -> Option<Side> {
        let job = shown.job;
        let report = job.report.as_ref()?;
        let request_id = match job.origin == ID {
            true => foreign_id(job).into_owned(),
            false => job.uuid.to_string(),
        };
        let (kind, payload) = match (&report.output, report.cause) {
            (Some(data), None) => {
                let status = Status::Success;
                let output = Output { request_id: &request_id, status, data: data.as_str() };
                (Kind::Result, output.write())
            }
            (_, Some(Cause::TimedOut | Cause::WorkerLeft | Cause::Cancelled) | None) => {
                return None;
            }
            (_, Some(_)) => {
                let text = report.text.as_deref().unwrap_or_default();
                let failed = Object::new().text("message", text).text("request_id", &request_id);
                (Kind::Error, failed.finish())
            }
        };
        let said = Object::new().text("type", kind.as_str()).raw("payload", &payload).finish();
        Some(Side::of_json(ID, said, RESULT))
    }

    fn told(&self, shown: Shown<'_>) -> Option<Side> {
        let job = shown.job;
        let letter = shown.end.and_then(|end| letter::of(shown.floor, end, Some(job)));
        match letter {
            Some(letter) => Some(Side::of_json(ID, letter.envelope.into_owned(), RESULT)),
            // An envelope between agents of this protocol arrives as it was signed.
            None => self.made(shown),
        }
    }

    fn extras(&self, job: &Job) -> Option<String> {
        let envelope = self.evidence(job)?;
        Side::of_json(ID, envelope, REQUEST).extras()
    }

    fn evidence(&self, job: &Job) -> Option<String> {
        evidence::restore(&job.meta, &job.input).filter(|_| job.origin == ID)
    }

    fn find<'a>(&'a self, floor: &'a Floor, by: AgentId, id: &'a str) -> Finding<'a> {
        Box::pin(requests::find(floor, by, id))
    }

    fn read(&self, bytes: &[u8], at: Timestamp) -> Result<(Side, Wanted), String> {
        let bad = |bad: super::Failure| bad.message.to_string();
        let json = envelope::parse(bytes).map_err(bad)?;
        let envelope = Envelope::read(&json).map_err(bad)?;
        let Payload::Request(request) = Payload::read(&envelope).map_err(bad)? else {
            return Err("only a REQUEST can be converted".to_owned());
        };
        let side = Side::of_json(ID, envelope.raw().to_owned(), REQUEST);
        let wanted = Wanted {
            skill: record::skill_name(request.resource).to_owned(),
            input: request.params.to_owned(),
            budget: request.budget.and_then(|budget| budget.max),
            deadline: request.timeout.map(|timeout| at.plus(timeout)),
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn compose(&self, wanted: &Wanted, at: Timestamp) -> Side {
        let resource = record::made(&wanted.skill);
        let params = carried::object(&wanted.input, "input");
        let payload = Request {
            resource: &resource,
            params: &params,
            budget: wanted.budget.map(|max| Budget { max: Some(max), currency: None }),
            timeout: wanted
                .deadline
                .map(|deadline| Millis(deadline.since(at).0.clamp(1, TIMEOUT_MAX.0))),
        };
        let payload = letter::with_meta(payload.write(), wanted.extras.as_deref());
        let sender = Object::new().text("id", ALIAS).text("signature", BY_HUB).finish();
        let envelope = Object::new()
            .text("id", &Uuid::nil().to_string())
            .raw("payload", &payload)
            .text("protocol", VERSION)
            .raw("sender", &sender)
            .text("timestamp", &rfc3339::millis(at))
            .text("type", Kind::Request.as_str());
        Side::of_json(ID, envelope.finish(), REQUEST).opened("/payload/meta")
    }
}

/// The envelope of a job that has no stored one, reconstructed from the job.
fn bare(job: &Job) -> String {
    let payload =
        Object::new().text("resource", &record::made(&job.skill)).raw("params", &job.input);
    Object::new()
        .text("id", &foreign_id(job))
        .raw("payload", &payload.finish())
        .text("type", Kind::Request.as_str())
        .finish()
}
