//! Status reports: the newest one counts, and every report is activity.

use std::sync::Arc;

use crate::agent::Liveness;
use crate::agent::presence::Availability;
use crate::agent::status::{AgentStatusUpdate, StatusReport};
use crate::answer::Answer;
use crate::command::{Command, OpenJob, ProfileUpdate, Registration};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Selection, State};
use crate::refusal::Refusal;
use crate::testkit::{AWAY, START, TestHub, registration};
use crate::time::{Millis, Timestamp};
use proptest::prelude::*;

fn seconds(n: i64) -> Millis {
    Millis::seconds(n)
}

/// A polling agent that reports its status.
fn poller() -> (TestHub, AgentId) {
    let mut scene = TestHub::default();
    let order = registration("ada", "acme", &[("sum", "0")]);
    let ada = scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap();
    (scene, ada)
}

fn told(availability: Availability, since: Timestamp, words: &str) -> AgentStatusUpdate {
    AgentStatusUpdate { availability, until: None, words: Some((since, words.into())) }
}

fn say(scene: &mut TestHub, agent: AgentId, told: AgentStatusUpdate) {
    scene.run(Command::ReportStatus { agent, status: told }).unwrap();
}

fn stood(scene: &TestHub, agent: AgentId) -> usize {
    let events = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    events.filter(|event| **event == Event::AgentStatusReported { agent }).count()
}

fn words(scene: &TestHub, agent: AgentId) -> Option<&str> {
    scene.agent_state(agent).status.as_ref().map(|said| &*said.text)
}

#[test]
fn the_newest_word_counts_and_an_older_one_is_only_a_sign_of_life() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Availability::Error, since, "first"));
    let said = StatusReport { since, at: scene.now, text: "first".into() };
    assert_eq!(
        (scene.agent_state(ada).status.clone(), stood(&scene, ada)),
        (Some(Box::new(said.clone())), 1)
    );
    scene.advance_without_timers(seconds(80));
    say(&mut scene, ada, told(Availability::Idle, since.plus(Millis(-1)), "older"));
    let agent_state = scene.agent_state(ada);
    assert_eq!(
        (agent_state.status.clone(), agent_state.presence.availability),
        (Some(Box::new(said)), Availability::Error)
    );
    assert_eq!(
        (stood(&scene, ada), agent_state.presence.last_seen),
        (1, scene.now),
        "but it is active"
    );
    let heard = agent_state.presence.last_heartbeat;
    assert!(heard < Some(scene.now), "but that is not a heartbeat");
    // A report of the same time, or later by the agent's own clock, counts, whatever the hub's
    // clock says.
    for (since, text, times) in [(since, "same", 2), (since.plus(Millis::hours(5)), "ahead", 3)] {
        say(&mut scene, ada, told(Availability::Idle, since, text));
        assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some(text), times));
        assert_eq!(scene.agent_state(ada).presence.availability, Availability::Idle);
        assert_eq!(scene.agent_state(ada).status.as_ref().map(|said| said.at), Some(scene.now));
    }
    let now = scene.now;
    say(&mut scene, ada, told(Availability::Error, now, "now"));
    assert_eq!(words(&scene, ada), Some("now"), "a clock that was ahead outdates nothing");
}

#[test]
fn old_news_keeps_a_poller_online() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Availability::Idle, since, "first"));
    scene.advance_without_timers(Millis(90_001));
    assert!(!scene.is_online(ada));
    say(&mut scene, ada, told(Availability::Error, since.plus(Millis(-1)), "older"));
    assert!(scene.is_online(ada));
}

#[test]
fn a_word_without_words_always_counts_and_is_no_news() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Availability::Idle, since, "first"));
    let plain = AgentStatusUpdate {
        availability: Availability::Maintenance,
        until: Some(since),
        words: None,
    };
    say(&mut scene, ada, plain);
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("first"), 1));
    let presence = scene.agent_state(ada).presence;
    assert_eq!((presence.availability, presence.until), (Availability::Maintenance, Some(since)));
}

#[test]
fn an_old_report_does_not_bring_an_agent_back_online() {
    let (mut scene, ada) = poller();
    let cid = scene.register_worker("cid", "rich", &[]);
    let until = Some(scene.now.plus(seconds(60)));
    let away = AgentStatusUpdate { until, ..told(Availability::Maintenance, scene.now, "away") };
    say(&mut scene, ada, away);
    let order = scene.job_order(cid, "sum", "0");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), ..order }).id;
    say(&mut scene, ada, told(Availability::Idle, START.plus(Millis(-1)), "older"));
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    say(&mut scene, ada, told(Availability::Idle, START, "back"));
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn who_registers_may_say_how_it_is_and_the_same_rules_hold() {
    let mut scene = TestHub::default();
    let order = |condition| Registration {
        status: condition,
        ..registration("ada", "acme", &[("sum", "0")])
    };
    let until = Some(scene.now.plus(seconds(60)));
    let away = AgentStatusUpdate { until, ..told(Availability::Maintenance, scene.now, "away") };
    let ada = scene.register(order(Some(away))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("away"), 1));
    let cid = scene.register_worker("cid", "rich", &[]);
    let asked = scene.job_order(cid, "sum", "0");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(ada), ..asked }).id;
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    scene.register(order(None)).unwrap();
    assert_eq!(
        scene.agent_state(ada).presence.availability,
        Availability::Maintenance,
        "it did not report that"
    );
    scene.register(order(Some(told(Availability::Idle, START.plus(Millis(-1)), "older")))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("away"), 1));
    scene.register(order(Some(told(Availability::Idle, START, "back")))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("back"), 2));
    assert_eq!(scene.job(job).worker(), Some(ada), "the deferred job is assigned to it");
}

