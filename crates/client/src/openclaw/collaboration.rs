//! Collaborations from the view of a party: read, list, cancel, approve, and wait for the end of a
//! request, by events of the stream and by polling where there are none.

use std::time::Duration;

use rialto_protocols::kit::object::ObjectWriter;
use rialto_protocols::openclaw::wire::answers::{self, CollaborationSummary, CollaborationView};
use rialto_protocols::openclaw::wire::words::{Role, State};
use rialto_protocols::openclaw::wire::{
    CollaborationResult, Message, Rejection, Request, Response, ResponseAnswer,
};
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::agent::Agent;
use super::event::Event;
use super::request::min_retry_delay;
use super::response::{parse_message, parse_message_with_text};
use super::server::new_common_fields;
use super::stream::{EventStream, StreamError, WatchScope};
use crate::call::CallError;
use crate::origin_client::{Reply, add_query};

/// How often to poll with an open stream, and without one.
const POLL_INTERVAL: Duration = Duration::from_secs(15);
const POLL_INTERVAL_NO_STREAM: Duration = Duration::from_secs(2);
/// Maximum number of pages to search for a request that now has another id.
const PAGES_MAX: usize = 10;

/// A collaboration and its state.
#[derive(Clone, Debug, PartialEq)]
pub struct Collaboration {
    /// Its id; `None` before it is accepted.
    pub collaboration_id: Option<Uuid>,
    /// Its state.
    pub state: State,
    /// The request.
    pub request: Request,
    /// The last response, if there is one.
    pub response: Option<Response>,
    /// The result, if it has ended, with its original text.
    pub result: Option<Message<CollaborationResult>>,
}

/// Which of an agent's own collaborations to list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CollaborationFilter {
    /// Only those it requested, or only those it works on.
    pub role: Option<Role>,
    /// Only those in this state.
    pub state: Option<State>,
    /// Page size; the hub's default if not set.
    pub limit: Option<u32>,
}

/// One page of an agent's own collaborations.
#[derive(Clone, Debug, PartialEq)]
pub struct CollaborationPage {
    /// The collaborations.
    pub collaborations: Vec<Collaboration>,
    /// The cursor of the next page; `None` on the last.
    pub next_cursor: Option<String>,
}

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
    /// The state of a collaboration. `id` is its own id, or the request's before there is one.
    pub async fn collaboration(&self, id: Uuid) -> Result<Collaboration, CallError> {
        let url = self.server().url(&["collaborations", &id.to_string()]);
        Collaboration::from_response(&self.server().get(url).await?)
    }

    /// One page of the agent's own collaborations: the first, or the one at a cursor.
    pub async fn collaborations(
        &self,
        filter: &CollaborationFilter,
        after: Option<&str>,
    ) -> Result<CollaborationPage, CallError> {
        let mut url = self.server().url(&["collaborations"]);
        let query = [
            ("role", filter.role.map(|role| role.to_string())),
            ("state", filter.state.map(|state| state.to_string())),
            ("limit", filter.limit.map(|limit| limit.to_string())),
            ("after", after.map(str::to_owned)),
        ];
        add_query(&mut url, query);
        let page: answers::CollaborationPage = self.server().get(url).await?.json()?;
        let all = page.collaborations.into_iter().map(Collaboration::read);
        Ok(CollaborationPage {
            collaborations: all.collect::<Result<_, _>>()?,
            next_cursor: page.next_cursor,
        })
    }

    /// Cancels a collaboration, as its requester or its responder; returns the `cancelled` result.
    pub async fn cancel(
        &self,
        id: Uuid,
        reason: Option<&str>,
    ) -> Result<CollaborationResult, CallError> {
        let url = self.server().url(&["collaborations", &id.to_string(), "cancel"]);
        let body = new_common_fields()?
            .write_to(ObjectWriter::new().maybe_text("reason", reason))
            .finish();
        parse_message(&self.server().post(url, body).await?.body)
    }

    /// Approves or rejects work that needs approval. Operators use [`super::Server::approve`].
    pub async fn approve(&self, id: Uuid, approved: bool) -> Result<(), CallError> {
        self.server().approve(id, approved).await
    }
}

impl Collaboration {
    /// Parses the response with one collaboration.
    pub(super) fn from_response(reply: &Reply) -> Result<Self, CallError> {
        let CollaborationView { collaboration_id, state, request, response, result, .. } =
            reply.json()?;
        Self::read(CollaborationSummary { collaboration_id, state, request, response, result })
    }

