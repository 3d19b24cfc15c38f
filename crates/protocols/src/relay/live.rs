//! Streamed replies: the receiver's event stream, relayed to the sender event by event (R81).
//!
//! Frames are parsed and written anew, never piped, so a receiver can only produce the three
//! defined events. Few events are buffered: a sender that reads slowly slows the receiver down, and
//! one that disconnects ends the call.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use rialto_core::id::NoticeId;
use rialto_core::notice::Push;
use rialto_engine::delivery::egress::{Answer, Opened, SendError};
use rialto_engine::delivery::{self, ANSWER_MAX, Arrived, Courier, Verdict};
use tokio::sync::mpsc;

use super::attempt::kept;
use super::codes::Code;
use super::courier::{RelayCourier, is_gone, said};
use super::delivery::{Delivery, Outcome};
use super::reply::OK;
use super::stream::{self as words, Word};
use crate::adapter::Floor;
use crate::kit::sse::Parser;

/// How many events are buffered for the sender.
const UNDER_WAY: usize = 16;
/// The maximum size of a receiver's stream, and of one event in it, in bytes.
const STREAM_MAX: usize = 4 << 20;
const FRAME_MAX: usize = 64 << 10;
/// The maximum size of the text of all chunks, kept for a `done` that does not repeat it.
const TEXT_MAX: usize = 1 << 20;
/// How long a receiver's stream may last.
pub const WHOLE: Duration = Duration::from_secs(600);

