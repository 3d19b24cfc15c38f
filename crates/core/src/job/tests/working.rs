use super::{PATIENT, market};
use crate::alias::Digest;
use crate::command::{Command, JobRef, OpenJob, ReportResult};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::Reassignment;
use crate::job::{Cause, Policy, Selection, State};
use crate::money::Credits;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{
    LEASE, TestHub, credits, job_in, jobs_in, registration, registration_with_endpoint,
};
use crate::time::{Millis, Timestamp};
use crate::world::Rules;

/// One job of 0.15 for a worker that costs 0.10.
fn hired() -> (TestHub, AgentId, crate::id::JobId) {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "0.15");
    let job = scene.open_job(order).id;
    (scene, ada, job)
}

fn accounts(scene: &TestHub) -> [String; 3] {
    let (open, held) = scene.balance_text("rich");
    [open, held, scene.balance_text("acme").0]
}

#[test]
fn the_worked_numbers_of_escrow() {
    let (mut scene, _, job) = hired();
    assert_eq!(accounts(&scene), ["99.85", "0.15", "0.00"]);
    scene.succeed(job, "0.10");
    assert_eq!(accounts(&scene), ["99.90", "0.00", "0.10"]);

    let (mut scene, _, job) = hired();
    let done = scene.succeed(job, "1.00");
    assert_eq!(accounts(&scene), ["99.90", "0.00", "0.10"], "the price was fixed at assignment");
    let (reported, paid) = (credits("1.00"), credits("0.10"));
    assert_eq!(done.result.as_ref().unwrap().paid, paid);
    let lines = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    let excess = Event::ReportedAbovePrice { job, reported, paid };
    assert_eq!(lines.filter(|event| **event == excess).count(), 1);

    let (mut scene, _, job) = hired();
    scene.succeed(job, "0.04");
    assert_eq!(accounts(&scene), ["99.96", "0.00", "0.04"]);

    let (mut scene, _, job) = hired();
    scene.fail(job);
    assert_eq!(accounts(&scene), ["100.00", "0.00", "0.00"]);
}

#[test]
fn a_worker_that_names_no_cost_gets_its_price_and_is_not_said_to_want_more() {
    let (mut scene, _, job) = hired();
    scene.succeed(job, "1000000000");
    assert_eq!(accounts(&scene), ["99.90", "0.00", "0.10"]);
    let mut events = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    assert!(!events.any(|event| matches!(event, Event::ReportedAbovePrice { .. })));
}

#[test]
fn a_price_raised_later_changes_nothing() {
    let (mut scene, _, job) = hired();
    scene.register(registration("ada", "acme", &[("sum", "0.15")])).unwrap();
    scene.succeed(job, "0.15");
    assert_eq!(accounts(&scene), ["99.90", "0.00", "0.10"]);
}

#[test]
fn a_negative_cost_moves_nothing_backwards() {
    let (mut scene, _, job) = hired();
    let cost = Credits::from_micros(-5_000_000);
    let word = ReportResult { cost, ..scene.job_report(job, true, "0") };
    scene.report_result(word).unwrap();
    assert_eq!(accounts(&scene), ["100.00", "0.00", "0.00"]);
}

#[test]
fn one_final_word_and_the_same_again_is_the_same_answer() {
    let (mut scene, _, job) = hired();
    let word = scene.job_report(job, true, "0.10");
    scene.report_result(word.clone()).unwrap();
    let before = scene.world.next;
    let again = job_in(scene.report_result(word.clone()).unwrap());
    assert_eq!(again, scene.job(job));
    let other = ReportResult { content: Digest::of(&[b"second thoughts"]), ..word };
    let wrong = Refusal::WrongState { state: State::Completed };
    assert_eq!(scene.report_result(other).unwrap_err(), wrong);
    assert_eq!(scene.world.next, before);
}

#[test]
fn a_failure_has_a_cause_and_no_output() {
    let (mut scene, ada, job) = hired();
    let done = scene.fail(job);
    let report = done.result.as_ref().unwrap();
    assert_eq!((report.cause, &report.output), (Some(Cause::Execution), &None));
    assert_eq!(scene.agent_state(ada).standing.failures, 1);
    for (cause, blamed) in [
        (Cause::NoSuchSkill, false),
        (Cause::BudgetTooLow, false),
        (Cause::Policy, false),
        (Cause::Offline, true),
        (Cause::Payment, true),
        (Cause::Unusable, true),
    ] {
        let (mut scene, ada, job) = hired();
        let word = ReportResult { cause: Some(cause), ..scene.job_report(job, false, "0") };
        scene.report_result(word).unwrap();
        assert_eq!(scene.agent_state(ada).standing.failures, u64::from(blamed), "{cause:?}");
        assert_eq!(accounts(&scene), ["100.00", "0.00", "0.00"]);
    }
}

