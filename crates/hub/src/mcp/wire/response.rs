//! Responses: one JSON message, or a stream that ends with it.
//!
//! A stream begins with the first message that a call sends before its response, or when the response
//! takes longer than a second. Dropping the body drops the call, so a caller that hangs up waits no
//! longer.

use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use rialto_protocols::kit::sse;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::progress::OutgoingMessages;
use crate::edge::EndsAtShutdown;

/// After this time without a response, the caller gets a stream.
const STREAM_AFTER: Duration = Duration::from_secs(1);
/// Keeps proxies from collecting a stream before they pass it on.
const NO_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Which forms of a response the caller takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AcceptedForms {
    pub json: bool,
    pub stream: bool,
}

impl AcceptedForms {
    /// Without the header, or with `*/*`, both.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut values = headers.get_all(ACCEPT).iter().peekable();
        if values.peek().is_none() {
            return Self { json: true, stream: true };
        }
        let mut accepted = Self { json: false, stream: false };
        let texts = values.filter_map(|value| value.to_str().ok());
        for range in texts.flat_map(|text| text.split(',')) {
            let mut parts = range.split(';').map(str::trim);
            let media_type = parts.next().unwrap_or_default().to_ascii_lowercase();
            // A weight of zero means "not this one".
            let refused = parts.any(|part| {
                let weight = part.strip_prefix("q=").or_else(|| part.strip_prefix("Q="));
                weight.is_some_and(|q| !q.is_empty() && q.bytes().all(|b| matches!(b, b'0' | b'.')))
            });
            accepted.json |=
                !refused && matches!(&*media_type, "*/*" | "application/*" | "application/json");
            accepted.stream |=
                !refused && matches!(&*media_type, "*/*" | "text/*" | "text/event-stream");
        }
        accepted
    }
}

/// The final message of a response.
#[derive(Debug)]
pub struct Reply {
    pub status: StatusCode,
    /// JSON text.
    pub message: String,
}

impl Reply {
    pub fn into_json_response(self) -> Response {
        let mut response = Response::new(Body::from(self.message));
        *response.status_mut() = self.status;
        let json = HeaderValue::from_static("application/json");
        response.headers_mut().insert(CONTENT_TYPE, json);
        response
    }
}

/// The reply of a call.
pub type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// Runs a call and answers in a form that the caller takes. `comments` is how often a silent stream
/// shows that it is alive.
pub async fn respond(
    mut call: ReplyFuture,
    mut messages: OutgoingMessages,
    accepted: AcceptedForms,
    comments: Duration,
) -> Response {
    if !accepted.stream {
        return call.await.into_json_response();
    }
    let mut first = None;
    if accepted.json {
        tokio::select! {
            biased;
            Some(message) = messages.recv() => first = Some(message),
            reply = &mut call => match messages.try_recv() {
                Err(_) => return reply.into_json_response(),
                // It sent something and replied without a pause.
                Ok(message) => {
                    first = Some(message);
                    call = Box::pin(std::future::ready(reply));
                }
            },
            () = tokio::time::sleep(STREAM_AFTER) => {}
        }
    }
    let mut comments = interval_at(Instant::now() + comments, comments);
    comments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let stream = ReplyStream { first, call: Some(call), messages, comments };
    let frames = stream::unfold(stream, async |mut stream| {
        let frame = stream.next().await?;
        Some((Ok::<_, Infallible>(frame), stream))
    });
    let mut response = Response::new(Body::from_stream(frames));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(NO_BUFFERING, HeaderValue::from_static("no"));
    // Calls that wait are answered as they stand, and the client is told how to go on.
    response.extensions_mut().insert(EndsAtShutdown);
    response
}

/// What is left of a response that is a stream.
struct ReplyStream {
    first: Option<String>,
    /// `None` once it has replied.
    call: Option<ReplyFuture>,
    messages: OutgoingMessages,
    comments: Interval,
}

impl ReplyStream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(message) = self.first.take() {
            return Some(frame(message));
        }
        let call = self.call.as_mut()?;
        tokio::select! {
            // What a call sent before its reply comes before it.
            biased;
            Some(message) = self.messages.recv() => {
                self.comments.reset();
                Some(frame(message))
            }
            reply = call => {
                self.call = None;
                // The reply may have become ready together with messages that were sent before it.
                let mut frames = Vec::new();
                while let Ok(message) = self.messages.try_recv() {
                    frames.extend_from_slice(&frame(message));
                }
                frames.extend_from_slice(&frame(reply.message));
                Some(frames.into())
            }
            _ = self.comments.tick() => {
                let mut comment = Vec::new();
                sse::write_comment(&mut comment, "waiting");
                Some(comment.into())
            }
        }
    }
}

