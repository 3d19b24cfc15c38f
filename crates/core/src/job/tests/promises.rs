//! Promises: how long a worker has that named its own time, and how an approved job waits for
//! capacity.

use super::responding::{ASKS, needs_a_yes, seconds, whole};
use super::{hire, keeps, market, order_for, stand};
use crate::agent::presence::Stance;
use crate::agent::{Skill, Terms};
use crate::command::{Approver, Command, Enrol, OpenJob, Response};
use crate::event::Event;
use crate::id::{AgentId, JobId};
use crate::job::acceptance::PATIENCE;
use crate::job::{Cause, Policy, State};
use crate::notice::News;
use crate::testkit::{LEASE, LIFE, Scene, enrolment, reached, skill};
use crate::time::{Millis, Timestamp};

fn ready(at: Timestamp) -> Response {
    Response::Accept { ready_at: Some(at), called: None }
}

#[test]
fn who_says_when_it_is_ready_has_ten_minutes_more() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    for minutes in [-5, 0, 3, 60] {
        let job = hire(&mut scene, client, ada).unwrap().id;
        let at = scene.now.plus(Millis::minutes(minutes));
        let taken = scene.respond(job, ada, ready(at)).unwrap();
        let until = at.max(scene.now).plus(PATIENCE);
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(until), "{minutes}");
        assert_eq!((taken.promised, taken.due()), (Some(at), Some(until)));
        scene.wait(Millis(until.since(scene.now).0 - 1));
        assert_eq!(scene.state(job), State::Running);
        scene.wait(Millis(1));
        assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
    }
    assert_eq!(scene.desk(ada).standing.failures, 4, "no response after acceptance counts");
    assert!(scene.desk(ada).window.newest().all(|seen| !seen.ok && !seen.on_time));
}

#[test]
fn a_promise_never_reaches_past_the_deadline() {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    for at in [scene.now.plus(LIFE), Timestamp::NEVER] {
        let job = hire(&mut scene, client, ada).unwrap();
        let taken = scene.respond(job.id, ada, ready(at)).unwrap();
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(job.deadline));
    }
}

#[test]
fn when_the_requester_wants_a_time_the_lease_counts_as_ever() {
    for (ready_at, wanted) in [(true, true), (false, true), (false, false)] {
        let (mut scene, client) = market();
        let ada = keeps(&mut scene, "ada", ASKS);
        let by = scene.now.plus(Millis::hours(2));
        let promised = wanted.then_some(by);
        let order = OpenJob { promised, ..order_for(&mut scene, client, ada) };
        let job = scene.open(order).id;
        scene.wait(seconds(4));
        let ready_at = ready_at.then(|| scene.now.plus(Millis::hours(1)));
        let said = Response::Accept { ready_at, called: None };
        let taken = scene.respond(job, ada, said).unwrap();
        let until = scene.now.plus(LEASE);
        assert_eq!(taken.assignment.map(|turn| turn.until), Some(until), "{ready_at:?} {wanted}");
        assert_eq!(taken.promised, promised);
    }
}

/// An agent that takes one job at a time, sums only with approval, and digs without.
fn busy(more: impl Fn(&mut Skill), terms: Terms) -> (Scene, AgentId, AgentId, [JobId; 2]) {
    let (mut scene, client) = market();
    let mut sum = skill("sum", "0.10");
    sum.approval = true;
    more(&mut sum);
    let order = enrolment("ada", "acme", &[]);
    let skills = vec![sum, skill("dig", "0.10")];
    let ada = scene.enrol(Enrol { terms, skills, ..order }).unwrap();
    let waiting = hire(&mut scene, client, ada).unwrap().id;
    let order = OpenJob { skill: "dig".to_owned(), ..order_for(&mut scene, client, ada) };
    let other = scene.open(order).id;
    (scene, client, ada, [waiting, other])
}

const ONE: Terms = Terms {
    at_once: Some(1),
    per_minute: None,
    answers_itself: false,
    strict: false,
    urgent_first: false,
};

#[test]
fn a_yes_for_somebody_full_is_tried_again_every_five_seconds() {
    let (mut scene, client, ada, [job, other]) = busy(|_| {}, ONE);
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    for _ in 0..4 {
        let until = scene.now.plus(seconds(5));
        assert_eq!(scene.state(job), State::Deferred { until });
        scene.wait(seconds(5));
    }
    assert_eq!(scene.told(client), [], "nothing has changed for its requester");
    let asked = |news: &&News| matches!(news, News::ApprovalWanted { .. });
    assert_eq!(scene.told(ada).iter().filter(asked).count(), 1, "approval is requested once");
    assert_eq!(scene.purse("rich").1, "1.00", "its hold stays");
    scene.succeed(other, "0.10");
    scene.wait(Millis(4_999));
    assert!(scene.job(job).worker().is_none());
    scene.wait(Millis(1));
    assert_eq!((scene.job(job).worker(), scene.job(job).epoch), (Some(ada), 1));
    assert_eq!(scene.told(client).last(), Some(&News::Accepted { job }));
}

