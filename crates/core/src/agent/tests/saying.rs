//! Status reports: the newest one counts, and every report is activity.

use std::sync::Arc;

use crate::agent::Liveness;
use crate::agent::presence::Stance;
use crate::agent::status::{Condition, Said};
use crate::answer::Answer;
use crate::command::{Command, Enrol, OpenJob};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Selection, State};
use crate::refusal::Refusal;
use crate::signed_order::Profile;
use crate::testkit::{AWAY, DAWN, Scene, enrolment};
use crate::time::{Millis, Timestamp};
use proptest::prelude::*;

fn seconds(n: i64) -> Millis {
    Millis::seconds(n)
}

/// A polling agent that reports its status.
fn poller() -> (Scene, AgentId) {
    let mut scene = Scene::default();
    let order = enrolment("ada", "acme", &[("sum", "0")]);
    let ada = scene.enrol(Enrol { liveness: Liveness::Polls, ..order }).unwrap();
    (scene, ada)
}

fn told(stance: Stance, since: Timestamp, words: &str) -> Condition {
    Condition { stance, until: None, words: Some((since, words.into())) }
}

fn say(scene: &mut Scene, agent: AgentId, told: Condition) {
    scene.run(Command::Stand { agent, told }).unwrap();
}

fn stood(scene: &Scene, agent: AgentId) -> usize {
    let events = scene.store.rows.lines.iter().flat_map(|line| &line.events);
    events.filter(|event| **event == Event::AgentStood { agent }).count()
}

fn words(scene: &Scene, agent: AgentId) -> Option<&str> {
    scene.desk(agent).said.as_ref().map(|said| &*said.words)
}

#[test]
fn the_newest_word_counts_and_an_older_one_is_only_a_sign_of_life() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Stance::Error, since, "first"));
    let said = Said { since, at: scene.now, words: "first".into() };
    assert_eq!((scene.desk(ada).said.clone(), stood(&scene, ada)), (Some(said.clone()), 1));
    scene.sleep(seconds(80));
    say(&mut scene, ada, told(Stance::Idle, since.plus(Millis(-1)), "older"));
    let desk = scene.desk(ada);
    assert_eq!((desk.said.clone(), desk.presence.stance), (Some(said), Stance::Error));
    assert_eq!((stood(&scene, ada), desk.presence.seen), (1, scene.now), "but it is active");
    let heard = desk.presence.heard;
    assert!(heard < Some(scene.now), "but that is not a heartbeat");
    // A report of the same time, or later by the agent's own clock, counts, whatever the hub's
    // clock says.
    for (since, text, times) in [(since, "same", 2), (since.plus(Millis::hours(5)), "ahead", 3)] {
        say(&mut scene, ada, told(Stance::Idle, since, text));
        assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some(text), times));
        assert_eq!(scene.desk(ada).presence.stance, Stance::Idle);
        assert_eq!(scene.desk(ada).said.as_ref().map(|said| said.at), Some(scene.now));
    }
    let now = scene.now;
    say(&mut scene, ada, told(Stance::Error, now, "now"));
    assert_eq!(words(&scene, ada), Some("now"), "a clock that was ahead outdates nothing");
}

#[test]
fn old_news_keeps_a_poller_online() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Stance::Idle, since, "first"));
    scene.sleep(Millis(90_001));
    assert!(!scene.online(ada));
    say(&mut scene, ada, told(Stance::Error, since.plus(Millis(-1)), "older"));
    assert!(scene.online(ada));
}

#[test]
fn a_word_without_words_always_counts_and_is_no_news() {
    let (mut scene, ada) = poller();
    let since = scene.now;
    say(&mut scene, ada, told(Stance::Idle, since, "first"));
    let plain = Condition { stance: Stance::Maintenance, until: Some(since), words: None };
    say(&mut scene, ada, plain);
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("first"), 1));
    let presence = scene.desk(ada).presence;
    assert_eq!((presence.stance, presence.until), (Stance::Maintenance, Some(since)));
}

#[test]
fn old_news_brings_nobody_back() {
    let (mut scene, ada) = poller();
    let cid = scene.worker("cid", "rich", &[]);
    let until = Some(scene.now.plus(seconds(60)));
    let away = Condition { until, ..told(Stance::Maintenance, scene.now, "away") };
    say(&mut scene, ada, away);
    let order = scene.ask(cid, "sum", "0");
    let job = scene.open(OpenJob { selection: Selection::Direct(ada), ..order }).id;
    say(&mut scene, ada, told(Stance::Idle, DAWN.plus(Millis(-1)), "older"));
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    say(&mut scene, ada, told(Stance::Idle, DAWN, "back"));
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn who_registers_may_say_how_it_is_and_the_same_rules_hold() {
    let mut scene = Scene::default();
    let order = |condition| Enrol { condition, ..enrolment("ada", "acme", &[("sum", "0")]) };
    let until = Some(scene.now.plus(seconds(60)));
    let away = Condition { until, ..told(Stance::Maintenance, scene.now, "away") };
    let ada = scene.enrol(order(Some(away))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("away"), 1));
    let cid = scene.worker("cid", "rich", &[]);
    let asked = scene.ask(cid, "sum", "0");
    let job = scene.open(OpenJob { selection: Selection::Direct(ada), ..asked }).id;
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    scene.enrol(order(None)).unwrap();
    assert_eq!(scene.desk(ada).presence.stance, Stance::Maintenance, "it did not report that");
    scene.enrol(order(Some(told(Stance::Idle, DAWN.plus(Millis(-1)), "older")))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("away"), 1));
    scene.enrol(order(Some(told(Stance::Idle, DAWN, "back")))).unwrap();
    assert_eq!((words(&scene, ada), stood(&scene, ada)), (Some("back"), 2));
    assert_eq!(scene.job(job).worker(), Some(ada), "the deferred job is assigned to it");
}

