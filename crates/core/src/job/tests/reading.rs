//! Reading by urgency: such an agent is notified of work when it reads, in that order, and once.

use super::{hire, market, order_for, stand};
use crate::agent::Terms;
use crate::agent::presence::Availability;
use crate::agent::{Capacity, JobIntake};
use crate::command::{Command, OpenJob, Registration};
use crate::id::{AgentId, JobId};
use crate::job::Policy;
use crate::job::RequesterOptions;
use crate::notice::NoticeKind;
use crate::testkit::{TestHub, jobs_in, registration, registration_with_endpoint};

const URGENT: Terms = Terms {
    capacity: Capacity { max_concurrent_jobs: None, max_starts_per_minute: None },
    intake: JobIntake { confirms_jobs: false, strict_input: false, urgent_first: true },
};

fn read(scene: &mut TestHub, agent: AgentId, jobs: &[JobId]) -> Vec<JobId> {
    let command = Command::HandOver { agent, jobs: jobs.to_vec() };
    jobs_in(scene.run(command).unwrap()).iter().map(|job| job.id).collect()
}

fn news(job: JobId) -> NoticeKind {
    NoticeKind::Assigned { job, epoch: 1 }
}

/// An agent that reads by urgency, with three unread jobs.
fn unread() -> (TestHub, AgentId, AgentId, [JobId; 3]) {
    let (mut scene, client) = market();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { terms: URGENT, ..order }).unwrap();
    let policy = Policy {
        requester: RequesterOptions { cancels_any_time: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let jobs = [5, 1, 9].map(|priority| {
        let order = OpenJob { priority, policy, ..order_for(&mut scene, client, ada) };
        scene.open_job(order).id
    });
    (scene, client, ada, jobs)
}

#[test]
fn work_is_told_when_it_is_read_in_the_order_it_is_read_and_once() {
    let (mut scene, _, ada, [a, b, c]) = unread();
    assert_eq!(scene.notices_to(ada), []);
    assert!(scene.job(a).assignment.is_some_and(|turn| !turn.handed_over));
    assert_eq!(read(&mut scene, ada, &[b, a]), [b, a]);
    assert_eq!(scene.notices_to(ada), [news(b), news(a)]);
    assert!(scene.job(a).assignment.is_some_and(|turn| turn.handed_over));
    assert_eq!(read(&mut scene, ada, &[b, c, a, c]), [b, c, a, c]);
    assert_eq!(scene.notices_to(ada), [news(b), news(a), news(c)]);
    // Positions are given at notification, so they have no gaps in that order.
    assert_eq!(scene.world.inbox(ada).head, 3);
}

#[test]
fn only_its_own_work_in_hand_is_told() {
    let (mut scene, client, ada, [a, b, c]) = unread();
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.10")]);
    let other = hire(&mut scene, client, bob).unwrap().id;
    scene.cancel(a, client).unwrap();
    scene.succeed(b, "0.10");
    let before = scene.notices_to(ada);
    assert_eq!(read(&mut scene, ada, &[a, b, other, JobId(99), c]), [c]);
    assert_eq!(scene.notices_to(ada)[before.len()..], [news(c)]);
    assert_eq!(read(&mut scene, bob, &[other, c]), [other]);
    assert_eq!(scene.notices_to(bob), [news(other)], "others were notified at once, and not again");
}

#[test]
fn what_is_sent_is_told_at_once_and_not_again() {
    let (mut scene, client) = market();
    let order = registration_with_endpoint("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { terms: URGENT, ..order }).unwrap();
    let job = hire(&mut scene, client, ada).unwrap().id;
    assert_eq!(scene.notices_to(ada), [news(job)]);
    assert_eq!(scene.world.deliveries().filter(|push| push.kind == news(job)).count(), 1);
    assert_eq!(read(&mut scene, ada, &[job]), [job]);
    assert_eq!(scene.notices_to(ada), [news(job)]);
}

#[test]
fn what_waited_for_its_return_is_told_when_it_reads_too() {
    let (mut scene, client, ada, _) = unread();
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let job = hire(&mut scene, client, ada).unwrap().id;
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!((scene.job(job).worker(), scene.notices_to(ada)), (Some(ada), vec![]));
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    read(&mut scene, ada, &[job]);
    assert_eq!(scene.notices_to(ada), [news(job)]);
}
