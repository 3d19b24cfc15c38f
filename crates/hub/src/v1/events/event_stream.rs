//! One open event stream: its position and how its next bytes are read.
//!
//! Nothing is queued. Each pull reads the next page from the store, at most `PAGE_BYTES` of it, and
//! the store buffers everything else. So a slow reader costs one page and does not slow others. The
//! edge closes a stream whose reader reads nothing; the client can resume it.

use std::fmt::Write as _;
use std::time::Duration;

use bytes::Bytes;
use rialto_engine::Engine;
use rialto_protocols::adapter::shutdown::Shutdown;
use tokio::time::Instant;

use super::source::{EventSource, NewEventSignal, StreamEvent};
use crate::v1::auth::VerifiedKey;

/// A page ends after this many events, or with the event that fills this many bytes (T45).
const PAGE_EVENTS: usize = 64;
const PAGE_BYTES: usize = 256 << 10;
/// A lost wake-up, a revoked key and a shutdown are noticed within this time.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a ping is sent and the reader is recorded as active.
const PING_INTERVAL: Duration = Duration::from_secs(15);
/// The first line: how soon to reconnect when the stream breaks.
const RETRY_HINT: &[u8] = b"retry: 1000\n\n";

/// One open stream.
pub struct EventStream {
    engine: Engine,
    key: VerifiedKey,
    source: EventSource,
    signal: NewEventSignal,
    stopping: Shutdown,
    /// The last id that was sent.
    after: u64,
    /// How many events are read at once: fewer while they are large.
    step: usize,
    ping_at: Instant,
    sent_retry_hint: bool,
}

impl EventStream {
    pub fn new(
        engine: Engine,
        proven: VerifiedKey,
        source: EventSource,
        after: u64,
        stopping: Shutdown,
    ) -> Self {
        let bell = source.new_event_signal(&engine);
        let ping_at = Instant::now() + PING_INTERVAL;
        let step = PAGE_EVENTS;
        Self {
            engine,
            key: proven,
            source,
            signal: bell,
            stopping,
            after,
            step,
            ping_at,
            sent_retry_hint: false,
        }
    }

    /// The next bytes; `None` ends the stream.
    pub async fn next_chunk(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.sent_retry_hint, true) {
            return Some(Bytes::from_static(RETRY_HINT));
        }
        loop {
            if self.stopping.is_requested() || !self.key.is_still_valid(&self.engine) {
                return None;
            }
            if Instant::now() >= self.ping_at {
                return Some(self.ping());
            }
            if self.source.newest_id(&self.engine) > self.after {
                // A store that cannot be read ends the stream; a client that resumes gets the
                // error.
                let page = self.source.load_page(&self.engine, self.after, self.step).await.ok()?;
                return self.encode_page(page);
            }
            self.wait().await;
        }
    }

    /// Waits for new events, the next ping, shutdown or the poll interval.
    async fn wait(&mut self) {
        let Self { engine, source, signal: bell, stopping, after, ping_at, .. } = self;
        let (source, after) = (*source, *after);
        let until = (*ping_at).min(Instant::now() + POLL_INTERVAL);
        tokio::select! {
            () = bell.wait(|| source.newest_id(engine) > after) => {}
            () = stopping.wait() => {}
            () = tokio::time::sleep_until(until) => {}
        }
    }

    /// Encodes a page. Events that do not fit are read again with the next page.
    fn encode_page(&mut self, page: Vec<StreamEvent>) -> Option<Bytes> {
        let mut text = String::new();
        let (read, mut sent) = (page.len(), 0);
        for StreamEvent { id, kind, data } in page {
            if text.len() + data.len() > PAGE_BYTES && sent > 0 {
                break;
            }
            let _ = write!(text, "id: {id}\nevent: {kind}\ndata: {data}\n\n");
            self.after = id;
            sent += 1;
        }
        self.step = if sent < read { sent } else { (self.step * 2).min(PAGE_EVENTS) };
        (sent > 0).then(|| Bytes::from(text))
    }

    /// Records the agent as active, because a reader that takes pings is connected.
    fn ping(&mut self) -> Bytes {
        self.ping_at = Instant::now() + PING_INTERVAL;
        if let EventSource::Inbox(agent) = self.source {
            self.engine.record_seen(agent);
        }
        Bytes::from_static(b": ping\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1::auth::AuthenticatedCaller;
    use crate::v1::tests::kit::Hub;

    #[tokio::test]
    async fn an_idle_stream_is_pinged_and_its_reader_counts_as_online() {
        let hub = Hub::start().await;
        let ada = hub.enrol("ada", "acme", None).await;
        let key = rialto_engine::keys::Key::parse(&ada.key).expect("a key");
        let proven = VerifiedKey {
            caller: AuthenticatedCaller::Agent(ada.id),
            key: key.hash(),
            prefix: key.prefix(),
        };
        let mut feed = EventStream::new(
            hub.engine.clone(),
            proven,
            EventSource::for_caller(&proven),
            0,
            Shutdown::default(),
        );
        assert_eq!(feed.next_chunk().await.as_deref(), Some(RETRY_HINT));
        hub.clock.advance(rialto_core::time::Millis::seconds(15));
        feed.ping_at = Instant::now();
        assert_eq!(feed.next_chunk().await.as_deref(), Some(&b": ping\n\n"[..]));
        assert!(feed.ping_at > Instant::now());
        // Any command makes the lane record activity.
        hub.grant("acme", "1").await;
        let seen = |world: &rialto_core::world::World| {
            world.agent_state(ada.id).map(|agent_state| agent_state.presence.last_seen)
        };
        assert_eq!(hub.engine.with_world(seen), Some(hub.engine.now()));
        assert!(size_of_val(&feed.next_chunk()) < 4 << 10, "an idle stream is small");
    }
}
