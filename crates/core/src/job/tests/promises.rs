//! Promises: how long a worker has that named its own time, and how an approved job waits for
//! capacity.

use super::responding::{ASKS, needs_a_yes, seconds, whole};
use super::{hire, keeps, market, order_for, stand};
use crate::agent::presence::Availability;
use crate::agent::{Capacity, JobIntake};
use crate::agent::{Skill, Terms};
use crate::command::{Approver, Command, OpenJob, Registration, WorkerResponse};
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::RequesterOptions;
use crate::job::acceptance::LATENESS_MAX;
use crate::job::{Cause, Policy, State};
use crate::notice::NoticeKind;
use crate::testkit::{
    JOB_LIFETIME, LEASE, TestHub, registration, registration_with_endpoint, skill,
};
use crate::time::{Millis, Timestamp};

fn ready(at: Timestamp) -> WorkerResponse {
    WorkerResponse::Accept { ready_at: Some(at), worker_job_id: None }
}

#[test]
fn who_says_when_it_is_ready_has_ten_minutes_more() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    for minutes in [-5, 0, 3, 60] {
        let job = hire(&mut scene, client, ada).unwrap().id;
        let at = scene.now.plus(Millis::minutes(minutes));
        let taken = scene.respond(job, ada, ready(at)).unwrap();
        let until = at.max(scene.now).plus(LATENESS_MAX);
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(until), "{minutes}");
        assert_eq!((taken.acceptance.promised, taken.due_at()), (Some(at), Some(until)));
        scene.advance(Millis(until.since(scene.now).0 - 1));
        assert_eq!(scene.state(job), State::Running);
        scene.advance(Millis(1));
        assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
    }
    assert_eq!(scene.agent_state(ada).standing.failures, 4, "no response after acceptance counts");
    assert!(scene.agent_state(ada).window.newest().all(|seen| !seen.ok && !seen.on_time));
}

#[test]
fn a_promise_never_reaches_past_the_deadline() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    for at in [scene.now.plus(JOB_LIFETIME), Timestamp::NEVER] {
        let job = hire(&mut scene, client, ada).unwrap();
        let taken = scene.respond(job.id, ada, ready(at)).unwrap();
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(job.request.deadline));
    }
}

#[test]
fn when_the_requester_wants_a_time_the_lease_counts_as_ever() {
    for (ready_at, wanted) in [(true, true), (false, true), (false, false)] {
        let (mut scene, client) = market();
        let ada = keeps(&mut scene, "ada", ASKS);
        let by = scene.now.plus(Millis::hours(2));
        let promised = wanted.then_some(by);
        let order = OpenJob { wanted_by: promised, ..order_for(&mut scene, client, ada) };
        let job = scene.open_job(order).id;
        scene.advance(seconds(4));
        let ready_at = ready_at.then(|| scene.now.plus(Millis::hours(1)));
        let said = WorkerResponse::Accept { ready_at, worker_job_id: None };
        let taken = scene.respond(job, ada, said).unwrap();
        let until = scene.now.plus(LEASE);
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(until), "{ready_at:?} {wanted}");
        assert_eq!(taken.acceptance.promised, promised);
    }
}

/// An agent that takes one job at a time, sums only with approval, and digs without.
fn busy(more: impl Fn(&mut Skill), terms: Terms) -> (TestHub, AgentId, AgentId, [JobId; 2]) {
    let (mut scene, client) = market();
    let mut sum = skill("sum", "0.10");
    sum.needs_approval = true;
    more(&mut sum);
    let order = registration("ada", "acme", &[]);
    let skills = vec![sum, skill("dig", "0.10")];
    let ada = scene.register(Registration { terms, skills, ..order }).unwrap();
    let waiting = hire(&mut scene, client, ada).unwrap().id;
    let order = OpenJob { skill: "dig".to_owned(), ..order_for(&mut scene, client, ada) };
    let other = scene.open_job(order).id;
    (scene, client, ada, [waiting, other])
}

const ONE: Terms = Terms {
    capacity: Capacity { max_concurrent_jobs: Some(1), max_starts_per_minute: None },
    intake: JobIntake { confirms_jobs: false, strict_input: false, urgent_first: false },
};

