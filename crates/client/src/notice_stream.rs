//! The hub's events (`/v1/events`): every notice of an inbox, once and in order, across reconnects.
//!
//! The stream tracks the position of the last notice. After a disconnect it reconnects, asks for
//! what follows that position, and drops notices it already returned. Reading does not acknowledge
//! a notice; [`Events::ack`] does.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Method, Response};
use rialto_protocols::kit::sse::{Event, Parser};
use serde_json::json;
use tokio::time::sleep;
use url::Url;

use crate::call::{CallError, Hub};
use crate::key::Key;
use crate::origin_client::{self, OriginClient};
use crate::retry::RetryPolicy;

/// Maximum event size in bytes: one message and its metadata.
const EVENT_BYTES_MAX: usize = 2 << 20;
/// Maximum size of a refusal in bytes.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// Minimum and maximum wait before a reconnect, whatever the hub asks for.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_secs(30);

/// One notice of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Its position in the inbox.
    pub position: u64,
    /// The kind of notice.
    pub kind: String,
    /// The notice as JSON text, exactly as the hub wrote it.
    pub data: String,
}

/// An open stream of notices.
#[derive(Debug)]
pub struct NoticeStream {
    hub: Hub,
    line: OriginClient,
    url: Url,
    /// The position of the last notice that was returned or is buffered.
    last_position: Option<u64>,
    stream: Option<SseConnection>,
    ready: VecDeque<Notice>,
    failures: u32,
    retry_wait: Duration,
}

#[derive(Debug)]
struct SseConnection {
    answer: Response,
    parser: Parser,
}

impl NoticeStream {
    /// Opens the inbox of the agent that holds the hub's key, starting with the first notice that
    /// is not acknowledged. Fails if the hub cannot be reached now; later the stream reconnects
    /// instead.
    pub async fn open(hub: &Hub) -> Result<Self, CallError> {
        let url = origin_client::parse_http_url(&format!("{}/v1/events", hub.base()))?;
        let line = OriginClient::new(&url)?;
        let line = match hub.key() {
            Some(key) => line.with_key(Key::new(key)),
            None => line,
        };
        let (hub, retry_wait) = (hub.clone(), Duration::from_secs(1));
        let mut events = Self {
            hub,
            line,
            url,
            last_position: None,
            stream: None,
            ready: VecDeque::new(),
            failures: 0,
            retry_wait,
        };
        events.connect().await?;
        Ok(events)
    }

    /// Waits for the next notice. An error ends the stream: the key is no longer valid, or the data
    /// cannot be read.
    pub async fn next(&mut self) -> Result<Notice, CallError> {
        loop {
            if let Some(notice) = self.ready.pop_front() {
                return Ok(notice);
            }
            self.read_next().await?;
        }
    }

    /// Acknowledges every notice up to a position, so that they are not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<(), CallError> {
        let body = json!({"up_to": up_to});
        let retry = RetryPolicy { max_attempts: u32::MAX, ..RetryPolicy::default() };
        retry.call(async || self.hub.post("/v1/inbox/ack", &body).await).await.map(drop)
    }

    /// Reads the next part of the stream, or reconnects.
    async fn read_next(&mut self) -> Result<(), CallError> {
        let Some(stream) = &mut self.stream else {
            sleep(self.reconnect_delay()).await;
            return match self.connect().await {
                Err(error) if is_final(&error) => Err(error),
                Err(_) => {
                    self.failures = self.failures.saturating_add(1);
                    Ok(())
                }
                Ok(()) => Ok(()),
            };
        };
        let Ok(Some(bytes)) = stream.answer.chunk().await else {
            // The rest of an unfinished event is dropped with the connection; the hub sends it
            // again.
            self.stream = None;
            return Ok(());
        };
        let mut events = Vec::new();
        let pushed = stream.parser.push(&bytes, &mut events);
        if let Some(ms) = stream.parser.retry_ms() {
            self.retry_wait = Duration::from_millis(ms).clamp(WAIT_MIN, WAIT_MAX);
        }
        for event in events {
            self.handle_event(event);
        }
        // A reconnect would only return the same event.
        pushed.map_err(|error| CallError::Unreadable(error.to_string()))
    }

    async fn connect(&mut self) -> Result<(), CallError> {
        let mut request = self.line.streaming_request(Method::GET, self.url.clone())?;
        request = request.header(ACCEPT, "text/event-stream");
        if let Some(position) = self.last_position {
            request = request.header("last-event-id", position);
        }
        let answer = origin_client::send(request).await?;
        if !answer.status().is_success() {
            return Err(origin_client::read_refusal(answer, REFUSAL_BYTES_MAX).await);
        }
        self.stream = Some(SseConnection { answer, parser: Parser::new(EVENT_BYTES_MAX) });
        Ok(())
    }

    fn handle_event(&mut self, event: Event) {
        self.failures = 0;
        let Some(position) = event.id.as_deref().and_then(|id| id.parse::<u64>().ok()) else {
            // Events about the stream itself.
            return;
        };
        if self.last_position.is_none_or(|heard| position > heard) {
            self.last_position = Some(position);
            self.ready.push_back(Notice { position, kind: event.event, data: event.data });
        }
    }

    /// How long to wait before the next connection: at least what the hub asks for, and longer with
    /// each failure in a row.
    fn reconnect_delay(&self) -> Duration {
        let retry = RetryPolicy {
            max_attempts: u32::MAX,
            initial_delay: self.retry_wait,
            max_delay: WAIT_MAX,
        };
        retry.delay(self.failures.saturating_add(1))
    }
}

