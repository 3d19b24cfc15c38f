//! The hub's events (`/v1/events`): every notice of an inbox, once and in order, across reconnects.
//!
//! The stream tracks the position of the last notice. After a disconnect it reconnects, asks for
//! what follows that position, and drops notices it already returned. Reading does not acknowledge
//! a notice; [`NoticeStream::ack`] does.

use reqwest::Response;
use serde_json::json;
use url::Url;

use crate::call::{CallError, Hub};
use crate::event_reader::EventReader;
use crate::key::Key;
use crate::origin_client::{self, OriginClient};
use crate::retry::RetryPolicy;

/// Maximum event size in bytes: one message and its metadata.
const EVENT_BYTES_MAX: usize = 2 << 20;

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
    client: OriginClient,
    url: Url,
    events: EventReader,
    /// The position of the last notice that was returned.
    last_position: Option<u64>,
}

impl NoticeStream {
    /// Opens the inbox of the agent that holds the hub's key, starting with the first notice that
    /// is not acknowledged. Fails if the hub cannot be reached now; later the stream reconnects
    /// instead.
    pub async fn open(hub: &Hub) -> Result<Self, CallError> {
        let url = origin_client::parse_http_url(&format!("{}/v1/events", hub.base()))?;
        let mut client = OriginClient::new(&url)?;
        if let Some(key) = hub.key() {
            client = client.with_key(Key::new(key));
        }
        let events = EventReader::new(connect(&client, &url, None).await?, EVENT_BYTES_MAX);
        Ok(Self { hub: hub.clone(), client, url, events, last_position: None })
    }

    /// Waits for the next notice. An error ends the stream: the key is no longer valid, or the data
    /// cannot be read.
    pub async fn next(&mut self) -> Result<Notice, CallError> {
        loop {
            let reconnect = || connect(&self.client, &self.url, self.last_position);
            let event = self.events.next(reconnect).await?;
            // Events about the stream itself have no position.
            if let Some(position) = event.id.as_deref().and_then(|id| id.parse::<u64>().ok())
                && self.last_position.is_none_or(|last| position > last)
            {
                self.last_position = Some(position);
                return Ok(Notice { position, kind: event.event, data: event.data });
            }
        }
    }

    /// Acknowledges every notice up to a position, so that they are not sent again.
    pub async fn ack(&self, up_to: u64) -> Result<(), CallError> {
        let body = json!({"up_to": up_to});
        let ack = async || self.hub.post("/v1/inbox/ack", &body).await;
        RetryPolicy::ENDLESS.call(ack).await.map(drop)
    }
}

async fn connect(
    client: &OriginClient,
    url: &Url,
    after: Option<u64>,
) -> Result<Response, CallError> {
    let after = after.map(|position| position.to_string());
    client.open_events(url.clone(), after.as_deref(), origin_client::refusal_from_body).await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestServer, answer, stream};

    /// One frame of the stream.
    fn frame(position: u64) -> String {
        format!("id: {position}\nevent: ended\ndata: {{\"position\":{position}}}\n\n")
    }

    #[tokio::test]
    async fn every_notice_comes_once_and_in_order_across_reconnects() {
        let stage = TestServer::new(|heard, number| match (heard.target.as_str(), number) {
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
        let stage = TestServer::new(|_, number| match number {
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
    async fn a_hub_that_refuses_the_first_connection_is_an_error() {
        let stage = TestServer::new(|_, _| answer(401, "", r#"{"code":"unauthorized"}"#)).await;
        let hub = Hub::new(&stage.url).expect("a client");
        assert!(NoticeStream::open(&hub).await.is_err());
    }
}
