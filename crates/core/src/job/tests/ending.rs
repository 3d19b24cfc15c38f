use super::{PATIENT, market};
use crate::agent::Liveness;
use crate::command::{Canceller, Command, JobRef, OpenJob, Registration};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Requester, Selection, State};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::{TestHub, job_in, jobs_in, registration, registration_with_endpoint};
use crate::time::Millis;

fn cancel(job: JobId, by: Canceller) -> Command {
    Command::Cancel { job: JobRef::Id(job), by, reason: None }
}

/// A job waiting to be fetched by a polling worker.
fn waiting() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order).id;
    (scene, client, ada, job)
}

#[test]
fn a_job_that_was_not_fetched_can_be_cancelled() {
    let (mut scene, client, ada, job) = waiting();
    let eve = scene.register_worker("eve", "evil", &[]);
    for stranger in [eve, ada] {
        let by = Canceller::Agent(stranger);
        assert_eq!(scene.run(cancel(job, by)).unwrap_err(), Refusal::NotFound);
    }
    let by = Canceller::Agent(client);
    let ended = job_in(scene.run(cancel(job, by)).unwrap());
    assert_eq!(ended.state, State::Cancelled);
    let report = ended.result.as_ref().unwrap();
    assert_eq!(report.text.as_deref(), Some("cancelled by requester"));
    assert_eq!(report.cause, Some(Cause::Cancelled));
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(ada).standing.outcomes, 0, "no score");
    assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
    let again = scene.run(cancel(job, by)).unwrap_err();
    assert_eq!(again, Refusal::WrongState { state: State::Cancelled });
}

#[test]
fn what_was_handed_over_cannot_be_called_off() {
    let (mut scene, client, ada, job) = waiting();
    let poll = Command::HandOver { agent: ada, jobs: vec![job] };
    let given = jobs_in(scene.run(poll).unwrap());
    assert_eq!(given.len(), 1);
    let by = Canceller::Agent(client);
    let late = scene.run(cancel(job, by)).unwrap_err();
    assert_eq!(late, Refusal::WrongState { state: State::Assigned });
    let late = scene.run(cancel(job, Canceller::Operator)).unwrap_err();
    assert_eq!(late, Refusal::WrongState { state: State::Assigned });
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("acme").0, "0.10");
}

#[test]
fn what_is_sent_is_handed_over_at_once() {
    let (mut scene, client) = market();
    scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order).id;
    let late = scene.run(cancel(job, Canceller::Agent(client))).unwrap_err();
    assert_eq!(late, Refusal::WrongState { state: State::Assigned });
}

#[test]
fn a_queued_job_can_be_called_off() {
    let (mut scene, client) = market();
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "1.00") };
    let job = scene.open_job(order).id;
    let ended = job_in(scene.run(cancel(job, Canceller::Operator)).unwrap());
    assert_eq!(ended.state, State::Cancelled);
    let text = ended.result.as_ref().unwrap().text.as_deref();
    assert_eq!(text, Some("cancelled by operator"));
    assert_eq!(scene.balance_text("rich").0, "100.00");
    scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    assert_eq!(scene.state(job), State::Cancelled);
}

#[test]
fn the_jobs_of_a_worker_that_leaves_fail_with_refund() {
    let (mut scene, _, ada, job) = waiting();
    scene.read_inbox(ada);
    scene.remove(ada);
    let ended = scene.job(job);
    assert_eq!(ended.state, State::Failed);
    assert_eq!(ended.result.as_ref().unwrap().cause, Some(Cause::WorkerLeft));
    assert_eq!(scene.balance_text("rich"), ("100.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.agent_state(ada).standing.failures, 1);
}

#[test]
fn the_jobs_of_a_worker_that_leaves_can_go_on_elsewhere() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "o1", &[("sum", "0.10")]);
    let b = scene.register_worker("b", "o2", &[("sum", "0.10")]);
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let selection = Selection::Cheapest;
        let order = scene.job_order(client, "sum", "1.00");
        jobs.push(scene.open_job(OpenJob { policy: PATIENT, selection, ..order }).id);
    }
    let defer = Command::Defer { job: JobRef::Id(jobs[1]), by: a, until: scene.now };
    scene.run(defer).unwrap();
    scene.remove(a);
    for job in jobs {
        let moved = scene.job(job);
        assert_eq!((moved.state, moved.worker()), (State::Assigned, Some(b)));
    }
}

