//! Scores that result from whole jobs.

mod windows;

use crate::command::{Command, OpenJob, ReportWork};
use crate::id::AgentId;
use crate::job::{Cause, Requester};
use crate::reputation::Score;
use crate::testkit::{Scene, job_in};

fn points(text: &str) -> Score {
    // Scores and credits are both millionths, so one parser reads both.
    Score::from_millionths(crate::testkit::credits(text).micros())
}

/// One job from the first to the second, completed or failed.
fn work(scene: &mut Scene, hirer: AgentId, ok: bool) {
    let order = scene.ask(hirer, "sum", "0.10");
    let job = scene.open(order).id;
    if ok {
        scene.succeed(job, "0.10")
    } else {
        scene.fail(job)
    };
}

fn market() -> (Scene, AgentId, AgentId) {
    let mut scene = Scene::default();
    let client = scene.client("client", "rich", "100.00");
    let ada = scene.worker("ada", "acme", &[("sum", "0.10")]);
    (scene, client, ada)
}

#[test]
fn two_successes_and_a_failure_for_a_new_hirer() {
    let (mut scene, client, ada) = market();
    for (ok, after) in [(true, "51"), (true, "52"), (false, "47.5")] {
        work(&mut scene, client, ok);
        assert_eq!(scene.score(ada), points(after));
    }
    assert_eq!(scene.score(client), points("50"), "hiring changes nothing about the hirer");
    let standing = scene.desk(ada).standing;
    assert_eq!((standing.successes, standing.failures, standing.settled()), (2, 1, 3));
}

#[test]
fn the_hirers_own_score_at_that_moment_is_the_weight() {
    let (mut scene, client, ada) = market();
    let boss = scene.client("boss", "bigger", "100.00");
    let sub = scene.worker("sub", "subs", &[("dig", "0.10")]);
    work(&mut scene, client, true);
    // Ada, now at 51, hires in turn: 2 × 51 / 100 = 1.02.
    scene.grant("acme", "1.00");
    let order = scene.ask(ada, "dig", "0.10");
    let job = scene.open(order).id;
    work(&mut scene, boss, false);
    assert_eq!(scene.score(ada), points("46.5"), "51 − 4.5");
    scene.succeed(job, "0.10");
    assert_eq!(scene.score(sub), points("50.93"), "50 + 2 × 46.5 / 100, with the score at the end");
    let outcome = scene.store.rows.outcomes.last().unwrap();
    assert_eq!((outcome.hirer_score, outcome.hired_by), (points("46.5"), Some(ada)));
}

#[test]
fn a_guest_counts_as_fifty() {
    let mut scene = Scene::default();
    let free = scene.worker("free", "acme", &[("sum", "0")]);
    let requester = Requester::Guest("guest".to_owned());
    let order = scene.ask(AgentId(0), "sum", "0");
    let job = scene.open(OpenJob { requester, ..order }).id;
    scene.succeed(job, "0");
    assert_eq!(scene.score(free), points("51"));
}

