//! Tasks that no agent completes: how fast they are reassigned (T41).

use super::*;
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::command::{Command, RequestTarget};
use crate::job::State;
use crate::testkit::skill;

/// Assignments that follow each other at once.
const AT_ONCE: usize = 8;

/// A task of the market for the cheapest agent, and `count` agents of other protocols that could do
/// it.
fn among_strangers(count: usize) -> (TestHub, JobId, Vec<AgentId>) {
    let (mut scene, client) = market();
    let strangers =
        (0..count).map(|n| stranger(&mut scene, &format!("s{n}"), &[("sum", "10")])).collect();
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    (scene, job, strangers)
}

/// The task has just started to back off, and is assigned again after `span`.
fn rests_for(scene: &mut TestHub, job: JobId, span: Millis) {
    assert_eq!(scene.state(job), State::Queued);
    scene.advance(Millis(span.0 - 1));
    assert_eq!(scene.state(job), State::Queued, "{span:?}");
    scene.advance(Millis(1));
    assert_eq!(scene.state(job), State::Assigned, "{span:?}");
}

#[test]
fn strangers_that_fail_one_after_the_other_are_given_it_ever_more_slowly() {
    let (mut scene, job, strangers) = among_strangers(30);
    for next in &strangers[1..AT_ONCE] {
        scene.fail(job);
        assert_eq!(scene.job(job).worker(), Some(*next), "at once");
    }
    for doubled in 0..12 {
        scene.fail(job);
        rests_for(&mut scene, job, Millis::seconds(1 << doubled));
    }
    for _ in 0..3 {
        scene.fail(job);
        rests_for(&mut scene, job, Millis::hours(1));
    }
    scene.succeed(job, "10");
    assert_eq!(scene.balance_text("rich"), account("90.00", "0.00"));
}

#[test]
fn strangers_that_decline_are_followed_as_slowly() {
    let (mut scene, job, _) = among_strangers(AT_ONCE + 2);
    for _ in 0..AT_ONCE {
        assert_eq!(scene.state(job), State::Assigned);
        scene.decline(job);
    }
    rests_for(&mut scene, job, Millis::seconds(1));
}

#[test]
fn a_decline_inside_the_market_reassigns_at_once() {
    let (mut scene, client) = market();
    let own: Vec<AgentId> = (0..3 * AT_ONCE)
        .map(|n| scene.register_worker(&format!("w{n}"), &format!("w{n}"), &[("sum", "10")]))
        .collect();
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    for worker in own {
        assert_eq!(scene.job(job).worker(), Some(worker));
        pass(&mut scene, job, worker);
    }
    assert_eq!((scene.state(job), scene.job(job).candidates.backoff.until), (State::Queued, None));
}

#[test]
fn a_resting_job_is_assigned_when_an_agent_returns_or_asks_and_not_by_a_heartbeat() {
    let (mut scene, job, strangers) = among_strangers(AT_ONCE + 4);
    let agent = strangers[AT_ONCE + 1];
    let stand = |availability| Command::ReportStatus {
        agent,
        status: AgentStatusUpdate { availability, until: None, words: None },
    };
    scene.run(stand(Availability::Offline)).unwrap();
    for _ in 0..AT_ONCE {
        scene.fail(job);
    }
    scene.run(stand(Availability::Idle)).unwrap();
    assert!(scene.is_online(agent));
    assert_eq!(scene.state(job), State::Queued, "it backs off, though an agent is back");
    assert_eq!(post_new(&mut scene, Command::DispatchQueue).outcome, "done");
    assert_eq!(scene.state(job), State::Assigned);
    scene.fail(job);
    assert_eq!(scene.state(job), State::Queued);
    let cheap = scene.register_worker("cheap", "cheap", &[("sum", "1")]);
    assert_eq!(scene.job(job).worker(), Some(cheap));
}

#[test]
fn the_operator_need_not_wait_for_a_task_to_rest() {
    let (mut scene, job, strangers) = among_strangers(AT_ONCE + 2);
    for _ in 1..AT_ONCE {
        scene.fail(job);
    }
    scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
    assert_eq!(scene.job(job).worker(), Some(strangers[AT_ONCE]));
}

#[test]
fn an_auction_that_rests_goes_on_with_the_offers_it_has() {
    let rules = Rules { assignments_before_backoff: 1, ..Rules::default() };
    let mut scene = TestHub::with_market(rules, HOME);
    let client = scene.register_client("client", "rich", "100");
    let all = ["a", "b", "c"].map(|name| stranger(&mut scene, name, &[("sum", "10")]));
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    for (by, price) in all.iter().zip(["10", "20", "30"]) {
        if !scene.job(job).candidates.offers.iter().any(|offer| offer.by == *by) {
            bid(&mut scene, job, *by, price);
        }
    }
    scene.advance(WINDOW);
    let first = scene.job(job).worker().unwrap();
    scene.fail(job);
    assert_eq!(scene.state(job), State::Queued);
    assert_eq!(post_new(&mut scene, Command::DispatchQueue).outcome, "done");
    let second = scene.job(job);
    assert_eq!((second.state, second.candidates.round.unwrap().number), (State::Assigned, 1));
    scene.fail(job);
    rests_for(&mut scene, job, Millis::seconds(2));
    let third = scene.job(job);
    assert_eq!((third.state, third.candidates.round.unwrap().number), (State::Assigned, 1));
    assert!(![Some(first), second.worker()].contains(&third.worker()));
}

#[test]
fn a_task_that_rests_still_ends_with_its_time_and_survives_a_restart() {
    let (mut scene, job, _) = among_strangers(AT_ONCE + 2);
    for _ in 0..AT_ONCE {
        scene.fail(job);
    }
    let rest = scene.job(job).candidates.backoff;
    restart(&mut scene);
    assert_eq!(scene.job(job).candidates.backoff, rest);
    rests_for(&mut scene, job, Millis::seconds(1));
    for _ in 0..2 {
        scene.fail(job);
        scene.advance(Millis::seconds(4));
    }
    assert_eq!(
        (scene.state(job), scene.job(job).candidates.backoff.until),
        (State::Queued, None),
        "no agent is left"
    );
    scene.advance(crate::testkit::JOB_LIFETIME);
    assert_eq!(
        (scene.state(job), scene.balance_text("rich")),
        (State::Expired, account("100.00", "0.00"))
    );
}

#[test]
fn a_capable_agent_that_registers_with_its_first_order_takes_resting_jobs() {
    let (mut scene, job, strangers) = among_strangers(AT_ONCE);
    for _ in 0..AT_ONCE {
        scene.fail(job);
    }
    assert_eq!(scene.state(job), State::Queued);
    let first = scene.job_request("sum", RequestTarget::Agent(strangers[0]), None);
    let mut order = scene.sign_order("pat", "first", Command::RequestJob(Box::new(first)));
    if let Some(new_agent) = &mut order.signature.registration {
        new_agent.skills = vec![skill("sum", "10")];
    }
    let pat = scene.run_signed(order).unwrap().by;
    assert_eq!(scene.job(job).worker(), Some(pat));
}
