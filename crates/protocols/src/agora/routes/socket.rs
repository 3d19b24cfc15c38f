//! `GET /ws`: envelopes in both directions over one WebSocket. The first HELLO decides whose
//! connection it is.

use std::net::SocketAddr;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use bytes::Bytes;

use super::{Answered, Refused};
use crate::agora::failure::Failure;
use crate::agora::feed::Frames;
use crate::agora::intake::{self, Taken, Untaken, Way};
use crate::agora::{BODY_MAX, refusals, say};
use crate::adapter::Floor;
use crate::adapter::inbox_stream::{Feed, From};
use crate::adapter::peer::Peer;
use crate::adapter::shutdown::Stopping;

/// How long a connection may stay without a HELLO.
const HELLO_WITHIN: Duration = Duration::from_secs(10);
/// How long sending one frame may take. A slower reader must reconnect and resume.
const FRAME_WITHIN: Duration = Duration::from_secs(30);

/// The number of unverifiable frames after which a connection is closed.
const BAD_MAX: u32 = 16;

/// Opens the connection.
pub async fn open(
    State(floor): State<Floor>,
    Peer(peer): Peer,
    stopping: Stopping,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Answered {
    let wrong = |_| {
        let text = "this is a WebSocket endpoint: send Connection: Upgrade and Upgrade: websocket";
        Refused::new(&floor, Failure { http: 426, ..Failure::bad_request(text) })
    };
    let upgrade = upgrade.map_err(wrong)?;
    let upgrade = upgrade.max_message_size(BODY_MAX).max_frame_size(BODY_MAX);
    let floor = floor.clone();
    Ok(upgrade.on_upgrade(move |socket| Line { floor, socket, peer, bad: 0 }.run(stopping))
        as Response)
}

/// One connection.
struct Line {
    floor: Floor,
    socket: WebSocket,
    peer: Option<SocketAddr>,
    /// Unverifiable frames so far.
    bad: u32,
}

/// The connection is closed.
struct Gone;

impl Line {
    async fn run(mut self, stopping: Stopping) {
        let hello = tokio::time::timeout(HELLO_WITHIN, self.hello()).await;
        if let Ok(Ok(taken)) = hello {
            let _ = self.talk(taken, stopping).await;
        }
        let _ = tokio::time::timeout(FRAME_WITHIN, self.socket.send(Message::Close(None))).await;
    }

    /// The first frame decides whose connection it is: a HELLO signed for this hub, never seen
    /// before.
    async fn hello(&mut self) -> Result<Taken, Gone> {
        loop {
            let text = match self.socket.recv().await {
                Some(Ok(Message::Text(text))) => text,
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => continue,
                Some(Ok(Message::Binary(_))) => {
                    self.refuse(only_text().into()).await?;
                    return Err(Gone);
                }
                _ => return Err(Gone),
            };
            let way = Way { peer: self.peer, greets: true, ..Way::default() };
            let taken = match self.take(text.as_bytes(), way).await {
                Ok(taken) if taken.hello_to_hub => taken,
                // The same HELLO on two connections at once opens only the first.
                Ok(_) => {
                    self.refuse(intake::not_a_greeting().into()).await?;
                    return Err(Gone);
                }
                Err(untaken) => {
                    self.refuse(untaken).await?;
                    return Err(Gone);
                }
            };
            self.say(taken.text.clone()).await?;
            return Ok(taken);
        }
    }

    /// Answers incoming envelopes and forwards the agent's inbox.
    async fn talk(&mut self, hello: Taken, stopping: Stopping) -> Result<(), Gone> {
        let (floor, from) = (self.floor.clone(), From::Unacknowledged);
        let mut feed = Feed::new(floor, hello.by, Frames, from, stopping);
        loop {
            tokio::select! {
                came = self.socket.recv() => match came {
                    Some(Ok(Message::Text(text))) => self.answer(&hello, text.as_bytes()).await?,
                    Some(Ok(Message::Binary(_))) => self.refuse(only_text().into()).await?,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {
                        self.floor.engine.seen(hello.by);
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(Gone),
                },
                news = feed.next() => match news {
                    Some(lines) => self.pass_on(&lines).await?,
                    None => return Ok(()),
                },
            }
        }
    }

    async fn answer(&mut self, hello: &Taken, bytes: &[u8]) -> Result<(), Gone> {
        let way = Way { from: Some(hello.key), peer: self.peer, ..Way::default() };
        match self.take(bytes, way).await {
            Ok(taken) => self.say(taken.text).await,
            Err(untaken) => self.refuse(untaken).await,
        }
    }

    /// A frame counts like a posted envelope: signature checks are limited by network address.
    async fn take(&mut self, bytes: &[u8], way: Way) -> Result<Taken, Untaken> {
        let counted = self.floor.writes.count_check(self.peer);
        counted.map_err(|trouble| Untaken::from(refusals::trouble(&trouble)))?;
        intake::take(&self.floor, bytes, way).await
    }

    async fn pass_on(&mut self, lines: &Bytes) -> Result<(), Gone> {
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
    async fn refuse(&mut self, untaken: Untaken) -> Result<(), Gone> {
        self.bad += u32::from(untaken.to.is_none());
        self.say(say::error(&self.floor, &untaken.failure, untaken.to)).await?;
        if self.bad >= BAD_MAX { Err(Gone) } else { Ok(()) }
    }

    async fn say(&mut self, text: String) -> Result<(), Gone> {
        self.send(Message::Text(text.into())).await
    }

    async fn send(&mut self, message: Message) -> Result<(), Gone> {
        let sent = tokio::time::timeout(FRAME_WITHIN, self.socket.send(message)).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }
}

fn only_text() -> Failure {
    Failure::bad_request("send each envelope as one text frame")
}