#[test]
fn two_agents_of_one_owner_hiring_each_other_seventy_times_stay_at_fifty() {
    let mut scene = Scene::default();
    scene.grant("ring", "10.00");
    let one = scene.worker("one", "ring", &[("sum", "0.10")]);
    let two = scene.worker("two", "ring", &[("sum", "0.10")]);
    for round in 0..70 {
        let hirer = if round % 2 == 0 { one } else { two };
        work(&mut scene, hirer, round % 7 != 0);
    }
    for agent in [one, two] {
        let standing = scene.desk(agent).standing;
        assert_eq!(standing.score, Score::START);
        assert_eq!((standing.settled(), standing.outcomes), (0, 35), "recorded, not counted");
    }
    assert_eq!(scene.purse("ring"), ("10.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn two_owners_doing_the_same_would_reach_a_hundred() {
    let mut scene = Scene::default();
    scene.grant("ring-1", "10.00");
    scene.grant("ring-2", "10.00");
    let one = scene.worker("one", "ring-1", &[("sum", "0.10")]);
    let two = scene.worker("two", "ring-2", &[("sum", "0.10")]);
    for _ in 0..35 {
        work(&mut scene, one, true);
        work(&mut scene, two, true);
    }
    assert_eq!((scene.score(one), scene.score(two)), (Score::MAX, Score::MAX));
}

#[test]
fn what_was_not_the_workers_fault_is_recorded_and_counts_nothing() {
    let (mut scene, client, ada) = market();
    let order = scene.ask(client, "sum", "0.10");
    let job = scene.open(order).id;
    let word = ReportWork { cause: Some(Cause::NoSuchSkill), ..scene.word(job, false, "0") };
    job_in(scene.say(word).unwrap());
    assert_eq!(scene.score(ada), Score::START);
    let outcome = scene.store.rows.outcomes.last().unwrap();
    assert_eq!((outcome.number, outcome.counted, outcome.ok), (1, false, false));
    work(&mut scene, client, true);
    let outcome = scene.store.rows.outcomes.last().unwrap();
    assert_eq!((outcome.number, outcome.counted), (2, true));
    assert_eq!(outcome.before, Some(scene.store.rows.outcomes[0].id));
}

#[test]
fn an_outcome_says_who_when_for_how_much_and_whether_in_time() {
    let (mut scene, client, ada) = market();
    let order = scene.ask(client, "sum", "0.15");
    let (opened, deadline) = (scene.now, order.deadline);
    let job = scene.open(order).id;
    scene.sleep(crate::time::Millis(1_250));
    scene.succeed(job, "0.04");
    let outcome = scene.store.rows.outcomes.last().unwrap();
    assert_eq!((outcome.subject, outcome.job), (ada, job));
    assert_eq!(outcome.paid, crate::testkit::credits("0.04"));
    assert_eq!((outcome.assigned_at, outcome.ended_at), (opened, scene.now));
    assert!(outcome.on_time && scene.now <= deadline);
}

#[test]
fn a_score_survives_leaving_and_coming_back() {
    let (mut scene, client, ada) = market();
    work(&mut scene, client, false);
    scene.run(Command::Remove { agent: ada, by_operator: false }).unwrap();
    scene.worker("ada", "acme", &[("sum", "0.10")]);
    assert_eq!(scene.score(ada), points("45.5"), "a bad reputation cannot be reset");
}

#[test]
fn patrons_are_the_other_owners_that_were_served_well_each_once() {
    let (mut scene, client, ada) = market();
    let sibling = scene.worker("sibling", "rich", &[]);
    let other = scene.client("other", "richer", "100.00");
    let own = scene.client("own", "acme", "100.00");
    let told = |scene: &Scene| {
        let patrons = &scene.desk(ada).patrons;
        (patrons.count(), patrons.paid().text(2))
    };
    work(&mut scene, own, true);
    assert_eq!(told(&scene), (0, "0.00".to_owned()), "within one owner nothing counts");
    work(&mut scene, client, false);
    assert_eq!(told(&scene), (0, "0.00".to_owned()), "nor does failed work");
    work(&mut scene, client, true);
    work(&mut scene, sibling, true);
    assert_eq!(told(&scene), (1, "0.20".to_owned()), "two agents of one owner are one customer");
    work(&mut scene, other, true);
    assert_eq!(told(&scene), (2, "0.30".to_owned()));
    let rebuilt = scene.store.rebuilt(scene.world.rules);
    assert_eq!(rebuilt.desk(ada), scene.world.desk(ada), "and a restart loses nothing");
}

#[test]
fn failures_are_told_of_an_owners_other_agents_also_of_those_who_left() {
    let (mut scene, client, ada) = market();
    work(&mut scene, client, false);
    scene.remove(ada);
    let bob = scene.worker("bob", "acme", &[("sum", "0.10")]);
    let stranger = scene.worker("stranger", "globex", &[("other", "0.10")]);
    work(&mut scene, client, false);
    for world in [&scene.world, &scene.store.rebuilt(scene.world.rules)] {
        let elsewhere = [ada, bob, stranger, client].map(|agent| world.failures_elsewhere(agent));
        assert_eq!(elsewhere, [1, 1, 0, 0]);
    }
}

#[test]
fn a_desk_from_before_patrons_were_kept_is_read() {
    let (mut scene, client, ada) = market();
    work(&mut scene, client, true);
    let mut row = serde_json::to_value(scene.desk(ada)).expect("a row");
    assert!(row.as_object_mut().expect("members").remove("patrons").is_some());
    let desk: crate::agent::Desk = serde_json::from_value(row).expect("an old row");
    assert!(desk.patrons.is_empty());
    assert_eq!(desk.standing, scene.desk(ada).standing);
}
