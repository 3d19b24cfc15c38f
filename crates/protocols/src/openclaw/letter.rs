//! Notices as events of the stream: the event's name and the message it carries.

use rialto_core::job::{Job, State as JobState};
use rialto_core::notice::{News, Notice};

use super::message::{Outcome, Output};
use super::state::State;
use super::stream::{self, Event};
use super::{ID, view};
use crate::adapter::Floor;
use crate::kit::ijson;
use crate::kit::object::Object;
use crate::kit::raw_json;

/// The event name for messages of other protocols. This protocol has no such message.
pub const MESSAGE: &str = "message";

/// An event: its name and its body.
pub struct Letter {
    pub event: &'static str,
    pub body: String,
}

/// A notice as an event; `None` when this protocol has no event for it.
pub fn of(floor: &Floor, notice: &Notice, job: Option<&Job>) -> Option<Letter> {
    if let News::Message { words, body, .. } = &notice.news {
        let said = raw_json::verbatim(body);
        let body =
            Object::new().text("protocol", words.as_str()).raw("message", said.get()).finish();
        return Some(Letter { event: MESSAGE, body });
    }
    let job = job?;
    match notice.news {
        News::Assigned { epoch, .. } => assigned(floor, job, epoch),
        News::ApprovalWanted { .. } => approval(floor, job),
        News::Accepted { .. } => {
            job.accepted_at?;
            let response = view::response(floor, job, job.accepted_at.unwrap_or(notice.at))?;
            Some(letter(Event::Response, response.write()))
        }
        News::Ended { .. } => ended(floor, notice, job),
        News::TakenBack { .. } => Some(letter(Event::Cancelled, taken_back(floor, notice, job))),
        News::Queued { .. }
        | News::OffersWanted { .. }
        | News::Offered { .. }
        | News::PriceTaken { .. }
        | News::OfferClosed { .. }
        | News::Message { .. } => None,
    }
}

fn letter(event: Event, body: String) -> Letter {
    Letter { event: event.as_str(), body }
}

/// Assigned work, if the assignment of this epoch still holds.
fn assigned(floor: &Floor, job: &Job, epoch: u32) -> Option<Letter> {
    let theirs = matches!(job.state, JobState::Assigned | JobState::Running) && job.epoch == epoch;
    theirs.then(|| {
        let body = requested(floor, job, job.accepted_at.is_some());
        letter(Event::Request, body)
    })
}

/// A request as its responder receives it.
pub fn requested(floor: &Floor, job: &Job, accepted: bool) -> String {
    let request = view::request(floor, job);
    let collaboration_id = Some(view::ids(job).collaboration_id);
    match ijson::read(request.as_bytes()) {
        Ok(json) => stream::request(&json, collaboration_id, accepted),
        Err(_) => request,
    }
}

/// A request that needs approval first.
fn approval(floor: &Floor, job: &Job) -> Option<Letter> {
    let JobState::Deferred { until } = job.state else { return None };
    job.waits_for.filter(|waits| waits.approval)?;
    let body = requested(floor, job, false);
    let json = ijson::read(body.as_bytes()).ok()?;
    let body = Object::copy(&json, &["awaiting_approval", "deferred_until"])
        .flag("awaiting_approval", true)
        .time("deferred_until", until);
    Some(letter(Event::Request, body.finish()))
}

/// The end of a collaboration: its result, or the final response to a request that was never
/// accepted.
fn ended(floor: &Floor, notice: &Notice, job: &Job) -> Option<Letter> {
    match view::state(job) {
        State::Rejected => {
            let response = view::response(floor, job, notice.at)?;
            Some(letter(Event::Response, response.write()))
        }
        State::Cancelled => Some(letter(Event::Cancelled, view::result(floor, job)?)),
        _ => Some(letter(Event::Result, view::result(floor, job)?)),
    }
}

/// The work is no longer assigned to the reader.
fn taken_back(floor: &Floor, notice: &Notice, job: &Job) -> String {
    if let Some(result) = view::result(floor, job) {
        return result;
    }
    let view::Ids { request_id, correlation_id, collaboration_id } = view::ids(job);
    let reader = notice.to.and_then(|to| {
        floor.engine.look(|world| world.name_of(to, ID).and_then(|name| name.parse().ok()))
    });
    let reason = match view::state(job) {
        State::Rejected => "no response arrived in time",
        _ => "the work was assigned to another agent",
    };
    Output {
        collaboration_id,
        request_id,
        responder_agent_id: reader.unwrap_or(floor.openclaw.hub_id),
        outcome: Outcome::Cancelled { reason: Some(reason.to_owned()) },
        execution_duration_ms: None,
        completed_at: None,
        correlation_id,
        timestamp: notice.at,
    }
    .write()
}
