//! Envelopes in both directions over one WebSocket, which belongs to the agent that sends HELLO
//! first.
//!
//! It carries the same as POST and the inbox. Unlike the inbox it has no positions: it starts with
//! what is not acknowledged, and [`Agent::messages`] returns the positions to acknowledge. TLS is
//! not supported; use the inbox there.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rialto_protocols::agora::wire::envelope;
use rialto_protocols::agora::{BODY_MAX, Envelope, MessageType, Receipt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async_with_config};

use super::agent::Agent;
use super::hello::{Profile, WelcomeResponse};
use super::identity::{SignedEnvelope, new_id};
use super::inbox::InboxError;
use super::incoming::{IncomingEnvelope, TrustError};
use crate::call::CallError;
use crate::clock;

/// Timeout for the connection, and for the response to the HELLO.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(10);
/// Idle timeout; servers ping every 15 seconds.
const SILENCE_MAX: Duration = Duration::from_secs(90);
/// Maximum frame size: an envelope, and some extra for servers that allow more.
const FRAME_BYTES_MAX: usize = BODY_MAX + (64 << 10);

/// An open connection.
#[derive(Debug)]
pub struct Socket {
    agent: Agent,
    stream: WebSocketStream<MaybeTlsStream<TcpStream>>,
    /// The receipt for the next envelope.
    receipt: Option<String>,
    welcome: Option<WelcomeResponse>,
}

/// A frame received from the hub.
#[derive(Clone, Debug)]
pub enum Frame {
    /// The hub's response to an envelope of ours, named by `message_id`: a STATUS that it was
    /// accepted, or an ERROR.
    Answer(Box<IncomingEnvelope>),
    /// An envelope for this agent, proven by its receipt.
    Envelope(Box<IncomingEnvelope>),
}

impl Agent {
    /// Opens a WebSocket and sends HELLO on it.
    pub async fn socket(&self, profile: &Profile) -> Result<Socket, CallError> {
        let mut url = self.server().url(&["ws"]);
        if url.scheme() != "http" || url.set_scheme("ws").is_err() {
            let hint = "read the inbox instead; it brings the same envelopes".to_owned();
            return Err(CallError::invalid(
                "WebSocket is supported only for http:// hubs",
                Some(hint),
            ));
        }
        let config = WebSocketConfig::default()
            .max_message_size(Some(FRAME_BYTES_MAX))
            .max_frame_size(Some(FRAME_BYTES_MAX));
        let late = || CallError::TimedOut { url: url.to_string() };
        let connect = connect_async_with_config(url.as_str(), Some(config), true);
        let connected = timeout(CONNECT_TIME_MAX, connect).await.map_err(|_| late())?;
        let (stream, _) = connected.map_err(broken)?;
        let mut socket = Socket { agent: self.clone(), stream, receipt: None, welcome: None };
        let hello = timeout(CONNECT_TIME_MAX, socket.hello(profile));
        socket.welcome = Some(hello.await.map_err(|_| late())??);
        Ok(socket)
    }
}

impl Socket {
    /// The hub's WELCOME.
    pub fn welcome(&self) -> Option<&WelcomeResponse> {
        self.welcome.as_ref()
    }

    /// Sends an envelope; the hub's response comes as a [`Frame::Answer`].
    pub async fn send(&mut self, envelope: &SignedEnvelope) -> Result<(), CallError> {
        self.stream.send(Message::text(envelope.as_str())).await.map_err(broken)
    }

    /// Waits for the next frame; `None` when the connection is closed. Then open another: what was
    /// not acknowledged comes again. An envelope that cannot be trusted is an error, and the next
    /// ones follow.
    pub async fn next(&mut self) -> Option<Result<Frame, InboxError>> {
        loop {
            let text = self.text().await?;
            if self.receipt.is_none() && is_receipt(&text, &self.agent) {
                self.receipt = Some(text);
                continue;
            }
            return Some(self.read(&text).map_err(InboxError::from));
        }
    }

    fn read(&mut self, text: &str) -> Result<Frame, TrustError> {
        let reader = self.agent.trust_context();
        if let Some(receipt) = self.receipt.take() {
            let incoming = IncomingEnvelope::verify_receipt(text, Some(&receipt), None, reader)?;
            return Ok(Frame::Envelope(Box::new(incoming)));
        }
        let incoming = IncomingEnvelope::verify_fresh(text, clock::now(), reader)?;
        if incoming.sender != reader.hub {
            return Err(TrustError::NoReceipt);
        }
        Ok(Frame::Answer(Box::new(incoming)))
    }

    async fn hello(&mut self, profile: &Profile) -> Result<WelcomeResponse, CallError> {
        let nonce = new_id()?;
        let payload = profile.payload(&nonce, false);
        let hub = self.agent.server().key();
        let hello = self.agent.identity().sign(MessageType::Hello, &payload, Some(hub))?;
        self.send(&hello).await?;
        let closed = || CallError::unreadable("the server closed the connection");
        let text = self.text().await.ok_or_else(closed)?;
        WelcomeResponse::read(&text, &hello, &nonce, clock::now(), self.agent.trust_context())
    }

    /// The next text frame.
    async fn text(&mut self) -> Option<String> {
        loop {
            match timeout(SILENCE_MAX, self.stream.next()).await.ok()?? {
                Ok(Message::Text(text)) => return Some(text.as_str().to_owned()),
                Ok(Message::Close(_)) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }
}

/// Whether a frame is the hub's receipt for the next one.
fn is_receipt(text: &str, agent: &Agent) -> bool {
    let Ok(json) = envelope::read_json(text.as_bytes()) else { return false };
    Envelope::read(&json).is_ok_and(|envelope| {
        let of_hub =
            envelope.sender == agent.server().key() && envelope.message_type == MessageType::Status;
        of_hub && Receipt::read(envelope.payload).is_some()
    })
}

fn broken(error: tokio_tungstenite::tungstenite::Error) -> CallError {
    CallError::unreadable(format!("the WebSocket connection failed: {error}"))
}