#[test]
fn only_the_worker_may_speak_and_a_stranger_learns_nothing() {
    let (mut scene, ada, job) = hired();
    let eve = scene.register_worker("eve", "evil", &[("sum", "0.10")]);
    let client = scene.world.agent_by_alias(crate::testkit::HOME, "client").unwrap();
    let wanted = JobRef::Id(job);
    for by in [eve, client] {
        let word = ReportResult { by, ..scene.job_report(job, true, "0.10") };
        assert_eq!(scene.report_result(word).unwrap_err(), Refusal::NotFound);
        let job = wanted.clone();
        let commands = [
            Command::Start { job: job.clone(), by },
            Command::Decline { job: job.clone(), by, epoch: None, reason: None },
            Command::Defer { job, by, until: Timestamp::NEVER },
        ];
        for command in commands {
            assert_eq!(scene.run(command).unwrap_err(), Refusal::NotFound);
        }
    }
    let poll = Command::HandOver { agent: eve, jobs: vec![job] };
    assert!(jobs_in(scene.run(poll).unwrap()).is_empty());
    assert_eq!(scene.job(job).worker(), Some(ada));
}

#[test]
fn a_word_about_another_turn_is_not_taken_for_this_one() {
    let (mut scene, ada, job) = hired();
    let other = Refusal::OtherAssignment { epoch: 1 };
    for epoch in [0, 2] {
        let word = ReportResult { epoch: Some(epoch), ..scene.job_report(job, true, "0.10") };
        assert_eq!(scene.report_result(word).unwrap_err(), other);
        let (job, epoch) = (JobRef::Id(job), Some(epoch));
        let no = Command::Decline { job, by: ada, epoch, reason: None };
        assert_eq!(scene.run(no).unwrap_err(), other);
    }
    let word = ReportResult { epoch: Some(1), ..scene.job_report(job, true, "0.10") };
    assert!(scene.report_result(word.clone()).is_ok());
    // Also when it is finished.
    let late = ReportResult { epoch: Some(2), ..word.clone() };
    assert_eq!(scene.report_result(late).unwrap_err(), other);
    assert!(scene.report_result(word).is_ok());
}

#[test]
fn the_reason_for_declining_reaches_the_requester_when_the_job_ends_by_it() {
    for (named, says) in [
        (true, "too much to do"),
        (false, "no other worker is available; the last worker declined: too much to do"),
    ] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "o1", &[("sum", "0.10")]);
        let policy = Policy {
            reassignment: Reassignment { when_declined: !named, ..Reassignment::default() },
            ..Policy::default()
        };
        let order = OpenJob { policy, ..scene.job_order(client, "sum", "1.00") };
        let job = scene.open_job(order).id;
        let (wanted, reason) = (JobRef::Id(job), Some("too much to do".to_owned()));
        let no = Command::Decline { job: wanted, by: ada, epoch: Some(1), reason };
        let ended = job_in(scene.run(no).unwrap());
        assert_eq!(ended.state, State::Failed);
        assert_eq!(ended.result.as_ref().unwrap().text.as_deref(), Some(says));
        assert_eq!(scene.agent_state(ada).standing.failures, 0);
    }
}

#[test]
fn a_declined_job_goes_on_and_never_back() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.20")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.job(job).worker(), Some(a));
    let next = scene.decline(job);
    assert_eq!((next.worker(), next.epoch), (Some(b), 2));
    assert_eq!(next.assignment.unwrap().price, credits("0.20"));
    let late = Command::Decline { job: JobRef::Id(job), by: a, epoch: None, reason: None };
    assert_eq!(scene.run(late).unwrap_err(), Refusal::NotFound);

    assert_eq!(scene.decline(job).state, State::Queued);
    assert_eq!(scene.balance_text("rich").1, "1.00", "the hold stays while it waits");
    // Both register again, even cheaper, and are not chosen again.
    scene.register(registration("a", "o1", &[("sum", "0.01")])).unwrap();
    scene.register(registration("b", "o2", &[("sum", "0.01")])).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    let c = scene.register_worker("c", "o3", &[("sum", "0.90")]);
    assert_eq!(scene.job(job).worker(), Some(c));
    for agent in [a, b] {
        assert_eq!(scene.agent_state(agent).standing.outcomes, 0, "declining does not count");
    }
}

#[test]
fn a_declined_job_without_a_second_choice_ends_with_refund() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let selection = Selection::Direct(a);
    let order = OpenJob { selection, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    let ended = scene.decline(job);
    assert_eq!(ended.state, State::Failed);
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::Policy));
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(a).standing.settled_jobs(), 0);
}

