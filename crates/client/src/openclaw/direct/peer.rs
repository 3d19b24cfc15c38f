//! The requester's side: calls a node at its URL.

use std::time::Duration;

use rialto_protocols::openclaw::message::{Answer, Identity, Output};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use crate::call::CallError;
use crate::openclaw::agent::Agent;
use crate::openclaw::response;
use crate::openclaw::collaboration::Collaboration;
use crate::openclaw::request_spec::Order;
use crate::openclaw::retry::{Patience, passing};
use crate::openclaw::request::Asked;
use crate::openclaw::server::Server;
use crate::openclaw::wait::End;

/// How long one poll waits for a result, in seconds.
const LOOK_SECONDS: u64 = 25;
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
    pub async fn find(url: &str, me: Uuid) -> Result<Self, CallError> {
        let server = Server::new(url)?;
        let text = server.get(server.at(&["identity"])).await?.text;
        Ok(Self { identity: response::said(&text)?, agent: Agent::at(server, me) })
    }

    /// Sets the retry policy for requests.
    pub fn with_patience(&self, patience: Patience) -> Self {
        Self { agent: self.agent.with_patience(patience), identity: self.identity.clone() }
    }

    /// The node's identity and capabilities, as it states them itself.
    pub fn identity(&self) -> &Identity {
        &self.identity
    }

    /// Sends a request. Temporary errors are retried with the same key, so that the node does the
    /// work once.
    pub async fn request(&self, order: &Order) -> Result<Asked, CallError> {
        self.agent.request(&order.clone().of(self.identity.agent_id)).await
    }

    /// Waits for the end of a request, across temporary errors.
    pub async fn result(&self, asked: &Asked, within: Duration) -> Result<End, CallError> {
        let id = match &asked.response.answer {
            Answer::Accepted { collaboration_id, .. } => *collaboration_id,
            Answer::Rejected(why) => return Ok(End::Rejected(why.clone())),
            Answer::Deferred { .. } => {
                return Err(CallError::Unreadable("a direct node must not defer".to_owned()));
            }
        };
        let until = Instant::now() + within;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let seconds = left.as_secs().min(LOOK_SECONDS);
            let seen = self.look(id, seconds).await;
            match &seen {
                Ok(seen) => match End::of(seen)? {
                    Some(end) => return Ok(end),
                    None if left.is_zero() => return Ok(End::NotYet(seen.state)),
                    None => {}
                },
                Err(error) if passing(error).is_some() && !left.is_zero() => {}
                Err(_) => return seen.map(|seen| End::NotYet(seen.state)),
            }
            // A poll that waited needs no extra delay.
            if seconds == 0 || seen.is_err() {
                sleep(left.min(PAUSE)).await;
            }
        }
    }

    /// The state of a collaboration, after waiting up to this many seconds for its end.
    async fn look(&self, id: Uuid, seconds: u64) -> Result<Collaboration, CallError> {
        let mut url = self.agent.server().at(&["collaborations", &id.to_string()]);
        url.query_pairs_mut().append_pair("wait", &seconds.to_string());
        Collaboration::seen(&self.agent.server().get(url).await?)
    }

    /// Cancels a collaboration; returns the `cancelled` result.
    pub async fn cancel(&self, id: Uuid, reason: Option<&str>) -> Result<Output, CallError> {
        self.agent.cancel(id, reason).await
    }
}
