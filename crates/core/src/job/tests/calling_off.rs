//! Cancelling a job: by which party, with which reason, and who is notified.

use super::responding::{needs_a_yes, seconds, whole};
use super::{market, order_for, stand, sums};
use crate::agent::presence::Availability;
use crate::command::{Canceller, Command, JobRef, OpenJob};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Job, Policy, State};
use crate::job::{NamedWorker, Queueing, Reassignment, RequesterOptions};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, job_in};
use std::sync::Arc;

const EITHER_SIDE: Policy = Policy {
    reassignment: Reassignment {
        when_unreachable: false,
        when_declined: false,
        when_failed: false,
    },
    queueing: Queueing { when_unmatched: false, after_failure: false },
    requester: RequesterOptions {
        answered_at_once: true,
        cancels_any_time: true,
        waits: false,
        unpaid: false,
        follows_log: false,
    },
    named_worker: NamedWorker { may_be_offline: false, not_before: None },
};

fn cancel(
    scene: &mut TestHub,
    job: JobId,
    by: Canceller,
    why: Option<&str>,
) -> Result<Arc<Job>, Refusal> {
    let (job, reason) = (JobRef::Id(job), why.map(str::to_owned));
    scene.run(Command::Cancel { job, by, reason }).map(job_in)
}

/// A job that is deferred: until its worker is back, or until it is approved.
fn waiting(approval: bool) -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.needs_approval = approval);
    if !approval {
        stand(&mut scene, ada, Availability::Maintenance, Some(60));
    }
    let order = OpenJob { policy: EITHER_SIDE, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    (scene, client, ada, job)
}

#[test]
fn the_reason_is_kept_in_the_words_it_was_given() {
    for approval in [false, true] {
        let (scene, client, ada, job) = waiting(approval);
        let all = [
            (Canceller::Agent(client), None, "cancelled by requester"),
            (Canceller::Agent(client), Some("too dear"), "too dear"),
            (Canceller::Agent(ada), None, "cancelled by its worker"),
            (Canceller::Agent(ada), Some("no time"), "no time"),
            (Canceller::Operator, Some("hub policy"), "hub policy"),
            (Canceller::Operator, None, "cancelled by operator"),
        ];
        for (by, why, text) in all {
            let mut scene = scene.clone();
            let ended = cancel(&mut scene, job, by, why).unwrap();
            let report = ended.result.as_ref().expect("it ended");
            assert_eq!((ended.state, report.cause), (State::Cancelled, Some(Cause::Cancelled)));
            assert_eq!(report.text.as_deref(), Some(text));
            assert_eq!((report.ok, &report.meta, &report.output), (false, &None, &None));
        }
    }
}

#[test]
fn the_party_it_waits_for_may_cancel_and_the_other_is_notified() {
    for approval in [false, true] {
        for worker in [false, true] {
            let (mut scene, client, ada, job) = waiting(approval);
            let by = Canceller::Agent(if worker { ada } else { client });
            cancel(&mut scene, job, by, Some("why")).unwrap();
            let taken_back = Some(&NoticeKind::Unassigned { job, epoch: 0 });
            assert_eq!(scene.notices_to(ada).last() == taken_back, !worker);
            assert_eq!(scene.notices_to(client) == [NoticeKind::Ended { job }], worker);
            assert_eq!(
                (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
                (whole(), 0)
            );
            assert!(scene.agent_state(ada).window.is_empty(), "it is no one's failure");
            // The job does not come back with its worker.
            stand(&mut scene, ada, Availability::Idle, None);
            scene.advance(seconds(7_200));
            assert_eq!(scene.state(job), State::Cancelled);
            let again = cancel(&mut scene, job, by, None).unwrap_err();
            let gone = Refusal::WrongState { state: State::Cancelled };
            // For the agent it only waited for, the job is not found or has ended.
            assert!(again == gone || worker && again == Refusal::NotFound, "{again:?}");
        }
    }
}

#[test]
fn other_agents_may_not_and_without_that_policy_only_the_requester_may() {
    let (mut scene, _, _, job) = waiting(false);
    let eve = scene.register_worker("eve", "evil", &[]);
    for by in [Canceller::Agent(eve), Canceller::Guest] {
        assert_eq!(cancel(&mut scene, job, by, Some("x")).unwrap_err(), Refusal::NotFound);
    }
    let (mut scene, _, ada, job) = needs_a_yes();
    let refused = cancel(&mut scene, job, Canceller::Agent(ada), Some("x")).unwrap_err();
    assert_eq!(refused, Refusal::NotFound, "it is only deferred for it");
}

#[test]
fn of_two_jobs_of_who_leaves_the_one_called_off_freely_does_not_silence_the_other() {
    let (mut scene, client, _, _) = waiting(false);
    let bob = scene.register_worker("bob", "bob", &[("sum", "0.10")]);
    let callback = Some("https://client.example/done".to_owned());
    let order = OpenJob { callback, ..order_for(&mut scene, client, bob) };
    let job = scene.open_job(order).id;
    scene.remove(client);
    assert_eq!(scene.state(job), State::Cancelled);
    assert_eq!(scene.notices_to(client).last(), Some(&NoticeKind::Ended { job }));
    let called: Vec<_> =
        scene.world.deliveries().map(|push| (push.url.as_str(), &push.kind)).collect();
    assert_eq!(called, [("https://client.example/done", &NoticeKind::Ended { job })]);
}
