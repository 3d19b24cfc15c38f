//! A worker's own job id: equivalent to the hub's, and exclusive to that job.

use uuid::Uuid;

use super::responding::{ASKS, asked, seconds};
use super::{PATIENT, hire, keeps, market};
use crate::command::{Canceller, Command, JobRef, OpenJob, WorkerResponse};
use crate::id::{AgentId, JobId};
use crate::job::State;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, job_in, registration_with_endpoint};

const NAME: Uuid = Uuid::from_u128(0xCA11_ED00);

fn called(name: Uuid) -> WorkerResponse {
    WorkerResponse::Accept { ready_at: None, worker_job_id: Some(name) }
}

/// Cancels a job by an id, which shows whether the id leads to it.
fn cancel(scene: &mut TestHub, name: Uuid) -> Result<JobId, Refusal> {
    let (job, by) = (JobRef::Uuid(name), Canceller::Operator);
    scene.run(Command::Cancel { job, by, reason: None }).map(|answer| job_in(answer).id)
}

/// Reports a result under an id.
fn deliver(scene: &mut TestHub, job: JobId, by: AgentId, name: Uuid) -> Result<JobId, Refusal> {
    let word = scene.job_report(job, true, "0.10");
    let word = crate::command::ReportResult { job: JobRef::Uuid(name), by, ..word };
    scene.report_result(word).map(|answer| job_in(answer).id)
}

#[test]
fn a_job_is_found_by_both_names_while_it_lives_and_afterwards() {
    for own in [true, false] {
        let (mut scene, _, ada, job) = asked();
        let taken = scene.respond(job, ada, called(NAME)).unwrap();
        assert_eq!((taken.acceptance.worker_job_id, taken.state), (Some(NAME), State::Running));
        let (first, second) = if own { (NAME, taken.uuid) } else { (taken.uuid, NAME) };
        let eve = scene.register_worker("eve", "evil", &[]);
        assert_eq!(deliver(&mut scene, job, eve, NAME).unwrap_err(), Refusal::NotFound);
        assert_eq!(deliver(&mut scene, job, ada, first), Ok(job));
        // The same report again is recognised under either id, and a finished job does not change.
        assert_eq!(deliver(&mut scene, job, ada, second), Ok(job));
        for name in [first, second] {
            let over = Refusal::WrongState { state: State::Completed };
            assert_eq!(cancel(&mut scene, name).unwrap_err(), over);
        }
        assert_eq!(scene.job(job).acceptance.worker_job_id, Some(NAME));
    }
}

#[test]
fn both_names_lead_to_it_in_a_world_made_anew() {
    let (mut scene, _, ada, job) = asked();
    scene.respond(job, ada, called(NAME)).unwrap();
    scene.world = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(deliver(&mut scene, job, ada, NAME), Ok(job));
}

#[test]
fn a_name_that_is_taken_is_refused_and_changes_nothing() {
    let (mut scene, client, ada, job) = asked();
    let [live, over] = [(); 2].map(|()| hire(&mut scene, client, ada).unwrap());
    scene.respond(live.id, ada, called(NAME)).unwrap();
    scene.succeed(over.id, "0.10");
    let before = (scene.job(job), scene.notices_to(client), scene.world.next);
    for name in [NAME, live.uuid, over.uuid] {
        assert_eq!(scene.respond(job, ada, called(name)).unwrap_err(), Refusal::IdTaken);
    }
    assert_eq!((scene.job(job), scene.notices_to(client), scene.world.next), before);
    let taken = scene.respond(job, ada, called(before.0.uuid)).unwrap();
    assert_eq!(taken.acceptance.worker_job_id, None, "the hub's own id is not another id");
}

#[test]
fn a_name_of_a_job_that_is_over_stays_taken() {
    let (mut scene, client, ada, job) = asked();
    scene.respond(job, ada, called(NAME)).unwrap();
    scene.succeed(job, "0.10");
    let next = hire(&mut scene, client, ada).unwrap().id;
    assert_eq!(scene.respond(next, ada, called(NAME)).unwrap_err(), Refusal::IdTaken);
}

#[test]
fn put_off_and_asked_again_it_may_have_the_same_name() {
    let (mut scene, _, ada, job) = asked();
    scene.respond(job, ada, called(NAME)).unwrap();
    let until = scene.now.plus(seconds(60));
    scene.run(Command::Defer { job: JobRef::Uuid(NAME), by: ada, until }).unwrap();
    scene.advance(seconds(60));
    let resumed = scene.job(job);
    assert_eq!(
        (resumed.state, resumed.acceptance.worker_job_id),
        (State::Assigned, Some(NAME)),
        "it still has it"
    );
    assert_eq!(deliver(&mut scene, job, ada, NAME), Ok(job));
}

#[test]
fn put_off_before_it_was_named_it_is_named_when_asked_again() {
    let (mut scene, _, ada, job) = asked();
    let until = scene.now.plus(seconds(30));
    scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
    scene.advance(seconds(30));
    let taken = scene.respond(job, ada, called(NAME)).unwrap();
    assert_eq!((taken.acceptance.worker_job_id, taken.epoch), (Some(NAME), 2));
}

#[test]
fn a_name_stays_with_its_job_after_reassignment() {
    let (mut scene, client) = market();
    let [ada, bob] = ["ada", "bob"].map(|native| keeps(&mut scene, native, ASKS));
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let job = scene.open_job(order).id;
    scene.respond(job, ada, called(NAME)).unwrap();
    assert_eq!(scene.fail(job).worker(), Some(bob));
    let other = hire(&mut scene, client, ada).unwrap().id;
    assert_eq!(scene.respond(other, ada, called(NAME)).unwrap_err(), Refusal::IdTaken);
    assert_eq!(scene.respond(job, bob, called(NAME)).unwrap().acceptance.worker_job_id, Some(NAME));
    assert_eq!(deliver(&mut scene, job, bob, NAME), Ok(job));
}

#[test]
fn what_one_worker_called_it_is_not_what_the_next_one_does() {
    for how in ["requeued", "unreachable", "declined", "failed"] {
        let (mut scene, client) = market();
        let ada = keeps(&mut scene, "ada", ASKS);
        let bob =
            scene.register(registration_with_endpoint("bob", "acme", &[("sum", "0.20")])).unwrap();
        let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
        let job = scene.open_job(order).id;
        assert_eq!(scene.job(job).worker(), Some(ada));
        scene.respond(job, ada, called(NAME)).unwrap();
        match how {
            "requeued" => drop(scene.run(Command::Requeue { job: JobRef::Uuid(NAME) }).unwrap()),
            "unreachable" => drop(scene.unreachable(job)),
            "declined" => drop(scene.decline(job)),
            _ => drop(scene.fail(job)),
        }
        let moved = scene.job(job);
        assert_eq!((moved.worker(), moved.acceptance.worker_job_id), (Some(bob), None), "{how}");
        assert_eq!(deliver(&mut scene, job, ada, NAME).unwrap_err(), Refusal::NotFound, "{how}");
    }
}
