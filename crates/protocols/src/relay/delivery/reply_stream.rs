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
use rialto_core::notice::Delivery;
use rialto_engine::delivery::egress::{HttpResponse, SendError, StreamingResponse};
use rialto_engine::delivery::{
    self, AttemptResult, AttemptStatus, DeliveryEncoder, RESPONSE_BYTES_MAX,
};
use tokio::sync::mpsc;

use super::attempt::describe_retry;
use super::{RelayEncoder, is_gone, read_answer};
use crate::kit::sse::Parser;
use crate::relay::RelayContext;
use crate::relay::wire::reply::{OK, ReplyEvent, write_delivery_event};
use crate::relay::{Code, DeliveryOutcome, DeliveryReport};

/// How many events are buffered for the sender.
const UNDER_WAY: usize = 16;
/// The maximum size of a receiver's stream, and of one event in it, in bytes.
const STREAM_MAX: usize = 4 << 20;
const FRAME_MAX: usize = 64 << 10;
/// The maximum size of the text of all chunks, kept for a `done` that does not repeat it.
const TEXT_MAX: usize = 1 << 20;
/// How long a receiver's stream may last.
pub const STREAM_TIMEOUT: Duration = Duration::from_secs(600);

/// Calls the receiver and streams its reply.
pub fn stream_reply(hub_context: &RelayContext, notice: NoticeId) -> Response {
    let (events, heard) = mpsc::channel(UNDER_WAY);
    let call = ReceiverCall { hub_context: hub_context.clone(), notice, events };
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
struct SenderDisconnected;

/// One call of a receiver.
struct ReceiverCall {
    hub_context: RelayContext,
    notice: NoticeId,
    events: mpsc::Sender<Bytes>,
}

/// How the receiver's stream ended.
enum StreamEnd {
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
        said: ReplyEvent,
        why: String,
    },
    /// The sender disconnected; the receiver had answered 2xx, so it has the message.
    Left,
    /// The message was read in the inbox before it could be sent.
    Read,
    /// The receiver's host has too many calls running.
    Waits,
}

impl ReceiverCall {
    async fn run(self) {
        let push = self.hub_context.engine.with_world(|world| world.delivery(self.notice).cloned());
        let Some(push) = push else { return self.conclude(DeliveryOutcome::Streamed).await };
        let Some(push) = delivery::load_message_text(&self.hub_context.engine, &push).await else {
            return self.conclude(DeliveryOutcome::Queued).await;
        };
        let end = self.hear(&push).await;
        if matches!(end, StreamEnd::Waits) {
            return self.conclude(DeliveryOutcome::Queued).await;
        }
        let why = match &end {
            StreamEnd::Failed { code, why, gone } => Some((*code, why.clone(), *gone)),
            StreamEnd::Error { why, .. } => Some((Code::AgentUnreachable, why.clone(), false)),
            StreamEnd::Done { .. } | StreamEnd::Left | StreamEnd::Read | StreamEnd::Waits => None,
        };
        let failed = why.as_ref().map(|(code, why, gone)| {
            let attempts = (!gone).then_some(push.attempts + 1);
            (*code, describe_retry(why, attempts))
        });
        let arrived = match (&end, why) {
            (_, Some((_, _, true))) => AttemptStatus::EndpointGone,
            (_, Some((_, why, false))) => AttemptStatus::Failed(why),
            (StreamEnd::Done { reply }, None) => {
                AttemptStatus::Delivered { reply: Some(reply.clone()) }
            }
            (StreamEnd::Read, None) => AttemptStatus::Obsolete,
            (_, None) => AttemptStatus::Delivered { reply: Some(OK.to_owned()) },
        };
        // Recorded first, reported second.
        let verdict = AttemptResult { status: arrived, report: None };
        delivery::record_attempt(&self.hub_context.engine, &push, verdict).await;
        let error = match (&end, &failed) {
            (StreamEnd::Error { said, .. }, _) => Some(said.clone()),
            (_, Some((code, detail))) => {
                Some(ReplyEvent::Error { code: code.as_str().to_owned(), message: detail.clone() })
            }
            (_, None) => None,
        };
        if let Some(error) = error {
            let _ = self.tell(|out| error.write(out)).await;
        }
        let outcome = match (&end, &failed) {
            (_, Some((code, detail))) => DeliveryOutcome::Failed { code: *code, detail },
            (StreamEnd::Read, None) => DeliveryOutcome::Streamed,
            (StreamEnd::Done { reply }, None) => DeliveryOutcome::Delivered { reply },
            (_, None) => DeliveryOutcome::Delivered { reply: OK },
        };
        self.conclude(outcome).await;
    }