/// Calls the receiver and streams its reply.
pub fn relay(floor: &Floor, notice: NoticeId) -> Response {
    let (events, heard) = mpsc::channel(UNDER_WAY);
    let call = Call { floor: floor.clone(), notice, events };
    tokio::spawn(call.run());
    let body = stream::unfold(heard, async |mut heard: mpsc::Receiver<Bytes>| {
        let next = heard.recv().await?;
        Some((Ok::<_, std::convert::Infallible>(next), heard))
    });
    let mut answer = Response::new(Body::from_stream(body));
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// The sender disconnected.
struct Left;

/// One call of a receiver.
struct Call {
    floor: Floor,
    notice: NoticeId,
    events: mpsc::Sender<Bytes>,
}

/// How the receiver's stream ended.
enum End {
    Done {
        reply: String,
    },
    Failed {
        code: Code,
        why: String,
        gone: bool,
    },
    /// The receiver itself reported a failure with this event.
    Error {
        said: Word,
        why: String,
    },
    /// The sender disconnected; the receiver had answered 2xx, so it has the message.
    Left,
    /// The message was read in the inbox before it could be sent.
    Read,
    /// The receiver's host has too many calls running.
    Waits,
}

impl Call {
    async fn run(self) {
        let push = self.floor.engine.look(|world| world.push(self.notice).cloned());
        let Some(push) = push else { return self.conclude(Outcome::Presented).await };
        let Some(push) = delivery::with_text(&self.floor.engine, &push).await else {
            return self.conclude(Outcome::Queued).await;
        };
        let end = self.hear(&push).await;
        if matches!(end, End::Waits) {
            return self.conclude(Outcome::Queued).await;
        }
        let why = match &end {
            End::Failed { code, why, gone } => Some((*code, why.clone(), *gone)),
            End::Error { why, .. } => Some((Code::AgentUnreachable, why.clone(), false)),
            End::Done { .. } | End::Left | End::Read | End::Waits => None,
        };
        let failed = why.as_ref().map(|(code, why, gone)| {
            let attempts = (!gone).then_some(push.attempts + 1);
            (*code, kept(why, attempts))
        });
        let arrived = match (&end, why) {
            (_, Some((_, _, true))) => Arrived::Gone,
            (_, Some((_, why, false))) => Arrived::No(why),
            (End::Done { reply }, None) => Arrived::Yes { reply: Some(reply.clone()) },
            (End::Read, None) => Arrived::Over,
            (_, None) => Arrived::Yes { reply: Some(OK.to_owned()) },
        };
        // Recorded first, reported second.
        let verdict = Verdict { arrived, commands: Vec::new() };
        delivery::record(&self.floor.engine, &push, verdict).await;
        let error = match (&end, &failed) {
            (End::Error { said, .. }, _) => Some(said.clone()),
            (_, Some((code, detail))) => {
                Some(Word::Error { code: code.as_str().to_owned(), message: detail.clone() })
            }
            (_, None) => None,
        };
        if let Some(error) = error {
            let _ = self.tell(|out| error.write(out)).await;
        }
        let outcome = match (&end, &failed) {
            (_, Some((code, detail))) => Outcome::Failed { code: *code, detail },
            (End::Read, None) => Outcome::Presented,
            (End::Done { reply }, None) => Outcome::Delivered { reply },
            (_, None) => Outcome::Delivered { reply: OK },
        };
        self.conclude(outcome).await;
    }

    /// The last event: the delivery report.
    async fn conclude(&self, outcome: Outcome<'_>) {
        self.floor.relay.tally.count(&outcome);
        let trace = self.floor.relay.traces.of(self.notice).to_string();
        let told = Delivery { outcome, trace_id: &trace, loop_guard: false };
        let _ = self.tell(|out| words::delivery(out, &told)).await;
    }

    async fn hear(&self, push: &Push) -> End {
        let courier = RelayCourier { floor: self.floor.clone() };
        let engine = &self.floor.engine;
        let Some(letter) = courier.letter(engine, push, None) else { return End::Read };
        if self.floor.egress.take_turn(&letter.url, engine.now()).is_err() {
            return End::Waits;
        }
        let mut headers = delivery::headers(engine, push.to, &letter);
        headers.push(("accept".to_owned(), "text/event-stream, application/json".to_owned()));
        let egress = &self.floor.egress;
        let opened = egress.open(&letter.url, headers, letter.body, STREAM_MAX, WHOLE).await;
        match opened {
            Ok(opened) if opened.status < 300 && opened.media_type == "text/event-stream" => {
                self.stream(opened).await.unwrap_or(End::Left)
            }
            Ok(opened) => self.whole(opened).await,
            Err(error) => failed(&Err(error)),
        }
    }

    /// The answer of a receiver that does not stream becomes one event (R82).
    async fn whole(&self, mut opened: Opened<'_>) -> End {
        let mut body = Vec::new();
        let answer = loop {
            match opened.next().await {
                Ok(Some(piece)) if body.len() + piece.len() <= ANSWER_MAX => {
                    body.extend_from_slice(&piece);
                }
                Ok(Some(_)) => break Err(SendError::Broken("the response is too large".to_owned())),
                Ok(None) => break Ok(Answer { status: opened.status, body: body.into() }),
                Err(error) => break Err(error),
            }
        };
        match said(&answer) {
            Ok(reply) => {
                let word = Word::Done { full_text: reply.clone(), envelope: None };
                // The result is the same whether the sender still reads or not.
                let _ = self.tell(|out| word.write(out)).await;
                End::Done { reply }
            }
            Err(_) => failed(&answer),
        }
    }

    async fn stream(&self, mut opened: Opened<'_>) -> Result<End, Left> {
        let (mut parser, mut events, mut text) =
            (Parser::new(FRAME_MAX), Vec::new(), String::new());
        loop {
            let piece = tokio::select! {
                piece = opened.next() => piece,
                // A silent receiver is not waited for once the sender has disconnected.
                () = self.events.closed() => return Err(Left),
            };
            let piece = match piece {
                Ok(Some(piece)) => piece,
                Ok(None) => {
                    return Ok(broken_off("the receiver's stream ended without a `done` event"));
                }
                Err(error) => return Ok(failed(&Err(error))),
            };
            let too_large = parser.push(&piece, &mut events).is_err();
            for event in events.drain(..) {
                match Word::read(&event) {
                    Some(Word::Chunk { text: more }) => {
                        if text.len() + more.len() <= TEXT_MAX {
                            text.push_str(&more);
                        }
                        self.tell(|out| Word::Chunk { text: more }.write(out)).await?;
                    }
                    Some(Word::Done { full_text, envelope }) => {
                        let full_text = if full_text.is_empty() { text } else { full_text };
                        self.tell(|out| Word::Done { full_text, envelope }.write(out)).await?;
                        return Ok(End::Done { reply: OK.to_owned() });
                    }
                    Some(Word::Error { code, message }) => {
                        let why = format!("the receiver reported {code}: {message}");
                        return Ok(End::Error { said: Word::Error { code, message }, why });
                    }
                    None => {}
                }
            }
            // The complete events before it have been sent.
            if too_large {
                return Ok(broken_off("an event of the receiver's stream is too large"));
            }
        }
    }

    async fn tell(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), Left> {
        let mut out = Vec::new();
        write(&mut out);
        self.events.send(out.into()).await.map_err(|_| Left)
    }
}

fn broken_off(why: &str) -> End {
    End::Failed { code: Code::AgentUnreachable, why: why.to_owned(), gone: false }
}

fn failed(answer: &Result<Answer, SendError>) -> End {
    let (code, why) = said(answer).err().unwrap_or((Code::AgentUnreachable, String::new()));
    End::Failed { code, why, gone: is_gone(answer) }
}
