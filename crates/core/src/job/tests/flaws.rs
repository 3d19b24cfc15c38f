//! Input errors: they are reported once the worker is back, and the job is never assigned to it.

use super::responding::{seconds, whole};
use super::returning::PRESENCE_FIRST;
use super::{market, order_for, stand};
use crate::agent::Capacity;
use crate::agent::Terms;
use crate::agent::presence::Availability;
use crate::command::{Command, JobRef, OpenJob, Registration};
use crate::id::{AgentId, JobId};
use crate::job::Queueing;
use crate::job::{Cause, Policy, State};
use crate::notice::NoticeKind;
use crate::testkit::{TestHub, registration};
use crate::time::Millis;

const FLAW: &str = r#"{"validation_errors":["n must be a number"]}"#;

fn flawed(scene: &mut TestHub, client: AgentId, ada: AgentId) -> OpenJob {
    let flaw = Some(FLAW.to_owned());
    OpenJob { input_error: flaw, policy: PRESENCE_FIRST, ..order_for(scene, client, ada) }
}

/// A job with an input error, for an agent that is away for a minute.
fn put_off() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let order = flawed(&mut scene, client, ada);
    let job = scene.open_job(order).id;
    (scene, client, ada, job)
}

/// The requester was told the input error, and the worker nothing at all.
fn was_told(scene: &TestHub, client: AgentId, ada: AgentId, job: JobId) {
    let ended = scene.job(job);
    let report = ended.result.as_ref().expect("it ended");
    assert_eq!((ended.state, report.cause), (State::Failed, Some(Cause::Unusable)));
    assert_eq!(report.meta.as_deref(), Some(FLAW));
    assert_eq!((ended.worker(), ended.epoch, ended.acceptance.accepted_at), (None, 0, None));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(scene.notices_to(ada), []);
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
    assert!(scene.store.rows.entries.iter().all(|entry| entry.job.is_none()), "no money moved");
}

#[test]
fn it_is_told_when_the_worker_is_back() {
    let (mut scene, client, ada, job) = put_off();
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    assert_eq!(scene.notices_to(client), []);
    scene.advance(seconds(30));
    stand(&mut scene, ada, Availability::Idle, None);
    was_told(&scene, client, ada, job);
}

#[test]
fn it_is_told_before_load_time_and_price_are_asked_about() {
    let (mut scene, client, ada, job) = put_off();
    let terms = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(0), max_starts_per_minute: Some(0) },
        ..Terms::default()
    };
    let order = registration("ada", "acme", &[("sum", "9.00")]);
    scene.register(Registration { terms, ..order }).unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    was_told(&scene, client, ada, job);
}

#[test]
fn who_is_away_for_longer_is_waited_for_before_it_is_told() {
    let (mut scene, client, ada, job) = put_off();
    stand(&mut scene, ada, Availability::Maintenance, Some(200));
    let until = scene.now.plus(seconds(200));
    scene.advance(seconds(60));
    assert_eq!(scene.state(job), State::Deferred { until }, "it is not back");
    stand(&mut scene, ada, Availability::Idle, None);
    was_told(&scene, client, ada, job);
}

#[test]
fn who_does_not_come_back_is_the_reason_and_not_the_flaw() {
    for (availability, cause) in [
        (Some(Availability::Broken), Cause::NoSuchSkill),
        (Some(Availability::Error), Cause::Offline),
        (None, Cause::Offline),
    ] {
        let (mut scene, client, ada, job) = put_off();
        if let Some(availability) = availability {
            stand(&mut scene, ada, availability, None);
        }
        scene.advance(seconds(60));
        let report = scene.job(job).result.clone().unwrap();
        assert_eq!((report.cause, report.meta), (Some(cause), None), "{availability:?}");
        assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
        assert_eq!(scene.balance_text("rich"), whole());
    }
    let (mut scene, _, ada, job) = put_off();
    scene.remove(ada);
    let report = scene.job(job).result.clone().unwrap();
    assert_eq!((report.cause, report.meta), (Some(Cause::NoSuchSkill), None));
    let (mut scene, _, ada, job) = put_off();
    scene.register(registration("ada", "acme", &[("dig", "0.10")])).unwrap();
    stand(&mut scene, ada, Availability::Idle, None);
    let report = scene.job(job).result.clone().unwrap();
    assert_eq!((report.cause, report.meta), (Some(Cause::NoSuchSkill), None));
}

/// The caller checks first whether the worker is away, and the worker may return in between.
#[test]
fn who_came_back_in_between_is_not_given_it_either() {
    for approval in [false, true] {
        let (mut scene, client) = market();
        let ada = super::sums(&mut scene, "ada", |skill| skill.needs_approval = approval);
        let order = flawed(&mut scene, client, ada);
        let job = scene.open_job(order).id;
        assert_eq!((scene.job(job).worker(), scene.balance_text("rich")), (None, whole()));
        scene.advance(Millis(0));
        was_told(&scene, client, ada, job);
    }
}

#[test]
fn no_policy_gets_round_it() {
    for policy in [
        super::PATIENT,
        Policy {
            queueing: Queueing { when_unmatched: true, ..PRESENCE_FIRST.queueing },
            ..PRESENCE_FIRST
        },
    ] {
        let (mut scene, client) = market();
        let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
        stand(&mut scene, ada, Availability::Maintenance, Some(60));
        let order = OpenJob { policy, ..flawed(&mut scene, client, ada) };
        let job = scene.open_job(order).id;
        scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
        stand(&mut scene, ada, Availability::Idle, None);
        scene.advance(Millis::hours(48));
        assert_eq!((scene.job(job).worker(), scene.job(job).epoch), (None, 0));
        assert_eq!(scene.balance_text("rich"), whole());
    }
}