#[test]
fn an_acceptance_for_a_worker_at_its_limit_is_retried_every_five_seconds() {
    let (mut scene, client, ada, [job, other]) = busy(|_| {}, ONE);
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    for _ in 0..4 {
        let until = scene.now.plus(seconds(5));
        assert_eq!(scene.state(job), State::Deferred { until });
        scene.advance(seconds(5));
    }
    assert_eq!(scene.notices_to(client), [], "nothing has changed for its requester");
    let asked = |news: &&NoticeKind| matches!(news, NoticeKind::ApprovalRequested { .. });
    assert_eq!(scene.notices_to(ada).iter().filter(asked).count(), 1, "approval is requested once");
    assert_eq!(scene.balance_text("rich").1, "1.00", "its hold stays");
    scene.succeed(other, "0.10");
    scene.advance(Millis(4_999));
    assert!(scene.job(job).worker().is_none());
    scene.advance(Millis(1));
    assert_eq!((scene.job(job).worker(), scene.job(job).epoch), (Some(ada), 1));
    assert_eq!(scene.notices_to(client).last(), Some(&NoticeKind::Accepted { job }));
}

#[test]
fn an_acceptance_for_a_worker_over_its_starts_per_minute_waits_for_the_minute_to_pass() {
    let (mut scene, _, ada, [job, _]) = busy(
        |_| {},
        Terms {
            capacity: Capacity { max_starts_per_minute: Some(1), ..Capacity::default() },
            ..Terms::default()
        },
    );
    scene.approve(job, Approver::Operator, true).unwrap();
    scene.advance(Millis(59_999));
    assert_eq!(scene.job(job).worker(), None);
    scene.advance(Millis(1));
    assert_eq!(scene.job(job).worker(), Some(ada));
}

#[test]
fn a_yes_does_not_outlive_the_deadline() {
    for full in [true, false] {
        let (mut scene, client, ada, [_, other]) = busy(|_| {}, ONE);
        let deadline = scene.now.plus(seconds(12));
        scene.succeed(other, "0.10");
        let order = OpenJob { deadline, ..order_for(&mut scene, client, ada) };
        let job = scene.open_job(order).id;
        if full {
            let order = OpenJob { skill: "dig".to_owned(), ..order_for(&mut scene, client, ada) };
            scene.open_job(order);
            scene.approve(job, Approver::Operator, true).unwrap();
        }
        scene.advance(Millis(11_999));
        assert!(matches!(scene.state(job), State::Deferred { .. }));
        assert!(scene.job(job).due_at() <= Some(deadline), "an hour for approval is too long");
        scene.advance(Millis(1));
        assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
        assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Unassigned { job, epoch: 0 }));
        assert_eq!(scene.agent_state(ada).standing.failures, 0, "it never had it");
    }
}

#[test]
fn who_has_to_agree_is_asked_where_it_is_reached_and_once_per_question() {
    let (mut scene, client) = market();
    let mut sum = skill("sum", "0.10");
    sum.needs_approval = true;
    let order = registration_with_endpoint("ada", "acme", &[]);
    let ada = scene.register(Registration { skills: vec![sum], ..order }).unwrap();
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    assert_eq!(
        (scene.notices_to(ada), scene.balance_text("rich")),
        (vec![], whole()),
        "it is away"
    );
    // If it stays away longer, the job is deferred again, and there is still nothing to approve.
    stand(&mut scene, ada, Availability::Maintenance, Some(90));
    scene.advance(seconds(60));
    assert_eq!(scene.notices_to(ada), []);
    stand(&mut scene, ada, Availability::Idle, None);
    let until = scene.now.plus(Millis::hours(1));
    let wanted = NoticeKind::ApprovalRequested { job, until };
    assert_eq!(scene.notices_to(ada), std::slice::from_ref(&wanted));
    assert_eq!(scene.balance_text("rich").1, "0.50", "held as soon as only approval is missing");
    let sent: Vec<_> = scene.world.deliveries().filter(|push| push.kind == wanted).collect();
    assert_eq!(sent.iter().map(|push| &*push.url).collect::<Vec<_>>(), ["https://ada.example"]);
    // Once approved, a later pause needs no second approval.
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    scene.advance(seconds(30));
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), State::Assigned);
    let told: Vec<_> = scene.notices_to(ada).into_iter().skip(1).collect();
    assert_eq!(told, [NoticeKind::Assigned { job, epoch: 1 }]);
}

#[test]
fn every_put_off_is_in_the_history() {
    let (mut scene, _, _, job) = needs_a_yes();
    scene.run(Command::Heartbeat { agent: AgentId(1) }).unwrap();
    let lines = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
    let until = scene.now.plus(Millis::hours(1));
    assert_eq!(lines.filter(|event| **event == Event::JobDeferred { job, until }).count(), 1);
}
