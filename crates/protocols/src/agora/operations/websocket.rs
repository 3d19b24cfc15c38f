//! `GET /ws`: envelopes in both directions over one WebSocket. The first HELLO decides whose
//! connection it is.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;

use super::inbox::FrameEncoder;
use crate::adapter::inbox_stream::{InboxStream, StreamStart};
use crate::adapter::peer::Peer;
use crate::adapter::shutdown::Shutdown;
use crate::agora::AgoraContext;
use crate::agora::BODY_MAX;
use crate::agora::envelope::{
    AcceptedEnvelope, EnvelopeError, EnvelopeSource, accept_envelope, hello_required,
};
use crate::agora::errors::{self, ErrorResponse, HandlerResult};
use crate::agora::hub_envelope::signed_error;
use crate::agora::wire::error::Failure;

/// How long a connection may stay without a HELLO.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long sending one frame may take. A slower reader must reconnect and resume.
const FRAME_WITHIN: Duration = Duration::from_secs(30);

/// The number of unverifiable frames after which a connection is closed.
const BAD_MAX: u32 = 16;

/// Opens the connection.
pub async fn open_socket(
    State(context): State<AgoraContext>,
    Peer(peer): Peer,
    stopping: Shutdown,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> HandlerResult {
    let wrong = |_| {
        let text = "this is a WebSocket endpoint: send Connection: Upgrade and Upgrade: websocket";
        ErrorResponse::new(&context, Failure { http_status: 426, ..Failure::bad_request(text) })
    };
    let upgrade = upgrade.map_err(wrong)?;
    let upgrade = upgrade.max_message_size(BODY_MAX).max_frame_size(BODY_MAX);
    let context = context.clone();
    Ok(upgrade.on_upgrade(move |socket| Connection { context, socket, peer, bad: 0 }.run(stopping))
        as Response)
}

/// One connection.
struct Connection {
    context: AgoraContext,
    socket: WebSocket,
    peer: Option<SocketAddr>,
    /// Unverifiable frames so far.
    bad: u32,
}

/// The connection is closed.
struct ConnectionClosed;

impl Connection {
    async fn run(mut self, stopping: Shutdown) {
        let hello = tokio::time::timeout(HELLO_WITHIN, self.hello()).await;
        if let Ok(Ok(taken)) = hello {
            let _ = self.talk(taken, stopping).await;
        }
        let _ = tokio::time::timeout(FRAME_WITHIN, self.socket.send(Message::Close(None))).await;
    }

    /// The first frame decides whose connection it is: a HELLO signed for this hub, never seen
    /// before.
    async fn hello(&mut self) -> Result<AcceptedEnvelope, ConnectionClosed> {
        loop {
            let text = match self.socket.recv().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Binary(_))) => {
                    self.refuse(only_text().into()).await?;
                    return Err(ConnectionClosed);
                }
                _ => return Err(ConnectionClosed),
            };
            let way = EnvelopeSource {
                peer: self.peer,
                must_be_hello: true,
                ..EnvelopeSource::default()
            };
            let taken = match self.take(text.as_bytes(), way).await {
                Ok(taken) if taken.hello_to_hub => taken,
                // The same HELLO on two connections at once opens only the first.
                Ok(_) => {
                    self.refuse(hello_required().into()).await?;
                    return Err(ConnectionClosed);
                }
                Err(error) => {
                    self.refuse(error).await?;
                    return Err(ConnectionClosed);
                }
            };
            self.say(taken.text.clone()).await?;
            return Ok(taken);
        }
    }

    /// Answers incoming envelopes and forwards the agent's inbox.
    async fn talk(
        &mut self,
        hello: AcceptedEnvelope,
        stopping: Shutdown,
    ) -> Result<(), ConnectionClosed> {
        let (context, from) = (self.context.clone(), StreamStart::Unacknowledged);
        let mut feed = InboxStream::new(context, hello.sender, FrameEncoder, from, stopping);
        loop {
            tokio::select! {
                came = self.socket.recv() => match came {
                    Some(Ok(Message::Text(text))) => self.answer(&hello, text.as_bytes()).await?,
                    Some(Ok(Message::Binary(_))) => self.refuse(only_text().into()).await?,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        self.context.engine.record_seen(hello.sender);
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(ConnectionClosed),
                },
                news = feed.next() => match news {
                    Some(lines) => self.pass_on(&lines).await?,
                    None => return Ok(()),
                },
            }
        }
    }

    async fn answer(
        &mut self,
        hello: &AcceptedEnvelope,
        bytes: &[u8],
    ) -> Result<(), ConnectionClosed> {
        let way = EnvelopeSource {
            connection_key: Some(hello.key),
            peer: self.peer,
            ..EnvelopeSource::default()
        };
        match self.take(bytes, way).await {
            Ok(taken) => self.say(taken.text).await,
            Err(error) => self.refuse(error).await,
        }
    }

    /// A frame counts like a posted envelope: signature checks are limited by network address.
    async fn take(
        &mut self,
        bytes: &[u8],
        way: EnvelopeSource,
    ) -> Result<AcceptedEnvelope, EnvelopeError> {
        let counted = self.context.write_limiter.count_signature_check(self.peer);
        let refuse = |error| EnvelopeError::from(errors::from_edge(error));
        counted.map_err(refuse)?;
        self.context.prepare_write().await.map_err(refuse)?;
        accept_envelope(&self.context, bytes, way).await
    }

    async fn pass_on(&mut self, lines: &Bytes) -> Result<(), ConnectionClosed> {
        if lines.is_empty() {
            return self.send(Message::Ping(Bytes::new())).await;
        }
        for line in lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            self.say(String::from_utf8_lossy(line).into_owned()).await?;
        }
        Ok(())
    }

    /// Each unverifiable frame costs a signature check and a signed answer, and counts against no
    /// other limit, so only a few are allowed.
    async fn refuse(&mut self, error: EnvelopeError) -> Result<(), ConnectionClosed> {
        self.bad += u32::from(error.to.is_none());
        self.say(signed_error(&self.context, &error.failure, error.to)).await?;
        if self.bad >= BAD_MAX { Err(ConnectionClosed) } else { Ok(()) }
    }

    async fn say(&mut self, text: String) -> Result<(), ConnectionClosed> {
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), ConnectionClosed> {
        let sent = tokio::time::timeout(FRAME_WITHIN, self.socket.send(message)).await;
        sent.map_err(|_| ConnectionClosed)?.map_err(|_| ConnectionClosed)
    }
}

fn only_text() -> Failure {
    Failure::bad_request("send each envelope as one text frame")
}