#[test]
fn a_requester_that_leaves_still_pays_for_what_was_handed_over() {
    let (mut scene, client, ada, first) = waiting();
    scene.run(Command::HandOver { agent: ada, jobs: vec![first] }).unwrap();
    let order = scene.job_order(client, "sum", "1.00");
    let second = scene.open_job(order).id;
    scene.remove(client);
    assert_eq!(scene.state(first), State::Assigned);
    assert_eq!(scene.state(second), State::Cancelled);
    scene.succeed(first, "0.10");
    assert_eq!(scene.balance_text("rich"), ("99.90".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.balance_text("acme").0, "0.10");
}

#[test]
fn the_end_is_told_in_the_inbox_and_called_back_only_to_who_was_told_to_wait() {
    let (mut scene, client) = market();
    scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    let callback = Some("https://client.example/done".to_owned());
    for waits in [false, true] {
        let order = scene.job_order(client, "sum", "1.00");
        let job = scene.open_job(OpenJob { callback: callback.clone(), ..order }).id;
        if waits {
            scene.run(Command::MarkPending { job }).unwrap();
        }
        scene.succeed(job, "0.10");
        assert_eq!(scene.notices_to(client).last(), Some(&NoticeKind::Ended { job }));
        let called = scene.world.deliveries().filter(|push| push.kind == NoticeKind::Ended { job });
        assert_eq!(called.count(), usize::from(waits));
    }
}

#[test]
fn a_guest_is_called_back_without_having_an_inbox() {
    let mut scene = TestHub::default();
    scene.register_worker("free", "acme", &[("sum", "0")]);
    let callback = Some("https://guest.example/done".to_owned());
    let requester = Requester::Guest("guest".to_owned());
    let order = scene.job_order(AgentId(0), "sum", "0");
    let job = scene.open_job(OpenJob { callback, requester, ..order }).id;
    scene.succeed(job, "0");
    let notice = scene.store.rows.notices.last().unwrap();
    assert_eq!((notice.to, notice.position), (None, 0));
    assert_eq!(notice.news, NoticeKind::Ended { job });
    assert_eq!(scene.world.next_delivery_at(), Some(scene.now));
}

#[test]
fn a_timer_that_fires_early_or_twice_does_nothing() {
    let (mut scene, _, _, job) = waiting();
    let tick = Command::FireTimer(crate::command::Timer::Job(job));
    scene.run(tick.clone()).unwrap();
    assert_eq!(scene.state(job), State::Assigned);
    scene.advance(Millis::minutes(10));
    let before = scene.world.next;
    scene.run(tick).unwrap();
    assert_eq!(scene.world.next, before);
    assert_eq!(scene.state(job), State::Expired);
}

#[test]
fn the_state_table_has_no_way_out_of_an_end() {
    use State::*;
    let until = crate::time::Timestamp(5);
    let all = [
        Open,
        Queued,
        Negotiating,
        Deferred { until },
        Assigned,
        Running,
        InputRequired { until },
        Completed,
        Failed,
        Expired,
        Cancelled,
        Withdrawn,
    ];
    for from in all {
        for to in all {
            assert!(!(from.is_final() && from.may_become(to)), "{from:?} to {to:?}");
            assert!(from == Open || !from.may_become(Open), "nothing becomes open again");
        }
        let may_follow = !matches!(from, Open | Negotiating | Withdrawn);
        assert_eq!(Running.may_become(from), may_follow);
        assert_eq!(InputRequired { until }.may_become(from), may_follow);
        let at_work = matches!(from, Assigned | Running | InputRequired { .. });
        assert_eq!(from.may_become(InputRequired { until }), at_work, "only a worker asks");
    }
}
