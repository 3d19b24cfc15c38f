//! The inbox stream of this protocol: how its events look, and when a reader loses access.

use bytes::Bytes;
use rialto_core::agent::key::KeyHash;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::notice::{Notice, NoticeKind};

use super::write_event;
use crate::adapter::inbox_stream::{self, InboxEncoder, JobsById};
use crate::relay::ID;
use crate::relay::auth::is_key_valid;
use crate::relay::translate::{self, is_obsolete};
use crate::relay::wire::inbox::{ConnectedEvent, write_ping};
use crate::relay::{RelayContext, RelayState};

/// An open inbox stream.
pub type RelayInboxStream = inbox_stream::InboxStream<EventEncoder>;

/// A reader authenticated by its key.
pub struct EventEncoder(pub KeyHash);

impl InboxEncoder for EventEncoder {
    type State = RelayState;

    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &RelayContext, agent: AgentId) -> bool {
        is_key_valid(&context.engine, agent, &self.0)
    }

    fn encode_connected(&self, context: &RelayContext, agent: AgentId, after: u64) -> Bytes {
        let mut out = Vec::with_capacity(256);
        context.engine.with_world(|world| {
            let backlog = world.inbox(agent).head.saturating_sub(after);
            let agent_id = translate::address_of(world, Some(agent));
            ConnectedEvent { agent_id: &agent_id, resume_from: after, backlog }.write(&mut out);
        });
        out.into()
    }

    fn encode_ping(&self) -> Bytes {
        let mut out = Vec::with_capacity(8);
        write_ping(&mut out);
        out.into()
    }

    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &RelayContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let job = notice.news.job().and_then(|job| jobs.get(&job)).map(|job| &**job);
        hand_over(context, notice, job);
        context.engine.with_world(|world| {
            let reader = notice.to.and_then(|to| world.agent(to));
            let format = reader.and_then(|agent| translate::envelope_format(agent));
            write_event(out, context, world, notice, job, format);
        });
    }
}