    fn read(listed: CollaborationSummary) -> Result<Self, CallError> {
        let id = listed.collaboration_id.map(|id| id.parse()).transpose();
        let (response, result) = (listed.response.as_deref(), listed.result.as_deref());
        Ok(Self {
            collaboration_id: id
                .map_err(|_| CallError::unreadable("collaboration_id is not a UUID"))?,
            state: listed.state,
            request: parse_message(listed.request.get().as_bytes())?,
            response: response.map(|raw| parse_message(raw.get().as_bytes())).transpose()?,
            result: result.map(|raw| parse_message_with_text(raw.get().as_bytes())).transpose()?,
        })
    }
}

impl Agent {
    /// Waits for the end of a request of this agent, across temporary errors.
    ///
    /// Each call opens its own stream. To wait for hundreds of requests at once, read one
    /// [`EventStream`].
    pub async fn result(
        &self,
        mut pending: PendingRequest,
        within: Duration,
    ) -> Result<RequestEnd, CallError> {
        let until = Instant::now() + within;
        // Opened before the first poll, so that no event is missed in between.
        let mut stream = self.stream(&WatchScope::OwnOnly).await.ok();
        let mut state = State::AwaitingResponse;
        loop {
            match self.poll(pending).await {
                Ok(collaboration) => {
                    if let Some(end) = RequestEnd::of(&collaboration)? {
                        return Ok(end);
                    }
                    state = collaboration.state;
                    let id = pending.collaboration_id.or(collaboration.collaboration_id);
                    pending.collaboration_id = id;
                }
                Err(error) if min_retry_delay(&error).is_none() => return Err(error),
                Err(_) => {}
            }
            if Instant::now() >= until {
                return Ok(RequestEnd::Pending(state));
            }
            let pause = if stream.is_some() { POLL_INTERVAL } else { POLL_INTERVAL_NO_STREAM };
            let next = until.min(Instant::now() + pause);
            tokio::select! {
                () = sleep_until(next) => {}
                update = next_update(&mut stream, pending) => match update {
                    RequestUpdate::Result(output) => return Ok(RequestEnd::Result(output)),
                    RequestUpdate::Changed => {}
                    RequestUpdate::StreamEnded => stream = None,
                },
            }
        }
    }

    /// The state of a request, under whichever id it has.
    async fn poll(&self, pending: PendingRequest) -> Result<Collaboration, CallError> {
        let id = pending.collaboration_id.unwrap_or(pending.request_id);
        match self.collaboration(id).await {
            Err(error @ CallError::Refused { status: 404, .. })
                if pending.collaboration_id.is_none() =>
            {
                // Once a request has a collaboration, it may be known by that id only.
                self.find(pending.request_id).await?.ok_or(error)
            }
            collaboration => collaboration,
        }
    }

    async fn find(&self, request_id: Uuid) -> Result<Option<Collaboration>, CallError> {
        let own =
            CollaborationFilter { role: Some(Role::Requester), ..CollaborationFilter::default() };
        let mut cursor = None;
        for _ in 0..PAGES_MAX {
            let page = self.collaborations(&own, cursor.as_deref()).await?;
            let mut all = page.collaborations.into_iter();
            if let Some(same) = all.find(|one| one.request.request_id == request_id) {
                return Ok(Some(same));
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
    pub(super) fn of(collaboration: &Collaboration) -> Result<Option<Self>, CallError> {
        if let Some(result) = &collaboration.result {
            return Ok(Some(Self::Result(Box::new(result.clone()))));
        }
        let answer = collaboration.response.as_ref().map(|response| &response.answer);
        match (collaboration.state, answer) {
            (State::Rejected, Some(ResponseAnswer::Rejected(why))) => {
                Ok(Some(Self::Rejected(why.clone())))
            }
            (State::Cancelled, _) => Ok(Some(Self::Withdrawn)),
            (state, _) if state.is_final() => {
                Err(CallError::unreadable(format!("it is {state} but has no result")))
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
async fn next_update(stream: &mut Option<EventStream>, pending: PendingRequest) -> RequestUpdate {
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
                if pending.matches(Some(end.body.request_id), Some(end.body.collaboration_id)) =>
            {
                return RequestUpdate::Result(end);
            }
            Event::Cancelled(off) if pending.matches(off.request_id, off.collaboration_id) => {
                return RequestUpdate::Changed;
            }
            Event::Response(response) if pending.matches(Some(response.request_id), None) => {
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
