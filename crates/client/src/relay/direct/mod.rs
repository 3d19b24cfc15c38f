//! Direct delivery from agent to agent, without a server: each knows the other's endpoint (spec,
//! section 3).
//!
//! [`serve`] is for agents that read messages. An agent that does work for its senders is served by
//! [`agent::direct::serve`](crate::agent::direct::serve): the reply to an envelope is then
//! `{"status":"ok","reply":…}` with the result as text, and `output` if the result is more than a
//! text.
//!
//! ```no_run
//! use rialto_client::relay::{EnvelopeSpec, direct};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let envelope = EnvelopeSpec::new("alice@home.example", "en", "Coffee this afternoon?").build()?;
//! let reply = direct::send("http://127.0.0.1:8010/receive", &envelope).await?;
//! println!("{}", reply.raw);
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod receiver;

use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use rialto_protocols::relay::wire::envelope::write_receive_body;
use rialto_protocols::relay::wire::reply::{self, ReplyStatus};
use url::Url;

use super::message::ValidEnvelope;
use crate::call::CallError;
use crate::origin_client::{self, OriginClient, parse_http_url, retry_after};

pub(crate) use endpoint::endpoint;
pub use receiver::{AdaptError, EnvelopeReceiver, ReceivedEnvelope, ReceiverResponse, serve};

/// Maximum size of a reply and of an envelope.
pub const BODY_BYTES_MAX: usize = 64 << 10;

/// Another agent, known by its endpoint.
#[derive(Clone, Debug)]
pub struct Peer {
    client: OriginClient,
    endpoint: Url,
}

/// Another agent's reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PeerReply {
    /// The status of the reply.
    pub status: ReplyStatus,
    /// The reply as received: JSON text.
    pub raw: String,
}

/// Sends one envelope directly to an agent's endpoint.
pub async fn send(endpoint: &str, envelope: &ValidEnvelope) -> Result<PeerReply, CallError> {
    Peer::new(endpoint)?.send(envelope).await
}

impl Peer {
    /// The agent with this endpoint.
    pub fn new(endpoint: &str) -> Result<Self, CallError> {
        let endpoint = parse_http_url(endpoint)?;
        Ok(Self { client: OriginClient::new(&endpoint)?, endpoint })
    }

    /// Sends an envelope and reads the reply. A reply that contains an error is still a reply; a
    /// response in another format is an error of the call.
    pub async fn send(&self, envelope: &ValidEnvelope) -> Result<PeerReply, CallError> {
        // The envelope is sent as it is; the caller may wrap it in an A2A message.
        let body = write_receive_body(envelope.as_str(), None, "");
        let request = self.client.request(Method::POST, self.endpoint.clone())?;
        let request = request.header(CONTENT_TYPE, "application/json").body(body);
        let mut answer = origin_client::send(request).await?;
        let (status, after) = (answer.status(), retry_after(answer.headers()));
        let body = origin_client::read_body(&mut answer, BODY_BYTES_MAX).await?;
        match reply::Reply::read(&body) {
            Some(reply) if status.is_success() || *reply.status() != ReplyStatus::Other => {
                Ok(PeerReply { status: reply.status().clone(), raw: reply.raw().to_owned() })
            }
            None if status.is_success() => {
                Err(CallError::Unreadable("the reply is not a JSON object".to_owned()))
            }
            _ => Err(origin_client::refusal_from_body(status, after, &body)),
        }
    }
}

#[cfg(test)]
mod tests;