/// Work that is being read can no longer be cancelled. The reader need not wait until that is
/// recorded.
fn hand_over(context: &RelayContext, notice: &Notice, job: Option<&Job>) {
    let Some((agent, job)) = notice.to.zip(job.filter(|_| !is_obsolete(&notice.news, job))) else {
        return;
    };
    let fresh = job.assignment.is_some_and(|turn| turn.worker == agent && !turn.handed_over);
    let at_home =
        || context.engine.with_world(|world| world.agent(agent).is_some_and(|a| a.home == ID));
    if !fresh || !matches!(notice.news, NoticeKind::Assigned { .. }) || !at_home() {
        return;
    }
    let (engine, order) = (context.engine.clone(), Command::HandOver { agent, jobs: vec![job.id] });
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

    use rialto_config::{Layers, Profile};
    use rialto_core::agent::Liveness;
    use rialto_core::answer::Answer;
    use rialto_core::command::{Actor, Registration, SendMessage};
    use rialto_core::time::Millis;
    use rialto_core::world::Rules;
    use rialto_engine::clock::SystemClock;
    use rialto_engine::delivery::egress::{Egress, EgressSettings};
    use rialto_engine::keys::Key;
    use rialto_engine::random::OsRandom;
    use rialto_engine::secret::HubSecret;
    use rialto_engine::store::memory::MemoryStore;
    use rialto_engine::{Engine, EngineParts};
    use tokio::time::Instant;

    use super::*;
    use crate::adapter::inbox_stream::StreamStart;
    use crate::adapter::shutdown::Shutdown;
    use crate::adapter::{HubContext, HubContextParts, Unlimited};
    use crate::relay::message::write_stored_message;
    use crate::relay::wire::inbox::MessageFlags;
    use crate::relay::{KEY_PREFIX, Settings};

    fn context() -> RelayContext {
        let state = RelayState::new(
            Settings::read(&mut Layers::new(Profile::Serve)),
            &HubSecret::from_bytes([7; 32]),
        );
        let setup = EngineParts {
            store: Box::new(MemoryStore::default()),
            rules: Rules::default(),
            clock: Arc::new(SystemClock::start()),
            random: Arc::new(OsRandom),
            secret: HubSecret::from_bytes([7; 32]),
            markets: Default::default(),
            cluster: None,
        };
        let engine = Engine::start(setup).expect("memory is there").engine;
        let egress = Egress::new(EgressSettings::default()).expect("the defaults work");
        let hub = HubContext::new(HubContextParts {
            protocols: Vec::new(),
            write_limiter: Arc::new(Unlimited),
            engine,
            egress: Arc::new(egress),
            hub_url: "http://hub.example".to_owned(),
            listens_on: ([127, 0, 0, 1], 1).into(),
            body_limit: 1 << 20,
            settings: Default::default(),
            running_requests: Default::default(),
            pending_waits: Default::default(),
            open_streams: Default::default(),
            endpoint_checks: Default::default(),
            shutdown: Default::default(),
        });
        RelayContext::new(&hub, Arc::new(state))
    }

    /// The inbox stream of a new agent, and its key.
    async fn open(context: &RelayContext, stopping: Shutdown) -> RelayInboxStream {
        let key = Key::from_random(KEY_PREFIX, context.engine.random().new_key_bytes());
        let order = Registration {
            actor: Actor::Anonymous,
            home: ID,
            owner: "relay:bob@chorus".to_owned(),
            native_id: "bob@chorus".to_owned(),
            aliases: Vec::new(),
            name: "bob".to_owned(),
            endpoint: None,
            liveness: Liveness::ByPolling,
            skills: Vec::new(),
            terms: Default::default(),
            status: None,
            card: translate::write_stored_card("bob@chorus", None, None),
            key: Some(key.hash()),
            rotate_key: false,
        };
        let enrolled = context.engine.run(Command::Register(Box::new(order))).await;
        let Ok(Answer::Agent { agent, .. }) = enrolled else { panic!("{enrolled:?}") };
        RelayInboxStream::new(
            context.clone(),
            agent.id,
            EventEncoder(key.hash()),
            StreamStart::Unread,
            stopping,
        )
    }

    #[tokio::test]
    async fn a_quiet_inbox_is_pinged_every_fifteen_seconds() {
        let context = context();
        let mut feed = open(&context, Shutdown::default()).await;
        let hello = feed.next().await.expect("connected");
        assert!(hello.starts_with(b"retry: 2000\nid: 0\nevent: connected\n"));
        // The test does not wait for it: the ping time is moved instead.
        let due = |feed: &RelayInboxStream| feed.ping_at.saturating_duration_since(Instant::now());
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
        let context = context();
        let mut feed = open(&context, Shutdown::default()).await;
        feed.next().await.expect("connected");
        let to = feed.agent;
        let send = async |text: &str, delay: Option<Millis>| {
            let marks = MessageFlags { loop_guard: delay, ..MessageFlags::default() };
            let body = write_stored_message(&format!(r#"{{"original_text":"{text}"}}"#), marks);
            let order = SendMessage {
                from: None,
                to,
                protocol: ID,
                body,
                url: None,
                first_try: Millis(0),
                identity: None,
                by_operator: false,
            };
            context.engine.run(Command::SendMessage(Box::new(order))).await.expect("it is sent");
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
        let context = context();
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let mut feed = open(&context, Shutdown::new(stopping)).await;
        feed.next().await.expect("connected");
        stop.send_replace(true);
        assert_eq!(feed.next().await, None);

        let (stop, stopping) = tokio::sync::watch::channel(false);
        feed.shutdown = Shutdown::new(stopping);
        drop(stop);
        assert_eq!(feed.next().await, None);

        feed.shutdown = Shutdown::default();
        let revoked = Command::RevokeKeys { agent: feed.agent, by_operator: true };
        context.engine.run(revoked).await.expect("it is done");
        assert_eq!(feed.next().await, None);
    }
}
