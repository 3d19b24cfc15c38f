//! The field map: which members of this protocol's messages carry which part of a job.

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::time::Timestamp;
use uuid::Uuid;

use super::message::{self, Request};
use super::routes::collaborations;
use super::{ID, letter, stream, view};
use crate::adapter::Floor;
use crate::adapter::fidelity::{Finding, Layout, Part, Shown, Side, Sides, Wanted};
use crate::kit::ijson;
use crate::kit::object::Object;

/// A request, as it is sent and as its responder receives it.
const REQUEST: Layout = &[
    ("/request_id", Part::Id),
    ("/collaboration_id", Part::Id),
    ("/requester_agent_id", Part::Requester),
    ("/responder_agent_id", Part::Worker),
    ("/capability_id", Part::Skill),
    ("/input_data", Part::Input),
    ("/budget", Part::Budget),
    ("/deadline", Part::Deadline),
    ("/priority", Part::Priority),
    ("/idempotency_key", Part::Repeat),
    ("/correlation_id", Part::Correlation),
    ("/timestamp", Part::Time),
    ("/protocol_version", Part::Form),
    ("/accepted", Part::Form),
    ("/bridge", Part::Form),
];

/// A result, or the response that rejects the request.
const RESULT: Layout = &[
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
    ("/protocol_version", Part::Form),
];

/// The field map of this protocol.
pub struct OpenclawSides;

impl Sides for OpenclawSides {
    fn asked(&self, shown: Shown<'_>) -> Side {
        Side::of_json(ID, view::request(shown.floor, shown.job), REQUEST)
    }

    fn given(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        job.worker()?;
        let body = letter::requested(floor, job, job.accepted_at.is_some());
        let side = Side::of_json(ID, body, REQUEST);
        Some(if job.origin == ID { side } else { side.opened("/meta") })
    }

    fn made(&self, shown: Shown<'_>) -> Option<Side> {
        let report = shown.job.report.as_ref()?;
        let said = ijson::read(report.words.as_deref()?.as_bytes()).ok()?;
        // A rejection is stored as its reason alone.
        let whole = match said.get("result_status") {
            Some(_) => Object::copy(&said, &[]).maybe_raw("output_data", report.output.as_deref()),
            None => Object::new()
                .text("response_status", "rejected")
                .raw("rejection_reason", said.raw()),
        };
        Some(Side::of_json(ID, whole.finish(), RESULT))
    }

    fn told(&self, shown: Shown<'_>) -> Option<Side> {
        let Shown { floor, job, .. } = shown;
        let at = job.ended_at.unwrap_or(job.opened_at);
        let refused = || view::response(floor, job, at).map(|response| response.write());
        let body = view::result(floor, job).or_else(refused)?;
        Some(Side::of_json(ID, body, RESULT))
    }

    fn extras(&self, job: &Job) -> Option<String> {
        Side::of_json(ID, job.meta.clone(), REQUEST).extras()
    }

    fn find<'a>(&'a self, floor: &'a Floor, by: AgentId, id: &'a str) -> Finding<'a> {
        Box::pin(async move {
            let Ok(id) = id.parse::<uuid::fmt::Hyphenated>() else { return Ok(None) };
            // The lookup across all protocols already asked the store for this id, and reported a
            // store error then.
            Ok(collaborations::find(floor, Some(by), id.into()).await.ok().flatten())
        })
    }

    fn read(&self, bytes: &[u8], _: Timestamp) -> Result<(Side, Wanted), String> {
        let request = message::read::<Request>(bytes).map_err(|bad| bad.message.into_owned())?;
        let side = Side::of_json(ID, request.raw.to_string(), REQUEST);
        let said = request.said;
        let wanted = Wanted {
            skill: said.capability_id,
            input: said.input_data.into(),
            budget: said.budget,
            deadline: said.deadline,
            extras: side.extras(),
        };
        Ok((side, wanted))
    }

    fn compose(&self, wanted: &Wanted, at: Timestamp) -> Side {
        let request = Request {
            request_id: Uuid::nil(),
            requester_agent_id: Uuid::nil(),
            capability_id: wanted.skill.clone(),
            input_data: view::object(&wanted.input, "input").into(),
            idempotency_key: None,
            deadline: wanted.deadline,
            priority: None,
            responder_agent_id: None,
            budget: wanted.budget,
            correlation_id: Uuid::nil(),
            timestamp: at,
        };
        let request = view::with_meta(request.write(), wanted.extras.as_deref());
        let body = match ijson::read(request.as_bytes()) {
            Ok(json) => stream::request(&json, Some(Uuid::nil()), true),
            Err(_) => request,
        };
        Side::of_json(ID, body, REQUEST).opened("/meta")
    }
}
