//! The requester's side: calls a node at its URL.

use std::time::Duration;

use rialto_protocols::openclaw::wire::{CollaborationResult, Identity, ResponseAnswer};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::call::CallError;
use crate::openclaw::agent::Agent;
use crate::openclaw::collaboration::{Collaboration, RequestEnd};
use crate::openclaw::request::{RequestReply, RequestRetryPolicy, RequestSpec, min_retry_delay};
use crate::openclaw::response;
use crate::openclaw::server::Server;

/// How long one poll waits for a result, in seconds.
const POLL_SECONDS: u64 = 25;
/// How long to wait after a failed poll.
const PAUSE: Duration = Duration::from_secs(1);

/// Another node, known by its URL.
#[derive(Clone, Debug)]
pub struct Peer {
    agent: Agent,
    identity: Identity,
}

impl Peer {
    /// Connects to the node at a URL, as the agent `me`.
    pub async fn connect(url: &str, me: Uuid) -> Result<Self, CallError> {
        let server = Server::new(url)?;
        let text = server.get(server.url(&["identity"])).await?.body;
        Ok(Self {
            identity: response::parse_message(&text)?,
            agent: Agent::with_server(server, me),
        })
    }

    /// Sets the retry policy for requests.
    pub fn with_retry(&self, timeout: RequestRetryPolicy) -> Self {
        Self { agent: self.agent.with_retry(timeout), identity: self.identity.clone() }
    }

    /// The node's identity and capabilities, as it states them itself.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sends a request. Temporary errors are retried with the same key, so that the node does the
    /// work once.
    pub async fn request(&self, order: &RequestSpec) -> Result<RequestReply, CallError> {
        self.agent.request(&order.clone().to(self.identity.agent_id)).await
    }

    /// Waits for the end of a request, across temporary errors.
    pub async fn result(
        &self,
        asked: &RequestReply,
        within: Duration,
    ) -> Result<RequestEnd, CallError> {
        let id = match &asked.response.answer {
            ResponseAnswer::Accepted { collaboration_id, .. } => *collaboration_id,
            ResponseAnswer::Rejected(why) => return Ok(RequestEnd::Rejected(why.clone())),
            ResponseAnswer::Deferred { .. } => {
                return Err(CallError::Unreadable("a direct node must not defer".to_owned()));
            }
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let seconds = left.as_secs().min(POLL_SECONDS);
            let seen = self.poll(id, seconds).await;
            match &seen {
                Ok(seen) => match RequestEnd::of(seen)? {
                    Some(end) => return Ok(end),
                    None if left.is_zero() => return Ok(RequestEnd::Pending(seen.state)),
                    None => {}
                },
                Err(error) if min_retry_delay(error).is_some() && !left.is_zero() => {}
                Err(_) => return seen.map(|seen| RequestEnd::Pending(seen.state)),
            }
            // A poll that waited needs no extra delay.
            if seconds == 0 || seen.is_err() {
                sleep(left.min(PAUSE)).await;
            }
        }
    }

    /// The state of a collaboration, after waiting up to this many seconds for its end.
    async fn poll(&self, id: Uuid, seconds: u64) -> Result<Collaboration, CallError> {
        let mut url = self.agent.server().url(&["collaborations", &id.to_string()]);
        url.query_pairs_mut().append_pair("wait", &seconds.to_string());
        Collaboration::from_response(&self.agent.server().get(url).await?)
    }

    /// Cancels a collaboration; returns the `cancelled` result.
    pub async fn cancel(
        &self,
        id: Uuid,
        reason: Option<&str>,
    ) -> Result<CollaborationResult, CallError> {
        self.agent.cancel(id, reason).await
    }
}
