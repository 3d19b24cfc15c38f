//! One open inbox: where it stands, and how it gets its next bytes.
//!
//! Nothing is queued for it. What was just committed comes from the engine's short memory, the rest
//! from the store, one page at a time and only when the connection takes bytes; so a slow reader
//! costs a page and slows nobody. One that takes nothing at all is closed by the edge and resumes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rialto_core::agent::key::KeyHash;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;
use rialto_engine::Listener;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::event::{self, Connected};
use super::{letter, proof, record};
use crate::face::Floor;
use crate::face::stopping::Stopping;

/// A page ends after this many events, or with the event that fills this many bytes (R64).
const PAGE_EVENTS: usize = 64;
const PAGE_BYTES: usize = 256 << 10;
/// Signs of life go both ways this often (R60). News, a revoked key and a stop are told at once;
/// should a hint be lost, it is noticed with the next ping.
const PING: Duration = Duration::from_secs(15);

/// Where a reader wants to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// After a position it has.
    Position(u64),
    /// With the first message nobody was handed.
    Unread,
    /// With the first message it has not acknowledged.
    Unacknowledged,
}

/// One open inbox.
pub struct Feed {
    floor: Floor,
    agent: AgentId,
    key: KeyHash,
    listener: Listener,
    bell: Arc<Notify>,
    stopping: Stopping,
    /// The last position that was given out.
    after: u64,
    /// How many notices are read at once: fewer while they are large.
    step: usize,
    ping_at: Instant,
    greeted: bool,
}

impl Feed {
    pub fn new(floor: Floor, agent: AgentId, key: KeyHash, from: From, stopping: Stopping) -> Self {
        let engine = &floor.engine;
        let (listener, bell) = (engine.listen(agent), engine.news_of(agent));
        let after = match from {
            From::Position(position) => position,
            From::Unread => engine.read_to(agent),
            From::Unacknowledged => engine.look(|world| world.mailbox(agent).acked),
        };
        let ping_at = Instant::now() + PING;
        let (step, greeted) = (PAGE_EVENTS, false);
        Self { floor, agent, key, listener, bell, stopping, after, step, ping_at, greeted }
    }