#[test]
fn a_job_that_all_agents_decline_fails_after_a_number_of_attempts() {
    let mut scene = TestHub::new(Rules { attempts_max: 3, ..Rules::default() });
    let client = scene.register_client("client", "rich", "1.00");
    for n in 0..5 {
        scene.register_worker(&format!("w{n}"), &format!("o{n}"), &[("sum", "0.10")]);
    }
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.decline(job).state, State::Assigned);
    assert_eq!(scene.decline(job).state, State::Assigned);
    let ended = scene.decline(job);
    assert_eq!((ended.state, ended.epoch), (State::Failed, 3));
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::NoWorkerLeft));
    assert_eq!(scene.balance_text("rich").0, "1.00");
}

#[test]
fn a_job_past_its_deadline_is_not_reassigned() {
    let (mut scene, client) = market();
    scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    // The hub was down; the refusal comes before the timer.
    scene.advance_without_timers(Millis::hours(25));
    let ended = scene.decline(job);
    assert_eq!((ended.state, ended.worker()), (State::Failed, None));
    assert_eq!(scene.notices_to(b), []);
    assert_eq!(scene.balance_text("rich").0, "100.00");
}

#[test]
fn unreachable_turns_count_too_and_a_tired_job_is_not_queued() {
    let mut scene = TestHub::new(Rules { attempts_max: 2, ..Rules::default() });
    let client = scene.register_client("client", "rich", "1.00");
    for n in 0..4 {
        scene
            .register(registration_with_endpoint(
                &format!("w{n}"),
                &format!("o{n}"),
                &[("sum", "0.10")],
            ))
            .unwrap();
    }
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.unreachable(job).epoch, 2);
    assert_eq!(scene.unreachable(job).state, State::Withdrawn);
    assert_eq!(scene.balance_text("rich").0, "1.00");
}

#[test]
fn a_deferred_job_comes_back_to_its_worker_at_its_moment() {
    let (mut scene, ada, job) = hired();
    let until = scene.now.plus(Millis::hours(1));
    let defer = Command::Defer { job: JobRef::Id(job), by: ada, until };
    let put_off = job_in(scene.run(defer).unwrap());
    assert_eq!((put_off.state, put_off.pending), (State::Deferred { until }, true));
    let early = scene.job_report(job, true, "0.10");
    assert_eq!(
        scene.report_result(early).unwrap_err(),
        Refusal::WrongState { state: put_off.state }
    );
    // The lease does not run meanwhile.
    scene.advance(Millis(60 * 60_000 - 1));
    assert_eq!(scene.state(job), State::Deferred { until });
    scene.advance(Millis(1));
    let resumed = scene.job(job);
    assert_eq!((resumed.state, resumed.epoch), (State::Assigned, 2));
    assert_eq!(resumed.assignment.unwrap().until, scene.now.plus(LEASE));
    assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Assigned { job, epoch: 2 }));
    scene.succeed(job, "0.10");
    assert_eq!(accounts(&scene), ["99.90", "0.00", "0.10"]);
}

#[test]
fn deferring_past_the_deadline_is_failing() {
    let (mut scene, ada, job) = hired();
    let until = Timestamp::NEVER;
    scene.run(Command::Defer { job: JobRef::Id(job), by: ada, until }).unwrap();
    scene.advance(Millis::hours(24));
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(accounts(&scene), ["100.00", "0.00", "0.00"]);
}

#[test]
fn starting_keeps_the_lease_running() {
    let (mut scene, ada, job) = hired();
    let started = Command::Start { job: JobRef::Id(job), by: ada };
    let running = job_in(scene.run(started.clone()).unwrap());
    assert_eq!((running.state, running.pending), (State::Running, true));
    scene.advance(Millis(LEASE.0 - 1));
    scene.run(started).unwrap();
    scene.advance(Millis(1));
    assert_eq!(scene.state(job), State::Expired);
}

#[test]
fn silence_past_the_lease_is_a_failure_with_refund() {
    let (mut scene, ada, job) = hired();
    scene.read_inbox(ada);
    scene.advance(Millis(LEASE.0 - 1));
    assert_eq!(scene.state(job), State::Assigned);
    scene.advance(Millis(1));
    let ended = scene.job(job);
    assert_eq!(ended.state, State::Expired);
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::TimedOut));
    assert_eq!(accounts(&scene), ["100.00", "0.00", "0.00"]);
    assert_eq!(scene.agent_state(ada).standing.failures, 1);
    assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
    let late = scene.job_report(job, true, "0.10");
    assert_eq!(
        scene.report_result(late).unwrap_err(),
        Refusal::WrongState { state: State::Expired }
    );
}