    /// The last event: the delivery report.
    async fn conclude(&self, outcome: DeliveryOutcome<'_>) {
        self.hub_context.state.delivery_counts.count(&outcome);
        let trace = self.hub_context.state.trace_ids.of(self.notice).to_string();
        let told = DeliveryReport { outcome, trace_id: &trace, loop_guard: false };
        let _ = self.tell(|out| write_delivery_event(out, &told)).await;
    }

    async fn hear(&self, push: &Delivery) -> StreamEnd {
        let encoder = RelayEncoder { context: self.hub_context.clone() };
        let engine = &self.hub_context.engine;
        let Some(outbound) = encoder.encode_if_due(engine, push, None) else {
            return StreamEnd::Read;
        };
        if self.hub_context.egress.try_acquire_call(&outbound.url, engine.now()).is_err() {
            return StreamEnd::Waits;
        }
        let mut headers = delivery::signed_headers(engine, push.to, &outbound);
        headers.push(("accept".to_owned(), "text/event-stream, application/json".to_owned()));
        let egress = &self.hub_context.egress;
        let opened = egress
            .post_streaming(&outbound.url, headers, outbound.body, STREAM_MAX, STREAM_TIMEOUT)
            .await;
        match opened {
            Ok(opened) if opened.status < 300 && opened.media_type == "text/event-stream" => {
                self.stream(opened).await.unwrap_or(StreamEnd::Left)
            }
            Ok(opened) => self.whole(opened).await,
            Err(error) => failed(&Err(error)),
        }
    }

    /// The answer of a receiver that does not stream becomes one event (R82).
    async fn whole(&self, mut opened: StreamingResponse) -> StreamEnd {
        let mut body = Vec::new();
        let answer = loop {
            match opened.next_chunk().await {
                Ok(Some(piece)) if body.len() + piece.len() <= RESPONSE_BYTES_MAX => {
                    body.extend_from_slice(&piece);
                }
                Ok(Some(_)) => {
                    break Err(SendError::InvalidResponse("the response is too large".to_owned()));
                }
                Ok(None) => break Ok(HttpResponse { status: opened.status, body: body.into() }),
                Err(error) => break Err(error),
            }
        };
        match read_answer(&answer) {
            Ok(reply) => {
                let word = ReplyEvent::Done { full_text: reply.clone(), envelope: None };
                // The result is the same whether the sender still reads or not.
                let _ = self.tell(|out| word.write(out)).await;
                StreamEnd::Done { reply }
            }
            Err(_) => failed(&answer),
        }
    }

    async fn stream(&self, mut opened: StreamingResponse) -> Result<StreamEnd, SenderDisconnected> {
        let (mut parser, mut events, mut text) =
            (Parser::new(FRAME_MAX), Vec::new(), String::new());
        loop {
            let piece = tokio::select! {
                piece = opened.next_chunk() => piece,
                // A silent receiver is not waited for once the sender has disconnected.
                () = self.events.closed() => return Err(SenderDisconnected),
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
                match ReplyEvent::read(&event) {
                    Some(ReplyEvent::Chunk { text: more }) => {
                        if text.len() + more.len() <= TEXT_MAX {
                            text.push_str(&more);
                        }
                        self.tell(|out| ReplyEvent::Chunk { text: more }.write(out)).await?;
                    }
                    Some(ReplyEvent::Done { full_text, envelope }) => {
                        let full_text = if full_text.is_empty() { text } else { full_text };
                        self.tell(|out| ReplyEvent::Done { full_text, envelope }.write(out))
                            .await?;
                        return Ok(StreamEnd::Done { reply: OK.to_owned() });
                    }
                    Some(ReplyEvent::Error { code, message }) => {
                        let why = format!("the receiver reported {code}: {message}");
                        return Ok(StreamEnd::Error {
                            said: ReplyEvent::Error { code, message },
                            why,
                        });
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

    async fn tell(&self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), SenderDisconnected> {
        let mut out = Vec::new();
        write(&mut out);
        self.events.send(out.into()).await.map_err(|_| SenderDisconnected)
    }
}

fn broken_off(why: &str) -> StreamEnd {
    StreamEnd::Failed { code: Code::AgentUnreachable, why: why.to_owned(), gone: false }
}

fn failed(answer: &Result<HttpResponse, SendError>) -> StreamEnd {
    let (code, why) = read_answer(answer).err().unwrap_or((Code::AgentUnreachable, String::new()));
    StreamEnd::Failed { code, why, gone: is_gone(answer) }
}