#[test]
fn a_boast_is_kept_and_decides_nothing() {
    let (mut scene, ada) = poller();
    let before = scene.agent_state(ada).clone();
    let lines = scene.store.rows.history_lines.len();
    scene.advance_without_timers(Millis(90_001));
    for words in ["0.93", "1.00"] {
        let words: Arc<str> = words.into();
        let answer =
            scene.run(Command::ReportReputation { agent: ada, text: words.clone() }).unwrap();
        let Answer::Agent { state: agent_state, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(agent_state.claimed_reputation, Some(words));
    }
    let agent_state = scene.agent_state(ada);
    assert_eq!(agent_state.claimed_reputation.as_deref(), Some("1.00"), "the newest");
    assert_eq!((agent_state.standing, &agent_state.window), (before.standing, &before.window));
    assert_eq!(scene.store.rows.history_lines.len(), lines, "and there is no event");
    assert!(scene.is_online(ada), "but it is activity");
    let nobody = Command::ReportReputation { agent: AgentId(99), text: "".into() };
    assert_eq!(scene.run(nobody).unwrap_err(), Refusal::NoSuchAgent);
    assert!(scene.world.agent_state(AgentId(99)).is_none());
    scene.remove(ada);
    let gone = Command::ReportReputation { agent: ada, text: "".into() };
    assert_eq!(scene.run(gone).unwrap_err(), Refusal::NoSuchAgent);
}

#[test]
fn who_amends_its_stance_is_not_away_any_more_and_is_welcomed_back() {
    let mut scene = TestHub::default();
    let pat = scene.introduce("pat", &[("sum", "0")]);
    let cid = scene.register_worker("cid", "rich", &[]);
    let until = Some(scene.now.plus(seconds(60)));
    let away = AgentStatusUpdate { availability: Availability::Maintenance, until, words: None };
    say(&mut scene, pat, away);
    let ask = |scene: &mut TestHub| {
        let order = scene.job_order(cid, "sum", "0");
        scene.try_open_job(OpenJob { selection: Selection::Direct(pat), ..order })
    };
    let job = ask(&mut scene).unwrap().id;
    // Another reason for being away clears its end time.
    let amend = |scene: &mut TestHub, availability| {
        let profile =
            ProfileUpdate { availability: Some(availability), ..ProfileUpdate::default() };
        assert_eq!(scene.update_profile("pat", profile), pat);
    };
    amend(&mut scene, Availability::Maintenance);
    assert_eq!(scene.agent_state(pat).presence.until, None);
    assert_eq!(ask(&mut scene).unwrap_err(), Refusal::Offline, "the end is unknown");
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    amend(&mut scene, Availability::Idle);
    assert_eq!((scene.state(job), scene.job(job).worker()), (State::Assigned, Some(pat)));
    assert_eq!(scene.world.alias_of(pat, AWAY), Some("pat"));
    // Other updates change neither.
    let away = AgentStatusUpdate { availability: Availability::Maintenance, until, words: None };
    say(&mut scene, pat, away);
    scene.introduce("pat", &[("sum", "0"), ("dig", "0")]);
    let presence = scene.agent_state(pat).presence;
    assert_eq!((presence.availability, presence.until), (Availability::Maintenance, until));
}

proptest! {
    /// In whatever order its reports arrive, the newest one is kept.
    #[test]
    fn the_order_of_arrival_does_not_matter(said in prop::collection::vec(0_i64..50, 1..20)) {
        let (mut scene, ada) = poller();
        let (mut newest, mut applied) = (i64::MIN, 0);
        for since in said {
            let availability = if since % 2 == 0 { Availability::Idle } else { Availability::Error };
            say(&mut scene, ada, told(availability, Timestamp(since), &since.to_string()));
            applied += usize::from(since >= newest);
            newest = newest.max(since);
            prop_assert_eq!(words(&scene, ada), Some(&*newest.to_string()));
            prop_assert_eq!(scene.agent_state(ada).presence.availability.accepts_work(), newest % 2 == 0);
            prop_assert_eq!(stood(&scene, ada), applied);
        }
    }
}

#[test]
fn an_agent_that_reports_itself_away_gets_no_job() {
    let (mut scene, ada) = poller();
    let client = scene.register_client("client", "rich", "1.00");
    scene.advance(seconds(100));
    let order = scene.job_order(client, "sum", "0");
    let mut order = order;
    order.policy.queueing.when_unmatched = true;
    let job = scene.open_job(order);
    assert_eq!(job.state, State::Queued);
    let condition = Some(told(Availability::Error, scene.now, "away"));
    let order = registration("ada", "acme", &[("sum", "0")]);
    scene
        .register(Registration { liveness: Liveness::ByPolling, status: condition, ..order })
        .unwrap();
    assert_eq!(scene.state(job.id), State::Queued);
    scene.advance(seconds(1));
    let now = scene.now;
    say(&mut scene, ada, told(Availability::Idle, now, "back"));
    assert_eq!(scene.job(job.id).worker(), Some(ada), "{:?}", scene.job(job.id));
}