#[test]
fn a_boast_is_kept_and_decides_nothing() {
    let (mut scene, ada) = poller();
    let before = scene.desk(ada).clone();
    let lines = scene.store.rows.lines.len();
    scene.sleep(Millis(90_001));
    for words in ["0.93", "1.00"] {
        let words: Arc<str> = words.into();
        let answer = scene.run(Command::Boast { agent: ada, words: words.clone() }).unwrap();
        let Answer::Agent { desk, .. } = answer else { panic!("{answer:?}") };
        assert_eq!(desk.claim, Some(words));
    }
    let desk = scene.desk(ada);
    assert_eq!(desk.claim.as_deref(), Some("1.00"), "the newest");
    assert_eq!((desk.standing, &desk.window), (before.standing, &before.window));
    assert_eq!(scene.store.rows.lines.len(), lines, "and there is no event");
    assert!(scene.online(ada), "but it is activity");
    let nobody = Command::Boast { agent: AgentId(99), words: "".into() };
    assert_eq!(scene.run(nobody).unwrap_err(), Refusal::NoSuchAgent);
    assert!(scene.world.desk(AgentId(99)).is_none());
    scene.remove(ada);
    let gone = Command::Boast { agent: ada, words: "".into() };
    assert_eq!(scene.run(gone).unwrap_err(), Refusal::NoSuchAgent);
}

#[test]
fn who_amends_its_stance_is_not_away_any_more_and_is_welcomed_back() {
    let mut scene = Scene::default();
    let pat = scene.hello("pat", &[("sum", "0")]);
    let cid = scene.worker("cid", "rich", &[]);
    let until = Some(scene.now.plus(seconds(60)));
    let away = Condition { stance: Stance::Maintenance, until, words: None };
    say(&mut scene, pat, away);
    let ask = |scene: &mut Scene| {
        let order = scene.ask(cid, "sum", "0");
        scene.try_open(OpenJob { selection: Selection::Direct(pat), ..order })
    };
    let job = ask(&mut scene).unwrap().id;
    // Another reason for being away clears its end time.
    let amend = |scene: &mut Scene, stance| {
        let profile = Profile { stance: Some(stance), ..Profile::default() };
        assert_eq!(scene.amend("pat", profile), pat);
    };
    amend(&mut scene, Stance::Maintenance);
    assert_eq!(scene.desk(pat).presence.until, None);
    assert_eq!(ask(&mut scene).unwrap_err(), Refusal::Offline, "the end is unknown");
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    amend(&mut scene, Stance::Idle);
    assert_eq!((scene.state(job), scene.job(job).worker()), (State::Assigned, Some(pat)));
    assert_eq!(scene.world.name_of(pat, AWAY), Some("pat"));
    // Other updates change neither.
    let away = Condition { stance: Stance::Maintenance, until, words: None };
    say(&mut scene, pat, away);
    scene.hello("pat", &[("sum", "0"), ("dig", "0")]);
    let presence = scene.desk(pat).presence;
    assert_eq!((presence.stance, presence.until), (Stance::Maintenance, until));
}

proptest! {
    /// In whatever order its reports arrive, the newest one is kept.
    #[test]
    fn the_order_of_arrival_does_not_matter(said in prop::collection::vec(0_i64..50, 1..20)) {
        let (mut scene, ada) = poller();
        let (mut newest, mut applied) = (i64::MIN, 0);
        for since in said {
            let stance = if since % 2 == 0 { Stance::Idle } else { Stance::Error };
            say(&mut scene, ada, told(stance, Timestamp(since), &since.to_string()));
            applied += usize::from(since >= newest);
            newest = newest.max(since);
            prop_assert_eq!(words(&scene, ada), Some(&*newest.to_string()));
            prop_assert_eq!(scene.desk(ada).presence.stance.is_open(), newest % 2 == 0);
            prop_assert_eq!(stood(&scene, ada), applied);
        }
    }
}

#[test]
fn whoever_comes_back_to_say_that_it_is_away_is_given_nothing() {
    let (mut scene, ada) = poller();
    let client = scene.client("client", "rich", "1.00");
    scene.wait(seconds(100));
    let order = scene.ask(client, "sum", "0");
    let policy = crate::job::Policy { queue_unmatched: true, ..order.policy };
    let job = scene.open(OpenJob { policy, ..order });
    assert_eq!(job.state, State::Queued);
    let condition = Some(told(Stance::Error, scene.now, "away"));
    let order = enrolment("ada", "acme", &[("sum", "0")]);
    scene.enrol(Enrol { liveness: Liveness::Polls, condition, ..order }).unwrap();
    assert_eq!(scene.state(job.id), State::Queued);
    scene.wait(seconds(1));
    let now = scene.now;
    say(&mut scene, ada, told(Stance::Idle, now, "back"));
    assert_eq!(scene.job(job.id).worker(), Some(ada), "{:?}", scene.job(job.id));
}
