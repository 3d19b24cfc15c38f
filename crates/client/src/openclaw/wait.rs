//! Waits for the end of a request: by events of the stream, and by polling where there are none.

use std::time::Duration;

use rialto_protocols::openclaw::wire::words::{Role, State};
use rialto_protocols::openclaw::wire::{CollaborationResult, Message, Rejection, ResponseAnswer};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::agent::Agent;
use super::collaboration::{Collaboration, CollaborationFilter};
use super::event::Event;
use super::retry::min_retry_delay;
use super::stream::{EventStream, StreamError, WatchScope};
use crate::call::CallError;

/// How often to poll with an open stream, and without one.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
const POLL_INTERVAL_NO_STREAM: Duration = Duration::from_secs(2);
/// Maximum number of pages to search for a request that now has another id.
const PAGES_MAX: usize = 10;

/// A request to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PendingRequest {
    /// The request's id.
    pub request_id: Uuid,
    /// The collaboration's id, if it was accepted.
    pub collaboration_id: Option<Uuid>,
}

/// How waiting ended.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestEnd {
    /// There is a result: completed, failed or cancelled. Its text contains the output even if that
    /// violates its schema and counts as failed (R60).
    Result(Box<Message<CollaborationResult>>),
    /// It was rejected.
    Rejected(Rejection),
    /// It was cancelled before it started.
    Withdrawn,
    /// It has not ended in time; this is its state.
    Pending(State),
}

impl Agent {
    /// Waits for the end of a request of this agent, across temporary errors.
    ///
    /// Each call opens its own stream. To wait for hundreds of requests at once, read one
    /// [`EventStream`].
    pub async fn result(
        &self,
        lane_message: PendingRequest,
        within: Duration,
    ) -> Result<RequestEnd, CallError> {
        let until = Instant::now() + within;
        // Opened before the first poll, so that no event is missed in between.
        let mut stream = self.stream(&WatchScope::OwnOnly).await.ok();
        let (mut lane_message, mut stands) = (lane_message, State::AwaitingResponse);
        loop {
            match self.poll(lane_message).await {
                Ok(seen) => {
                    if let Some(end) = RequestEnd::of(&seen)? {
                        return Ok(end);
                    }
                    stands = seen.state;
                    lane_message.collaboration_id =
                        lane_message.collaboration_id.or(seen.collaboration_id);
                }
                Err(error) if min_retry_delay(&error).is_none() => return Err(error),
                Err(_) => {}
            }
            if Instant::now() >= until {
                return Ok(RequestEnd::Pending(stands));
            }
            let pause = if stream.is_some() { POLL_INTERVAL } else { POLL_INTERVAL_NO_STREAM };
            let next = until.min(Instant::now() + pause);
            tokio::select! {
                () = sleep_until(next) => {}
                news = next_update(&mut stream, lane_message) => match news {
                    RequestUpdate::Result(output) => return Ok(RequestEnd::Result(output)),
                    RequestUpdate::Changed => {}
                    RequestUpdate::StreamEnded => stream = None,
                },
            }
        }
    }

    /// The state of a request, under whichever id it has.
    async fn poll(&self, lane_message: PendingRequest) -> Result<Collaboration, CallError> {
        let id = lane_message.collaboration_id.unwrap_or(lane_message.request_id);
        match self.collaboration(id).await {
            Err(error @ CallError::Refused { status: 404, .. })
                if lane_message.collaboration_id.is_none() =>
            {
                // Once a request has a collaboration, it may be known by that id only.
                self.find(lane_message.request_id).await?.ok_or(error)
            }
            seen => seen,
        }
    }

    async fn find(&self, request_id: Uuid) -> Result<Option<Collaboration>, CallError> {
        let own =
            CollaborationFilter { role: Some(Role::Requester), ..CollaborationFilter::default() };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = self.collaborations(&own, cursor.as_deref()).await?;
            let mut all = page.collaborations.into_iter();
            if let Some(found) = all.find(|one| one.request.request_id == request_id) {
                return Ok(Some(found));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(None)
    }
}

impl RequestEnd {
    /// The end of a collaboration, if it has ended.
    pub(super) fn of(seen: &Collaboration) -> Result<Option<Self>, CallError> {
        if let Some(result) = &seen.result {
            return Ok(Some(Self::Result(Box::new(result.clone()))));
        }
        match (seen.state, seen.response.as_ref().map(|response| &response.answer)) {
            (State::Rejected, Some(ResponseAnswer::Rejected(why))) => {
                Ok(Some(Self::Rejected(why.clone())))
            }
            (State::Cancelled, _) => Ok(Some(Self::Withdrawn)),
            (state, _) if state.is_final() => {
                Err(CallError::Unreadable(format!("it is {state} but has no result")))
            }
            _ => Ok(None),
        }
    }
}

/// An update from the stream about one request.
enum RequestUpdate {
    /// It has ended.
    Result(Box<Message<CollaborationResult>>),
    /// Its state may have changed.
    Changed,
    /// The stream has ended.
    StreamEnded,
}

/// Waits for an update about one request; for ever if there is no stream.
async fn next_update(
    stream: &mut Option<EventStream>,
    lane_message: PendingRequest,
) -> RequestUpdate {
    let Some(stream) = stream else { return std::future::pending().await };
    loop {
        let event = match stream.next().await {
            Some(Ok(event)) => event,
            // An event that cannot be parsed may have been about this request.
            Some(Err(StreamError::Unreadable(_))) => return RequestUpdate::Changed,
            Some(Err(StreamError::Ended(_))) | None => return RequestUpdate::StreamEnded,
        };
        match event {
            Event::Result(end)
                if lane_message
                    .matches(Some(end.body.request_id), Some(end.body.collaboration_id)) =>
            {
                return RequestUpdate::Result(end);
            }
            Event::Cancelled(off) if lane_message.matches(off.request_id, off.collaboration_id) => {
                return RequestUpdate::Changed;
            }
            Event::Response(response) if lane_message.matches(Some(response.request_id), None) => {
                return RequestUpdate::Changed;
            }
            // Its state may have changed while the stream was disconnected.
            Event::Connected => return RequestUpdate::Changed,
            _ => {}
        }
    }
}

impl PendingRequest {
    fn matches(&self, request_id: Option<Uuid>, collaboration_id: Option<Uuid>) -> bool {
        let same = |ours: Option<Uuid>, theirs| ours.is_some() && ours == theirs;
        same(Some(self.request_id), request_id) || same(self.collaboration_id, collaboration_id)
    }
}
