//! Reads a server's event stream across reconnects. The streams of all protocols are read with it;
//! each adds how it connects, and which events it keeps.

use std::collections::VecDeque;
use std::future::Future;
use std::time::Duration;

use reqwest::Response;
use rialto_protocols::kit::sse::{Event, Parser};
use tokio::time::sleep;

use crate::call::CallError;
use crate::retry::RetryPolicy;

/// How long to wait before a reconnect, unless the server asks for another delay.
const WAIT: Duration = Duration::from_secs(1);
/// Minimum and maximum wait, whatever the server asks for.
const WAIT_MIN: Duration = Duration::from_millis(10);
const WAIT_MAX: Duration = Duration::from_secs(60);

/// The events of one stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    event_bytes_max: usize,
    /// The open connection, and the parser of its bytes.
    connection: Option<(Response, Parser)>,
    events: VecDeque<Event>,
    /// An event that cannot be read, reported after the events before it.
    error: Option<CallError>,
    failures: u32,
    retry_wait: Duration,
}

impl EventReader {
    /// The events of a connection that was just opened, each of at most this many bytes.
    pub(crate) fn new(first: Response, event_bytes_max: usize) -> Self {
        Self {
            event_bytes_max,
            connection: Some((first, Parser::new(event_bytes_max))),
            events: VecDeque::new(),
            error: None,
            failures: 0,
            retry_wait: WAIT,
        }
    }

    /// Waits for the next event. `connect` opens a new connection when one is lost, after the last
    /// event that its caller has. An error ends the stream: the server will never serve it to this
    /// reader, or an event cannot be read.
    pub(crate) async fn next<F>(&mut self, connect: impl Fn() -> F) -> Result<Event, CallError>
    where
        F: Future<Output = Result<Response, CallError>>,
    {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            if let Some(error) = self.error.take() {
                return Err(error);
            }
            if let Some((response, _)) = &mut self.connection {
                match response.chunk().await {
                    Ok(Some(bytes)) => self.parse(&bytes),
                    // The rest of an unfinished event is dropped with the connection; the server
                    // sends it again.
                    _ => self.connection = None,
                }
                continue;
            }
            sleep(self.reconnect_delay()).await;
            match connect().await {
                Ok(response) => {
                    self.connection = Some((response, Parser::new(self.event_bytes_max)));
                }
                Err(error) if is_final(&error) => return Err(error),
                Err(_) => self.failures = self.failures.saturating_add(1),
            }
        }
    }

    fn parse(&mut self, bytes: &[u8]) {
        let Some((_, parser)) = &mut self.connection else { return };
        let mut events = Vec::new();
        // A reconnect would only return an event that is too long again.
        self.error = parser.push(bytes, &mut events).map_err(CallError::unreadable).err();
        if let Some(ms) = parser.retry_ms() {
            self.retry_wait = Duration::from_millis(ms).clamp(WAIT_MIN, WAIT_MAX);
        }
        if !events.is_empty() {
            self.failures = 0;
        }
        self.events.extend(events);
    }

    /// How long to wait before the next connection: at least what the server asks for, and longer
    /// with each failure in a row.
    fn reconnect_delay(&self) -> Duration {
        let (initial_delay, max_delay) = (self.retry_wait * 2, WAIT_MAX);
        let retry = RetryPolicy { initial_delay, max_delay, ..RetryPolicy::ENDLESS };
        retry.delay(self.failures.saturating_add(1))
    }
}

/// Whether this error means that the server will never serve this stream to this reader.
fn is_final(error: &CallError) -> bool {
    match error {
        _ if error.is_suspended() => false,
        CallError::Refused { status, retryable, .. } => {
            !retryable && (300..500).contains(status) && !matches!(status, 408 | 429)
        }
        CallError::Unreadable(_) => true,
        CallError::Unreachable { .. } | CallError::TimedOut { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::origin_client::{OriginClient, parse_http_url, refusal_from_body};
    use crate::testing::{TestServer, refused, stream};

    #[tokio::test]
    async fn events_before_one_that_is_too_long_arrive_first() {
        let text = format!("data: 1\n\ndata: {}\n\n", "x".repeat(100));
        let stage = TestServer::new(move |_, _| stream(&text)).await;
        let url = parse_http_url(&stage.url).expect("a URL");
        let client = OriginClient::new(&url).expect("a client");
        let connect = || client.open_events(url.clone(), None, refusal_from_body);
        let mut reader = EventReader::new(connect().await.expect("open"), 64);
        assert_eq!(reader.next(connect).await.expect("an event").data, "1");
        assert!(matches!(reader.next(connect).await, Err(CallError::Unreadable(_))));
    }

    #[test]
    fn a_stream_ends_only_when_its_server_will_never_serve_it() {
        for (error, ends) in [
            (refused(401, "unauthorized", false, None), true),
            (refused(404, "unknown", false, None), true),
            (refused(302, "unknown", false, None), true),
            (refused(403, "suspended", false, None), false),
            (refused(408, "unknown", false, None), false),
            (refused(409, "CONFLICT", true, None), false),
            (refused(429, "rate_limited", false, None), false),
            (refused(503, "unavailable", false, None), false),
            (CallError::TimedOut { url: String::new() }, false),
            (CallError::Unreadable(String::new()), true),
        ] {
            assert_eq!(is_final(&error), ends, "{error:?}");
        }
    }
}