/// Whether this error means that the hub will never serve this stream to this reader.
fn is_final(error: &CallError) -> bool {
    match error {
        _ if error.is_suspended() => false,
        CallError::Refused { status, .. } => matches!(status, 400..=499) && *status != 429,
        CallError::Unreadable(_) => true,
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Stage, answer, stream};

    /// One frame of the stream.
    fn frame(position: u64) -> String {
        format!("id: {position}\nevent: ended\ndata: {{\"position\":{position}}}\n\n")
    }

    #[tokio::test]
    async fn every_notice_comes_once_and_in_order_over_broken_lines() {
        let stage = Stage::new(|heard, number| match (heard.target.as_str(), number) {
            ("/v1/events", 0) => {
                stream(&format!("retry: 50\n\n{}{}id: 3\nevent: en", frame(1), frame(2)))
            }
            ("/v1/events", 1) => answer(503, "", ""),
            ("/v1/events", 2) => stream(&format!("{}{}", frame(2), frame(3))),
            ("/v1/events", _) => answer(401, "", r#"{"code":"unauthorized"}"#),
            _ => answer(200, "", "{}"),
        })
        .await;
        let hub = Hub::new(&stage.url).expect("a client").with_key("rk_1");
        let mut events = NoticeStream::open(&hub).await.expect("open");
        for position in 1..=3 {
            let notice = events.next().await.expect("a notice");
            assert_eq!((notice.position, notice.kind.as_str()), (position, "ended"));
            assert_eq!(notice.data, format!("{{\"position\":{position}}}"));
            events.ack(position).await.expect("acknowledged");
        }
        let end = events.next().await.expect_err("the key is gone");
        assert!(matches!(end, CallError::Refused { status: 401, .. }), "{end}");
        let heard = stage.heard();
        let resumed: Vec<_> = heard
            .iter()
            .filter(|heard| heard.method == "GET")
            .map(|heard| heard.header("last-event-id").map(str::to_owned))
            .collect();
        let two = Some("2".to_owned());
        assert_eq!(resumed, [None, two.clone(), two, Some("3".to_owned())]);
        assert!(heard.iter().all(|heard| heard.header("authorization") == Some("Bearer rk_1")));
        let acks = heard.iter().filter(|heard| heard.target == "/v1/inbox/ack");
        let acks: Vec<_> = acks.map(|heard| heard.body.as_str()).collect();
        assert_eq!(acks, [r#"{"up_to":1}"#, r#"{"up_to":2}"#, r#"{"up_to":3}"#]);
    }

    #[tokio::test]
    async fn a_stream_waits_while_its_reader_is_suspended_and_goes_on_when_it_is_resumed() {
        let stage = Stage::new(|_, number| match number {
            0 => stream(&format!("retry: 50\n\n{}", frame(1))),
            1 => answer(403, "", r#"{"code":"suspended"}"#),
            _ => stream(&frame(2)),
        })
        .await;
        let hub = Hub::new(&stage.url).expect("a client");
        let mut events = NoticeStream::open(&hub).await.expect("open");
        for position in 1..=2 {
            assert_eq!(events.next().await.expect("a notice").position, position);
        }
    }

    #[tokio::test]
    async fn a_hub_that_says_no_at_first_is_an_error() {
        let stage = Stage::new(|_, _| answer(401, "", r#"{"code":"unauthorized"}"#)).await;
        let hub = Hub::new(&stage.url).expect("a client");
        assert!(NoticeStream::open(&hub).await.is_err());
    }
}