    /// The next bytes; `None` ends the stream.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(self.hello());
        }
        loop {
            if self.stopping.is_now()
                || !proof::still_holds(&self.floor.engine, self.agent, &self.key)
            {
                return None;
            }
            if Instant::now() >= self.ping_at {
                return Some(self.ping());
            }
            if let Some(recent) = self.listener.after(self.after) {
                if let Some(bytes) = self.written(&recent) {
                    return Some(bytes);
                }
                continue;
            }
            if self.head() > self.after {
                let engine = &self.floor.engine;
                // A store that cannot be read ends the stream; whoever resumes is told more.
                let page = engine.notices_of(self.agent, self.after, self.step).await.ok()?;
                let page: Vec<_> = page.into_iter().map(Arc::new).collect();
                if page.is_empty() {
                    return None;
                }
                if let Some(bytes) = self.written(&page) {
                    return Some(bytes);
                }
                continue;
            }
            self.wait().await;
        }
    }

    fn head(&self) -> u64 {
        self.floor.engine.look(|world| world.mailbox(self.agent).head)
    }

    fn hello(&self) -> Bytes {
        let mut out = Vec::with_capacity(256);
        self.floor.engine.look(|world| {
            let backlog = world.mailbox(self.agent).head.saturating_sub(self.after);
            let agent_id = record::address_of(world, Some(self.agent));
            Connected { agent_id, resume_from: self.after, backlog }.write(&mut out);
        });
        out.into()
    }

    /// Waits for news, the next ping, a stop, or until it is time to look again anyway.
    async fn wait(&mut self) {
        let told = self.bell.notified();
        tokio::pin!(told);
        // From here on nothing can be missed, so looking comes after it.
        told.as_mut().enable();
        if self.floor.engine.look(|world| world.mailbox(self.agent).head) > self.after {
            return;
        }
        tokio::select! {
            () = told => {}
            () = self.stopping.wait() => {}
            () = tokio::time::sleep_until(self.ping_at) => {}
        }
    }

    /// A page as it goes out, if there is anything in it for this reader. What does not fit any
    /// more is read again with the next one.
    fn written(&mut self, page: &[Arc<Notice>]) -> Option<Bytes> {
        let mut out = Vec::new();
        let mut taken = 0;
        let Self { floor, agent, after, .. } = self;
        floor.engine.look(|world| {
            let format = world.agent(*agent).and_then(|agent| record::format(agent));
            for notice in page {
                if taken > 0 && out.len() >= PAGE_BYTES {
                    break;
                }
                letter::write(&mut out, floor, world, notice, format);
                *after = notice.position;
                taken += 1;
            }
        });
        self.step = if taken < page.len() { taken } else { (self.step * 2).min(PAGE_EVENTS) };
        // Handed to the connection; whether the reader has it, only an acknowledgement tells (D19).
        self.floor.engine.presented(self.agent, self.after);
        (!out.is_empty()).then(|| out.into())
    }

    /// A reader that takes pings is there.
    fn ping(&mut self) -> Bytes {
        self.ping_at = Instant::now() + PING;
        self.floor.engine.seen(self.agent);
        let mut out = Vec::with_capacity(8);
        event::ping(&mut out);
        out.into()
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::agent::Liveness;
    use rialto_core::answer::Answer;
    use rialto_core::command::{Actor, Command, Enrol};
    use rialto_core::world::Rules;
    use rialto_engine::clock::SystemClock;
    use rialto_engine::delivery::egress::{Egress, EgressSettings};
    use rialto_engine::ids::OsIds;
    use rialto_engine::keys::{Key, Kind};
    use rialto_engine::secret::HubSecret;
    use rialto_engine::store::memory::MemoryStore;
    use rialto_engine::{Engine, Setup};

    use super::*;
    use crate::face::Ground;
    use crate::relay::{ID, Room, Settings};

    fn floor() -> Floor {
        let setup = Setup {
            store: Box::new(MemoryStore::default()),
            rules: Rules::default(),
            clock: Arc::new(SystemClock::start()),
            ids: Arc::new(OsIds),
            secret: HubSecret::from_bytes([7; 32]),
        };
        let engine = Engine::start(setup).expect("memory is there").engine;
        let egress = Egress::new(EgressSettings::default()).expect("the defaults work");
        Floor::new(Ground {
            relay: Room::new(Settings::default(), engine.secret()),
            engine,
            egress: Arc::new(egress),
            hub_url: "http://hub.example".to_owned(),
            body_limit: 1 << 20,
            settings: Default::default(),
            running: Default::default(),
        })
    }

    /// An inbox of a new agent, and its key.
    async fn open(floor: &Floor, stopping: Stopping) -> Feed {
        let key = Key::make(Kind::Relay, floor.engine.ids().key_bits());
        let order = Enrol {
            actor: Actor::Nobody,
            home: ID,
            owner: "relay:bob@chorus".to_owned(),
            native: "bob@chorus".to_owned(),
            aliases: Vec::new(),
            name: "bob".to_owned(),
            endpoint: None,
            liveness: Liveness::Polls,
            skills: Vec::new(),
            card: record::card("bob@chorus", None, None),
            key: Some(key.hash()),
            rotate: false,
        };
        let enrolled = floor.engine.run(Command::Enrol(Box::new(order))).await;
        let Ok(Answer::Agent { agent, .. }) = enrolled else { panic!("{enrolled:?}") };
        Feed::new(floor.clone(), agent.id, key.hash(), From::Unread, stopping)
    }

    #[tokio::test]
    async fn a_quiet_inbox_is_pinged_every_fifteen_seconds() {
        let floor = floor();
        let mut feed = open(&floor, Stopping::default()).await;
        let hello = feed.next().await.expect("connected");
        assert!(hello.starts_with(b"retry: 2000\nid: 0\nevent: connected\n"));
        // Nobody waits for it here: the moment is moved instead.
        let due = |feed: &Feed| feed.ping_at.saturating_duration_since(Instant::now());
        assert!(due(&feed) <= Duration::from_secs(15) && due(&feed) > Duration::from_secs(5));
        for _ in 0..3 {
            feed.ping_at = Instant::now();
            assert_eq!(feed.next().await.as_deref(), Some(&b": ping\n\n"[..]));
            assert!(due(&feed) <= Duration::from_secs(15) && due(&feed) > Duration::from_secs(5));
        }
        assert!(size_of_val(&feed.next()) < 4 << 10, "an idle stream is small");
    }

    #[tokio::test]
    async fn a_stop_a_revoked_key_or_a_lost_trigger_ends_an_inbox() {
        let floor = floor();
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let mut feed = open(&floor, Stopping::new(stopping)).await;
        feed.next().await.expect("connected");
        stop.send_replace(true);
        assert_eq!(feed.next().await, None);

        let (stop, stopping) = tokio::sync::watch::channel(false);
        feed.stopping = Stopping::new(stopping);
        drop(stop);
        assert_eq!(feed.next().await, None);

        feed.stopping = Stopping::default();
        let revoked = Command::RevokeKeys { agent: feed.agent };
        floor.engine.run(revoked).await.expect("it is done");
        assert_eq!(feed.next().await, None);
    }
}