fn frame(message: String) -> Bytes {
    let mut json = message.into_bytes();
    sse::replace_newlines(&mut json);
    let mut frame = Vec::with_capacity(json.len() + 32);
    sse::begin_frame(&mut frame, None, "message");
    frame.append(&mut json);
    sse::end_frame(&mut frame);
    frame.into()
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;
    use crate::mcp::wire::progress::Outgoing;

    fn accepted(text: Option<&'static str>) -> (bool, bool) {
        let mut headers = HeaderMap::new();
        if let Some(text) = text {
            headers.insert(ACCEPT, HeaderValue::from_static(text));
        }
        let AcceptedForms { json, stream } = AcceptedForms::of(&headers);
        (json, stream)
    }

    #[test]
    fn the_forms_of_a_response_follow_from_accept() {
        for both in [
            None,
            Some("*/*"),
            Some("application/json, text/event-stream"),
            Some("TEXT/EVENT-STREAM;q=0.5,application/JSON"),
        ] {
            assert_eq!(accepted(both), (true, true), "{both:?}");
        }
        assert_eq!(accepted(Some("application/json")), (true, false));
        assert_eq!(accepted(Some("application/json, text/event-stream;q=0")), (true, false));
        assert_eq!(accepted(Some("text/event-stream")), (false, true));
        assert_eq!(accepted(Some("text/html")), (false, false));
        assert_eq!(accepted(Some("")), (false, false));
    }

    async fn text(response: Response) -> String {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(bytes.to_vec()).unwrap()
    }

    const BOTH: AcceptedForms = AcceptedForms { json: true, stream: true };
    const TEN: Duration = Duration::from_secs(10);

    fn reply_after(time: Duration) -> ReplyFuture {
        Box::pin(async move {
            tokio::time::sleep(time).await;
            Reply { status: StatusCode::NOT_FOUND, message: "{\"a\":\n1}".to_owned() }
        })
    }

    #[tokio::test(start_paused = true)]
    async fn a_quick_reply_is_json_and_a_slow_one_a_stream_with_comments() {
        let (_sender, messages) = Outgoing::new();
        let quick = respond(reply_after(Duration::from_millis(900)), messages, BOTH, TEN).await;
        assert_eq!((quick.status().as_u16(), &*text(quick).await), (404, "{\"a\":\n1}"));

        let (_sender, messages) = Outgoing::new();
        let slow = respond(reply_after(Duration::from_secs(22)), messages, BOTH, TEN).await;
        assert_eq!(slow.headers()["content-type"], "text/event-stream");
        assert_eq!(slow.headers()["x-accel-buffering"], "no");
        let sent = ": waiting\n\n: waiting\n\nevent: message\ndata: {\"a\": 1}\n\n";
        assert_eq!(text(slow).await, sent);
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_takes_json_alone_gets_no_stream() {
        let (outgoing, messages) = Outgoing::new();
        outgoing.send("notifications/x", "{}").await;
        let only = AcceptedForms { json: true, stream: false };
        let response = respond(reply_after(Duration::from_secs(30)), messages, only, TEN).await;
        assert_eq!(response.headers()["content-type"], "application/json");
    }

    #[tokio::test(start_paused = true)]
    async fn messages_come_at_once_and_none_after_the_reply() {
        let (outgoing, messages) = Outgoing::new();
        let call: ReplyFuture = Box::pin(async move {
            outgoing.send("notifications/a", "1").await;
            outgoing.send("notifications/b", "2").await;
            let reply = Reply { status: StatusCode::OK, message: "3".to_owned() };
            tokio::spawn(async move { outgoing.send("notifications/c", "4").await });
            reply
        });
        let sent = text(respond(call, messages, BOTH, TEN).await).await;
        let frame = |json: &str| format!("event: message\ndata: {json}\n\n");
        let note = |name: &str, params: &str| {
            frame(&format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/{name}","params":{params}}}"#
            ))
        };
        assert_eq!(sent, note("a", "1") + &note("b", "2") + &frame("3"));
    }
}