#[test]
fn a_yes_for_somebody_who_has_begun_enough_waits_for_the_minute_to_pass() {
    let (mut scene, _, ada, [job, _]) =
        busy(|_| {}, Terms { per_minute: Some(1), ..Terms::default() });
    scene.approve(job, Approver::Operator, true).unwrap();
    scene.wait(Millis(59_999));
    assert_eq!(scene.job(job).worker(), None);
    scene.wait(Millis(1));
    assert_eq!(scene.job(job).worker(), Some(ada));
}

#[test]
fn a_yes_does_not_outlive_the_deadline() {
    for full in [true, false] {
        let (mut scene, client, ada, [_, other]) = busy(|_| {}, ONE);
        let deadline = scene.now.plus(seconds(12));
        scene.succeed(other, "0.10");
        let order = OpenJob { deadline, ..order_for(&mut scene, client, ada) };
        let job = scene.open(order).id;
        if full {
            let order = OpenJob { skill: "dig".to_owned(), ..order_for(&mut scene, client, ada) };
            scene.open(order);
            scene.approve(job, Approver::Operator, true).unwrap();
        }
        scene.wait(Millis(11_999));
        assert!(matches!(scene.state(job), State::Deferred { .. }));
        assert!(scene.job(job).due() <= Some(deadline), "an hour for approval is too long");
        scene.wait(Millis(1));
        assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
        assert_eq!(scene.told(ada).last(), Some(&News::TakenBack { job, epoch: 0 }));
        assert_eq!(scene.desk(ada).standing.failures, 0, "it never had it");
    }
}

#[test]
fn who_has_to_agree_is_asked_where_it_is_reached_and_once_per_question() {
    let (mut scene, client) = market();
    let mut sum = skill("sum", "0.10");
    sum.approval = true;
    let order = reached("ada", "acme", &[]);
    let ada = scene.enrol(Enrol { skills: vec![sum], ..order }).unwrap();
    stand(&mut scene, ada, Stance::Maintenance, Some(60));
    let policy = Policy { presence_first: true, ..Policy::default() };
    let order = OpenJob { policy, ..order_for(&mut scene, client, ada) };
    let job = scene.open(order).id;
    assert_eq!((scene.told(ada), scene.purse("rich")), (vec![], whole()), "it is away");
    // If it stays away longer, the job is deferred again, and there is still nothing to approve.
    stand(&mut scene, ada, Stance::Maintenance, Some(90));
    scene.wait(seconds(60));
    assert_eq!(scene.told(ada), []);
    stand(&mut scene, ada, Stance::Idle, None);
    let until = scene.now.plus(Millis::hours(1));
    let wanted = News::ApprovalWanted { job, until };
    assert_eq!(scene.told(ada), std::slice::from_ref(&wanted));
    assert_eq!(scene.purse("rich").1, "0.50", "held as soon as only approval is missing");
    let sent: Vec<_> = scene.world.pushes().filter(|push| push.news == wanted).collect();
    assert_eq!(sent.iter().map(|push| &*push.url).collect::<Vec<_>>(), ["https://ada.example"]);
    // Once approved, a later pause needs no second approval.
    stand(&mut scene, ada, Stance::Maintenance, Some(60));
    scene.approve(job, Approver::Agent(ada), true).unwrap();
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    scene.wait(seconds(30));
    stand(&mut scene, ada, Stance::Idle, None);
    assert_eq!(scene.state(job), State::Assigned);
    let told: Vec<_> = scene.told(ada).into_iter().skip(1).collect();
    assert_eq!(told, [News::Assigned { job, epoch: 1 }]);
}

#[test]
fn every_put_off_is_in_the_history() {
    let (mut scene, _, _, job) = needs_a_yes();
    scene.run(Command::Beat { agent: AgentId(1) }).unwrap();
    let lines = scene.store.rows.lines.iter().flat_map(|line| &line.events);
    let until = scene.now.plus(Millis::hours(1));
    assert_eq!(lines.filter(|event| **event == Event::JobDeferred { job, until }).count(), 1);
}
