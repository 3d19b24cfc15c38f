//! Scores that result from whole jobs.

mod windows;

use crate::command::{Command, OpenJob, ReportResult};
use crate::id::AgentId;
use crate::job::{Cause, Requester};
use crate::reputation::Score;
use crate::testkit::{TestHub, job_in};

fn points(text: &str) -> Score {
    // Scores and credits are both millionths, so one parser reads both.
    Score::from_millionths(crate::testkit::credits(text).micros())
}

/// One job from the first to the second, completed or failed.
fn work(scene: &mut TestHub, hirer: AgentId, ok: bool) {
    let order = scene.job_order(hirer, "sum", "0.10");
    let job = scene.open_job(order).id;
    if ok {
        scene.succeed(job, "0.10")
    } else {
        scene.fail(job)
    };
}

fn market() -> (TestHub, AgentId, AgentId) {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "100.00");
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
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
    let standing = scene.agent_state(ada).standing;
    assert_eq!((standing.successes, standing.failures, standing.settled_jobs()), (2, 1, 3));
}

#[test]
fn the_hirers_own_score_at_that_moment_is_the_weight() {
    let (mut scene, client, ada) = market();
    let boss = scene.register_client("boss", "bigger", "100.00");
    let sub = scene.register_worker("sub", "subs", &[("dig", "0.10")]);
    work(&mut scene, client, true);
    // Ada, now at 51, hires in turn: 2 × 51 / 100 = 1.02.
    scene.grant("acme", "1.00");
    let order = scene.job_order(ada, "dig", "0.10");
    let job = scene.open_job(order).id;
    work(&mut scene, boss, false);
    assert_eq!(scene.score(ada), points("46.5"), "51 − 4.5");
    scene.succeed(job, "0.10");
    assert_eq!(scene.score(sub), points("50.93"), "50 + 2 × 46.5 / 100, with the score at the end");
    let outcome = scene.store.rows.outcomes.last().unwrap();
    assert_eq!((outcome.hirer_score, outcome.hired_by), (points("46.5"), Some(ada)));
}

#[test]
fn a_guest_counts_as_fifty() {
    let mut scene = TestHub::default();
    let free = scene.register_worker("free", "acme", &[("sum", "0")]);
    let requester = Requester::Guest("guest".to_owned());
    let order = scene.job_order(AgentId(0), "sum", "0");
    let job = scene.open_job(OpenJob { requester, ..order }).id;
    scene.succeed(job, "0");
    assert_eq!(scene.score(free), points("51"));
}

#[test]
fn two_agents_of_one_owner_hiring_each_other_seventy_times_stay_at_fifty() {
    let mut scene = TestHub::default();
    scene.grant("ring", "10.00");
    let one = scene.register_worker("one", "ring", &[("sum", "0.10")]);
    let two = scene.register_worker("two", "ring", &[("sum", "0.10")]);
    for round in 0..70 {
        let hirer = if round % 2 == 0 { one } else { two };
        work(&mut scene, hirer, round % 7 != 0);
    }
    for agent in [one, two] {
        let standing = scene.agent_state(agent).standing;
        assert_eq!(standing.score, Score::START);
        assert_eq!((standing.settled_jobs(), standing.outcomes), (0, 35), "recorded, not counted");
    }
    assert_eq!(scene.balance_text("ring"), ("10.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn two_owners_doing_the_same_would_reach_a_hundred() {
    let mut scene = TestHub::default();
    scene.grant("ring-1", "10.00");
    scene.grant("ring-2", "10.00");
    let one = scene.register_worker("one", "ring-1", &[("sum", "0.10")]);
    let two = scene.register_worker("two", "ring-2", &[("sum", "0.10")]);
    for _ in 0..35 {
        work(&mut scene, one, true);
        work(&mut scene, two, true);
    }
    assert_eq!((scene.score(one), scene.score(two)), (Score::MAX, Score::MAX));
}

#[test]
fn what_was_not_the_workers_fault_is_recorded_and_counts_nothing() {
    let (mut scene, client, ada) = market();
    let order = scene.job_order(client, "sum", "0.10");
    let job = scene.open_job(order).id;
    let word =
        ReportResult { cause: Some(Cause::NoSuchSkill), ..scene.job_report(job, false, "0") };
    job_in(scene.report_result(word).unwrap());
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
    let order = scene.job_order(client, "sum", "0.15");
    let (opened, deadline) = (scene.now, order.deadline);
    let job = scene.open_job(order).id;
    scene.advance_without_timers(crate::time::Millis(1_250));
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
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    assert_eq!(scene.score(ada), points("45.5"), "a bad reputation cannot be reset");
}

#[test]
fn patrons_are_the_other_owners_that_were_served_well_each_once() {
    let (mut scene, client, ada) = market();
    let sibling = scene.register_worker("sibling", "rich", &[]);
    let other = scene.register_client("other", "richer", "100.00");
    let own = scene.register_client("own", "acme", "100.00");
    let told = |scene: &TestHub| {
        let patrons = &scene.agent_state(ada).customers;
        (patrons.count(), patrons.paid().to_text(2))
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
    let rebuilt = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(
        rebuilt.agent_state(ada),
        scene.world.agent_state(ada),
        "and a restart loses nothing"
    );
}

#[test]
fn failures_are_told_of_an_owners_other_agents_also_of_those_who_left() {
    let (mut scene, client, ada) = market();
    work(&mut scene, client, false);
    scene.remove(ada);
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.10")]);
    let stranger = scene.register_worker("stranger", "globex", &[("other", "0.10")]);
    work(&mut scene, client, false);
    for world in [&scene.world, &scene.store.rebuild_world(scene.world.rules)] {
        let elsewhere =
            [ada, bob, stranger, client].map(|agent| world.failures_of_other_agents(agent));
        assert_eq!(elsewhere, [1, 1, 0, 0]);
    }
}

#[test]
fn a_desk_from_before_patrons_were_kept_is_read() {
    let (mut scene, client, ada) = market();
    work(&mut scene, client, true);
    let mut row = serde_json::to_value(scene.agent_state(ada)).expect("a row");
    assert!(row.as_object_mut().expect("members").remove("patrons").is_some());
    let agent_state: crate::agent::AgentState = serde_json::from_value(row).expect("an old row");
    assert!(agent_state.customers.is_empty());
    assert_eq!(agent_state.standing, scene.agent_state(ada).standing);
}
