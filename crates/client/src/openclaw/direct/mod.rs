//! Direct calls from node to node, without a hub: a request goes to the node itself, and its result
//! is fetched there.
//!
//! [`agent::direct::serve`](crate::agent::direct::serve) serves a node, which answers
//!
//! | path | with |
//! |---|---|
//! | `GET /openclaw/identity` | its identity and capabilities |
//! | `GET /openclaw/status`, `GET /openclaw/reputation` | its status, and the reputation it claims |
//! | `POST /openclaw`, `…/messages`, `…/collaborations` | an immediate response to a collaboration request |
//! | `GET /openclaw/collaborations/{id}?wait=0…30` | the state of a collaboration, after waiting for its result |
//! | `POST /openclaw/collaborations/{id}/cancel` | the `cancelled` result |
//! | `GET /openclaw/health` | a health check |
//!
//! The checks are the hub's, in the same order, except for what only a hub has: there are no keys
//! and no credits, so a `budget` is only a promise. A caller that knows a collaboration's id counts
//! as one of its two parties.
//!
//! A [`Peer`] calls such a node.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::openclaw::direct::Peer;
//! use rialto_client::openclaw::{RequestSpec, Uuid};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let me = Uuid::parse_str("ee0e8400-e29b-41d4-a716-446655440009")?;
//! let peer = Peer::connect("http://127.0.0.1:8010", me).await?;
//! let asked = peer.request(&RequestSpec::new("count_words", r#"{"text":"one two"}"#)).await?;
//! println!("{:?}", peer.result(&asked, Duration::from_secs(60)).await?);
//! # Ok(())
//! # }
//! ```

mod collaboration;
mod endpoint;
mod node;
mod service;

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

pub(crate) use endpoint::endpoint;

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
    pub fn with_retry(&self, retry: RequestRetryPolicy) -> Self {
        Self { agent: self.agent.with_retry(retry), identity: self.identity.clone() }
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
        reply: &RequestReply,
        timeout: Duration,
    ) -> Result<RequestEnd, CallError> {
        let id = match &reply.response.answer {
            ResponseAnswer::Accepted { collaboration_id, .. } => *collaboration_id,
            ResponseAnswer::Rejected(why) => return Ok(RequestEnd::Rejected(why.clone())),
            ResponseAnswer::Deferred { .. } => {
                return Err(CallError::Unreadable("a direct node must not defer".to_owned()));
            }
        };
        let until = Instant::now() + timeout;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let seconds = left.as_secs().min(POLL_SECONDS);
            let polled = self.poll(id, seconds).await;
            match &polled {
                Ok(collaboration) => match RequestEnd::of(collaboration)? {
                    Some(end) => return Ok(end),
                    None if left.is_zero() => return Ok(RequestEnd::Pending(collaboration.state)),
                    None => {}
                },
                Err(error) if min_retry_delay(error).is_some() && !left.is_zero() => {}
                Err(_) => return polled.map(|one| RequestEnd::Pending(one.state)),
            }
            // A poll that waited needs no extra delay.
            if seconds == 0 || polled.is_err() {
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