#[test]
fn silence_can_pass_the_job_on_and_the_old_worker_is_a_stranger_then() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    let zombie = scene.job_report(job, true, "0.10");
    scene.read_inbox(a);
    scene.advance(LEASE);
    let passed = scene.job(job);
    assert_eq!((passed.worker(), passed.epoch), (Some(b), 2));
    assert_eq!(scene.agent_state(a).standing.failures, 1, "no response is a failure");
    assert_eq!(scene.notices_to(a).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
    assert_eq!(scene.report_result(zombie).unwrap_err(), Refusal::NotFound);
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("o2").0, "0.10");
    assert_eq!(scene.balance_text("o1").0, "0.00");
}

#[test]
fn a_failing_worker_can_be_followed_by_the_next() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let policy = Policy {
        reassignment: Reassignment { when_failed: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    assert_eq!(scene.fail(job).worker(), Some(b));
    let ended = scene.fail(job);
    assert_eq!((ended.state, ended.worker()), (State::Failed, None));
    assert_eq!(scene.agent_state(a).standing.failures, 1);
    assert_eq!(scene.agent_state(b).standing.failures, 1);
    assert_eq!(scene.balance_text("rich").0, "100.00");
}

#[test]
fn a_named_worker_that_cannot_be_reached_leaves_no_job_behind() {
    let (mut scene, client) = market();
    let ada =
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    let selection = Selection::Direct(ada);
    let order = OpenJob { selection, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order.clone());
    assert_eq!(scene.unreachable(job.id).state, State::Withdrawn);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(ada).standing.outcomes, 0);
    let lost = Command::Start { job: JobRef::Uuid(order.uuid), by: ada };
    assert_eq!(scene.run(lost).unwrap_err(), Refusal::NotFound, "to the outside it never existed");

    // The id may be used again, even for another request, by any requester.
    scene.world.record_activity(ada, scene.now);
    let content = Digest::of(&[b"another job"]);
    let uuid = uuid::Uuid::from_u128(777);
    let again = scene.open_job(OpenJob { content, uuid, ..order });
    assert_ne!(again.id, job.id);
    scene.succeed(again.id, "0.10");
}

#[test]
fn the_hub_takes_the_next_one_when_the_first_cannot_be_reached() {
    let (mut scene, client) = market();
    let a = scene.register(registration_with_endpoint("a", "o1", &[("sum", "0.10")])).unwrap();
    let b = scene.register(registration_with_endpoint("b", "o2", &[("sum", "0.20")])).unwrap();
    let policy = Policy {
        reassignment: Reassignment { when_unreachable: true, ..Reassignment::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    let next = scene.unreachable(job);
    assert_eq!((next.worker(), next.epoch), (Some(b), 2));
    assert!(!scene.is_online(a));
    // A report about an old epoch is ignored.
    scene.run(Command::MarkUnreachable { job, epoch: 1 }).unwrap();
    assert_eq!(scene.job(job).worker(), Some(b));
    assert!(scene.is_online(b));
    assert_eq!(scene.unreachable(job).state, State::Withdrawn);
}

#[test]
fn a_requester_that_was_told_to_wait_gets_the_end_and_no_worker_is_penalized() {
    let (mut scene, client) = market();
    let ada =
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order).id;
    assert!(!scene.job(job).pending);
    scene.run(Command::MarkPending { job }).unwrap();
    let ended = scene.unreachable(job);
    assert_eq!(ended.state, State::Failed);
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::NoWorkerLeft));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(scene.agent_state(ada).standing.settled_jobs(), 0);
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn telling_to_wait_too_late_finds_the_end() {
    let (mut scene, _, job) = hired();
    scene.succeed(job, "0.10");
    let late = job_in(scene.run(Command::MarkPending { job }).unwrap());
    assert_eq!(late.state, State::Completed);
    let late = Command::MarkUnreachable { job, epoch: 1 };
    assert!(scene.run(late).is_ok(), "and so does a connection that failed too late");
    assert_eq!(scene.state(job), State::Completed);
}

#[test]
fn an_operator_takes_a_job_away_without_blame() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order).id;
    let requeue = Command::Requeue { job: JobRef::Id(job) };
    let moved = job_in(scene.run(requeue.clone()).unwrap());
    assert_eq!((moved.worker(), moved.epoch), (Some(b), 2));
    assert_eq!(scene.notices_to(a).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
    assert_eq!(scene.agent_state(a).standing.outcomes, 0);
    scene.succeed(job, "0.10");
    let wrong = Refusal::WrongState { state: State::Completed };
    assert_eq!(scene.run(requeue).unwrap_err(), wrong);
}
