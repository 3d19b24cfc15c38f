//! The inbox stream of this protocol: how its events look, and when a reader loses access.

use bytes::Bytes;
use rialto_core::agent::key::KeyHash;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{News, Notice};

use super::event::{self, Connected};
use super::wording::is_over;
use super::{ID, letter, proof, record};
use crate::adapter::Floor;
use crate::adapter::inbox_stream::{self, Jobs, Wording};

/// An open inbox stream.
pub type Feed = inbox_stream::Feed<ByKey>;

/// A reader authenticated by its key.
pub struct ByKey(pub KeyHash);

impl Wording for ByKey {
    const JOBS: bool = true;

    fn may_read(&self, floor: &Floor, agent: AgentId) -> bool {
        proof::still_holds(&floor.engine, agent, &self.0)
    }

    fn hello(&self, floor: &Floor, agent: AgentId, after: u64) -> Bytes {
        let mut out = Vec::with_capacity(256);
        floor.engine.look(|world| {
            let backlog = world.mailbox(agent).head.saturating_sub(after);
            let agent_id = record::address_of(world, Some(agent));
            Connected { agent_id: &agent_id, resume_from: after, backlog }.write(&mut out);
        });
        out.into()
    }

    fn ping(&self) -> Bytes {
        let mut out = Vec::with_capacity(8);
        event::ping(&mut out);
        out.into()
    }

    fn write(&self, out: &mut Vec<u8>, floor: &Floor, notice: &Notice, jobs: &Jobs) {
        let job = notice.news.job().and_then(|job| jobs.get(&job)).map(|job| &**job);
        hand_over(floor, notice, job);
        floor.engine.look(|world| {
            let reader = notice.to.and_then(|to| world.agent(to));
            let format = reader.and_then(|agent| record::format(agent));
            letter::write(out, floor, world, notice, job, format);
        });
    }
}

/// Work that is being read can no longer be cancelled. The reader need not wait until that is
/// recorded.
fn hand_over(floor: &Floor, notice: &Notice, job: Option<&Job>) {
    let Some((agent, job)) = notice.to.zip(job.filter(|_| !is_over(&notice.news, job))) else {
        return;
    };
    let fresh = job.assignment.is_some_and(|turn| turn.worker == agent && !turn.handed_over);
    let at_home = || floor.engine.look(|world| world.agent(agent).is_some_and(|a| a.home == ID));
    if !fresh || !matches!(notice.news, News::Assigned { .. }) || !at_home() {
        return;
    }
    let (engine, order) = (floor.engine.clone(), Command::HandOver { agent, jobs: vec![job.id] });
    tokio::spawn(async move {
        if let Err(failure) = engine.run(order).await {
            tracing::debug!(%agent, %failure, "job handover failed");
        }
    });
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use rialto_core::agent::Liveness;
    use rialto_core::answer::Answer;
    use rialto_core::command::{Actor, Enrol, SendMessage};
    use rialto_core::time::Millis;
    use rialto_core::world::Rules;
    use rialto_engine::clock::SystemClock;
    use rialto_engine::delivery::egress::{Egress, EgressSettings};
    use rialto_engine::random::OsIds;
    use rialto_engine::keys::{Key, Kind};
    use rialto_engine::secret::HubSecret;
    use rialto_engine::store::memory::MemoryStore;
    use rialto_engine::{Engine, Setup};

    use tokio::time::Instant;

    use super::*;
    use crate::adapter::inbox_stream::From;
    use crate::adapter::shutdown::Stopping;
    use crate::adapter::{Ground, Unlimited};
    use crate::relay::event::Marks;
    use crate::relay::{ID, Room, Settings, stored};

    fn floor() -> Floor {
        let setup = Setup {
            store: Box::new(MemoryStore::default()),
            rules: Rules::default(),
            clock: Arc::new(SystemClock::start()),
            ids: Arc::new(OsIds),
            secret: HubSecret::from_bytes([7; 32]),
            market: None,
        };
        let engine = Engine::start(setup).expect("memory is there").engine;
        let egress = Egress::new(EgressSettings::default()).expect("the defaults work");
        Floor::new(Ground {
            relay: Room::new(Settings::default(), engine.secret()),
            agora: crate::agora::Room::new(Default::default(), engine.secret()),
            openclaw: crate::openclaw::Room::new(Default::default(), engine.secret()),
            clara: crate::clara::Settings::of(engine.secret()),
            writes: Arc::new(Unlimited),
            engine,
            egress: Arc::new(egress),
            hub_url: "http://hub.example".to_owned(),
            body_limit: 1 << 20,
            settings: Default::default(),
            running: Default::default(),
            waits: Default::default(),
            trying: Default::default(),
        })
    }

    /// The inbox stream of a new agent, and its key.
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
            terms: Default::default(),
            condition: None,
            card: record::card("bob@chorus", None, None),
            key: Some(key.hash()),
            rotate: false,
        };
        let enrolled = floor.engine.run(Command::Enrol(Box::new(order))).await;
        let Ok(Answer::Agent { agent, .. }) = enrolled else { panic!("{enrolled:?}") };
        Feed::new(floor.clone(), agent.id, ByKey(key.hash()), From::Unread, stopping)
    }

    #[tokio::test]
    async fn a_quiet_inbox_is_pinged_every_fifteen_seconds() {
        let floor = floor();
        let mut feed = open(&floor, Stopping::default()).await;
        let hello = feed.next().await.expect("connected");
        assert!(hello.starts_with(b"retry: 2000\nid: 0\nevent: connected\n"));
        // The test does not wait for it: the ping time is moved instead.
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
    async fn what_is_held_back_waits_alone_and_goes_out_with_what_comes_behind_it() {
        let floor = floor();
        let mut feed = open(&floor, Stopping::default()).await;
        feed.next().await.expect("connected");
        let to = feed.agent;
        let send = async |text: &str, delay: Option<Millis>| {
            let marks = Marks { loop_guard: delay, ..Marks::default() };
            let body = stored::write(&format!(r#"{{"original_text":"{text}"}}"#), marks);
            let order = SendMessage {
                from: None,
                to,
                words: ID,
                body,
                url: None,
                first_try: Millis(0),
                turn: None,
                by_operator: false,
            };
            floor.engine.run(Command::Send(Box::new(order))).await.expect("it is sent");
        };
        // Longer than any test: held-back messages do not appear by themselves.
        for text in ["one", "two"] {
            send(text, Some(Millis::hours(1))).await;
            tokio::select! {
                biased;
                bytes = feed.next() => panic!("it was not held back: {bytes:?}"),
                () = tokio::task::yield_now() => {}
            }
        }
        send("three", None).await;
        let bytes = feed.next().await.expect("all three");
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
        assert!(at("one") < at("two") && at("two") < at("three"), "{text}");
        // A message whose delay is over is like any other.
        send("four", Some(Millis(0))).await;
        assert!(feed.next().await.is_some());
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
        let revoked = Command::RevokeKeys { agent: feed.agent, by_operator: true };
        floor.engine.run(revoked).await.expect("it is done");
        assert_eq!(feed.next().await, None);
    }
}
