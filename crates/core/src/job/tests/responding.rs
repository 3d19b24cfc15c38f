use super::{PATIENT, hire, keeps, market, order_for, stand, sums};
use crate::agent::Terms;
use crate::agent::presence::Availability;
use crate::agent::{Capacity, JobIntake};
use crate::command::{
    Approver, Canceller, Command, JobRef, OfferTerms, OpenJob, Registration, WorkerResponse,
};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, Job, Policy, Selection, State};
use crate::job::{Reassignment, RequesterOptions};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::testkit::{LEASE, TestHub, credits, job_in, jobs_in, registration, skill};
use crate::time::{Millis, Timestamp};
use std::sync::Arc;

pub(super) const ASKS: Terms = Terms {
    capacity: Capacity { max_concurrent_jobs: None, max_starts_per_minute: None },
    intake: JobIntake { confirms_jobs: true, strict_input: false, urgent_first: false },
};
pub(super) const YES: WorkerResponse =
    WorkerResponse::Accept { ready_at: None, worker_job_id: None };

pub(super) fn seconds(n: i64) -> Millis {
    Millis::seconds(n)
}

fn no() -> WorkerResponse {
    WorkerResponse::Refuse { cause: Cause::Policy, text: "not today".to_owned(), words: None }
}

pub(super) fn whole() -> (String, String) {
    ("100.00".to_owned(), "0.00".to_owned())
}

impl TestHub {
    pub(super) fn respond(
        &mut self,
        job: JobId,
        by: AgentId,
        said: WorkerResponse,
    ) -> Result<Arc<Job>, Refusal> {
        self.run(Command::Respond { job: JobRef::Id(job), by, response: said }).map(job_in)
    }

    pub(super) fn approve(
        &mut self,
        job: JobId,
        by: Approver,
        yes: bool,
    ) -> Result<Arc<Job>, Refusal> {
        self.run(Command::Approve { job: JobRef::Id(job), by, approved: yes }).map(job_in)
    }

    pub(super) fn cancel(&mut self, job: JobId, by: AgentId) -> Result<Arc<Job>, Refusal> {
        let by = Canceller::Agent(by);
        self.run(Command::Cancel { job: JobRef::Id(job), by, reason: None }).map(job_in)
    }

    pub(super) fn cause(&self, job: JobId) -> Option<Cause> {
        self.job(job).result.as_ref().and_then(|report| report.cause)
    }

    /// Whether the only outcome so far was on time.
    fn on_time(&self) -> bool {
        let [outcome] = &self.store.rows.outcomes[..] else { panic!("one outcome") };
        outcome.on_time
    }
}

/// A job that needs approval.
pub(super) fn needs_a_yes() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.needs_approval = true);
    let job = hire(&mut scene, client, ada).unwrap().id;
    (scene, client, ada, job)
}

#[test]
fn a_job_that_needs_a_yes_waits_for_it_with_its_money_set_aside() {
    let (scene, _, ada, job) = needs_a_yes();
    let until = scene.now.plus(Millis::hours(1));
    let waiting = scene.job(job);
    assert_eq!((waiting.state, waiting.worker()), (State::Deferred { until }, None));
    assert!(
        waiting
            .candidates
            .pending_assignment
            .is_some_and(|waits| waits.worker == ada && waits.needs_approval)
    );
    assert_eq!(scene.balance_text("rich"), ("99.50".to_owned(), "0.50".to_owned()));
    let wanted = NoticeKind::ApprovalRequested { job, until };
    assert_eq!(scene.notices_to(ada), [wanted], "no assignment yet, but an approval request");
}

#[test]
fn the_agent_or_the_operator_may_agree_once() {
    for operator in [false, true] {
        let (mut scene, client, ada, job) = needs_a_yes();
        let by = if operator { Approver::Operator } else { Approver::Agent(ada) };
        for stranger in [client, scene.register_worker("eve", "evil", &[])] {
            let refused = scene.approve(job, Approver::Agent(stranger), true);
            assert_eq!(refused.unwrap_err(), Refusal::NotFound);
        }
        let unknown = scene.approve(JobId(999), by, true).unwrap_err();
        assert_eq!(unknown, Refusal::NotFound, "another caller learns nothing");
        let given = scene.approve(job, by, true).unwrap();
        assert_eq!((given.state, given.worker()), (State::Assigned, Some(ada)));
        assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
        assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Assigned { job, epoch: 1 }));
        let twice = scene.approve(job, by, true).unwrap_err();
        assert_eq!(twice, Refusal::WrongState { state: State::Assigned });
        scene.succeed(job, "0.10");
        let late = scene.approve(job, by, false).unwrap_err();
        assert_eq!(late, Refusal::WrongState { state: State::Completed });
        assert_eq!(scene.balance_text("rich"), ("99.90".to_owned(), "0.00".to_owned()));
    }
}

#[test]
fn a_no_and_an_hour_of_silence_end_it_without_blame() {
    for silence in [false, true] {
        let (mut scene, client, ada, job) = needs_a_yes();
        if silence {
            scene.advance(Millis(3_599_999));
            assert!(!scene.state(job).is_final());
            scene.advance(Millis(1));
        } else {
            scene.approve(job, Approver::Agent(ada), false).unwrap();
        }
        assert_eq!((scene.state(job), scene.cause(job)), (State::Failed, Some(Cause::Policy)));
        assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
        assert_eq!((scene.balance_text("rich"), scene.score(ada)), (whole(), Score::START));
        let late = scene.approve(job, Approver::Agent(ada), true).unwrap_err();
        assert_eq!(late, Refusal::WrongState { state: State::Failed });
    }
}

#[test]
fn an_agent_that_comes_back_still_needs_the_yes() {
    let (mut scene, _, ada, job) = needs_a_yes();
    let before = scene.state(job);
    stand(&mut scene, ada, Availability::Error, None);
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), before);
    scene.approve(job, Approver::Operator, true).unwrap();
    assert_eq!(scene.state(job), State::Assigned);
}

#[test]
fn a_yes_holds_when_the_agent_is_away_at_that_moment() {
    let (mut scene, client, ada, job) = needs_a_yes();
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let until = scene.now.plus(seconds(60));
    let put_off = scene.approve(job, Approver::Operator, true).unwrap();
    assert_eq!(put_off.state, State::Deferred { until });
    let twice = scene.approve(job, Approver::Operator, true).unwrap_err();
    assert_eq!(twice, Refusal::WrongState { state: State::Deferred { until } });
    assert_eq!(scene.notices_to(client), []);
    stand(&mut scene, ada, Availability::Idle, None);
    assert_eq!(scene.state(job), State::Assigned, "one approval is enough");
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
}

#[test]
fn a_yes_for_an_agent_that_is_full_holds_until_it_has_room() {
    let (mut scene, client) = market();
    let mut one = skill("sum", "0.10");
    one.needs_approval = true;
    let terms = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(1), ..Capacity::default() },
        ..Terms::default()
    };
    let order = registration("ada", "acme", &[("dig", "0.10")]);
    let skills = vec![one, skill("dig", "0.10")];
    let ada = scene.register(Registration { terms, skills, ..order }).unwrap();
    let job = hire(&mut scene, client, ada).unwrap().id;
    let order = OpenJob { skill: "dig".to_owned(), ..order_for(&mut scene, client, ada) };
    let other = scene.open_job(order).id;
    scene.approve(job, Approver::Operator, true).unwrap();
    let waits = scene.job(job).candidates.pending_assignment.expect("it waits");
    assert!(waits.approved && !waits.needs_approval, "{waits:?}");
    scene.advance(seconds(60));
    assert_eq!(scene.job(job).worker(), None, "there is still no capacity");
    scene.succeed(other, "0.10");
    scene.advance(seconds(5));
    assert_eq!((scene.state(job), scene.job(job).worker()), (State::Assigned, Some(ada)));
    assert_eq!(scene.world.assigned_job_count(ada), 1);
}

#[test]
fn a_job_that_needs_approval_cannot_start_without_it() {
    let (mut scene, client, ada, job) = needs_a_yes();
    let order =
        OpenJob { selection: Selection::Broadcast, ..scene.job_order(client, "sum", "0.50") };
    let copies = jobs_in(scene.run(Command::OpenJob(Box::new(order))).unwrap());
    assert!(
        copies
            .iter()
            .all(|job| job.worker().is_none() && job.candidates.pending_assignment.is_some())
    );
    let closes = scene.now.plus(seconds(10));
    let order = scene.job_order(client, "sum", "0.50");
    let auction = scene.open_job(OpenJob { selection: Selection::Auction { closes }, ..order }).id;
    let (price, valid_for) = (credits("0.05"), seconds(60));
    let offer = Command::Offer {
        job: JobRef::Id(auction),
        by: ada,
        price,
        terms: OfferTerms::Open { valid_for },
    };
    scene.run(offer).unwrap();
    scene.advance(seconds(10));
    assert!(
        scene.job(auction).candidates.pending_assignment.is_some_and(|waits| waits.needs_approval)
    );
    let won = scene.approve(auction, Approver::Operator, true).unwrap();
    let price = won.assignment.map(|turn| turn.price);
    assert_eq!(price, Some(credits("0.05")), "for the price it offered");
    job_in(scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap());
    assert_eq!(scene.state(job), State::Failed, "there is no other agent");
    assert_eq!(scene.world.assigned_job_count(ada), 1);
}

/// A job for an agent that confirms jobs itself.
pub(super) fn asked() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = keeps(&mut scene, "ada", ASKS);
    let job = hire(&mut scene, client, ada).unwrap().id;
    (scene, client, ada, job)
}

#[test]
fn who_answers_for_itself_has_the_job_once_it_says_so() {
    let (mut scene, client, ada, job) = asked();
    assert_eq!((scene.state(job), scene.job(job).acceptance.accepted_at), (State::Assigned, None));
    assert_eq!(scene.notices_to(ada), [NoticeKind::Assigned { job, epoch: 1 }]);
    scene.advance(seconds(8));
    for stranger in [client, scene.register_worker("eve", "evil", &[])] {
        assert_eq!(scene.respond(job, stranger, YES).unwrap_err(), Refusal::NotFound);
    }
    let taken = scene.respond(job, ada, YES).unwrap();
    assert_eq!((taken.state, taken.acceptance.accepted_at), (State::Running, Some(scene.now)));
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    assert!(taken.pending, "from now on it cannot vanish");
    for second in [YES, no(), WorkerResponse::Defer { until: Timestamp::NEVER }] {
        let wrong = Refusal::WrongState { state: State::Running };
        assert_eq!(scene.respond(job, ada, second).unwrap_err(), wrong);
    }
    scene.advance(Millis(LEASE.0 - 1));
    assert_eq!(scene.state(job), State::Running, "it has the whole lease from then on");
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("rich"), ("99.90".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_refusal_refunds_the_hold_without_penalty() {
    let (mut scene, client, ada, job) = asked();
    let ended = scene.respond(job, ada, no()).unwrap();
    assert_eq!((ended.state, ended.worker()), (State::Failed, None));
    assert_eq!(ended.result.as_ref().unwrap().text.as_deref(), Some("not today"));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
    assert_eq!(scene.respond(job, ada, YES).unwrap_err(), Refusal::NotFound);
}

#[test]
fn nine_seconds_of_silence_are_a_no() {
    let (mut scene, client, ada, job) = asked();
    scene.advance(Millis(8_999));
    assert_eq!(scene.state(job), State::Assigned);
    scene.advance(Millis(1));
    assert_eq!((scene.state(job), scene.cause(job)), (State::Failed, Some(Cause::NoWorkerLeft)));
    assert_eq!(scene.notices_to(client), [NoticeKind::Ended { job }]);
    assert_eq!(scene.notices_to(ada).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
    assert_eq!(scene.respond(job, ada, YES).unwrap_err(), Refusal::NotFound, "too late");
}

#[test]
fn a_short_deadline_is_no_reason_to_blame_who_never_answered() {
    let (mut scene, client, ada, _) = asked();
    let deadline = scene.now.plus(seconds(5));
    let order = OpenJob { deadline, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    scene.advance_without_timers(seconds(5));
    let late = scene.respond(job, ada, YES).unwrap_err();
    assert_eq!(late, Refusal::WrongState { state: State::Expired });
    scene.advance(Millis(0));
    assert!(scene.state(job).is_final());
    assert_eq!((scene.score(ada), scene.agent_state(ada).standing.outcomes), (Score::START, 0));
}

#[test]
fn the_next_one_is_asked_when_the_policy_says_so() {
    for silence in [false, true] {
        let (mut scene, client) = market();
        let ada = keeps(&mut scene, "ada", ASKS);
        let bob = keeps(&mut scene, "bob", ASKS);
        let policy = Policy {
            reassignment: Reassignment { when_declined: true, ..Reassignment::default() },
            ..Policy::default()
        };
        let order = OpenJob { policy, ..scene.job_order(client, "sum", "0.50") };
        let job = scene.open_job(order).id;
        assert_eq!(scene.job(job).worker(), Some(ada));
        if silence {
            scene.advance(seconds(9));
        } else {
            scene.respond(job, ada, no()).unwrap();
        }
        assert_eq!(
            (scene.job(job).worker(), scene.job(job).acceptance.accepted_at),
            (Some(bob), None)
        );
        assert_eq!(scene.respond(job, ada, YES).unwrap_err(), Refusal::NotFound);
        scene.respond(job, bob, YES).unwrap();
        assert_eq!(scene.agent_state(ada).standing.outcomes, 0);
        scene.succeed(job, "0.10");
        assert_eq!(scene.agent_state(bob).standing.successes, 1);
    }
}

#[test]
fn not_before_then_is_an_answer_too() {
    let (mut scene, client, ada, job) = asked();
    let until = scene.now.plus(seconds(60));
    let now = scene.now;
    let past = scene.respond(job, ada, WorkerResponse::Defer { until: now }).unwrap_err();
    assert_eq!(past, Refusal::DeadlineTooSoon);
    let put_off = scene.respond(job, ada, WorkerResponse::Defer { until }).unwrap();
    assert_eq!((put_off.state, put_off.worker()), (State::Deferred { until }, None));
    assert_eq!(scene.world.assigned_job_count(ada), 0);
    assert_eq!(scene.respond(job, ada, YES).unwrap_err(), Refusal::NotFound);
    scene.advance(seconds(60));
    assert_eq!((scene.state(job), scene.job(job).epoch), (State::Assigned, 2));
    assert_eq!(scene.notices_to(client), [], "it has not accepted yet");
    scene.respond(job, ada, YES).unwrap();
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    let by = ada;
    let until = scene.now.plus(seconds(60));
    scene.run(Command::Defer { job: JobRef::Id(job), by, until }).unwrap();
    scene.advance(seconds(60 + 10));
    assert_eq!(scene.state(job), State::Assigned, "an acceptance needs no second one");
    scene.advance(LEASE);
    assert_eq!((scene.state(job), scene.cause(job)), (State::Expired, Some(Cause::TimedOut)));
    assert_eq!(scene.agent_state(ada).standing.failures, 1, "and is binding");
}

#[test]
fn who_begins_or_hands_over_has_taken_it_on() {
    let (mut scene, client, ada, job) = asked();
    scene.run(Command::Start { job: JobRef::Id(job), by: ada }).unwrap();
    assert_eq!(scene.job(job).acceptance.accepted_at, Some(scene.now));
    assert_eq!(scene.notices_to(client), [NoticeKind::Accepted { job }]);
    scene.advance(seconds(60));
    assert_eq!(scene.state(job), State::Running, "it is not asked again");
    let (mut scene, _, _, job) = asked();
    scene.succeed(job, "0.10");
    assert_eq!(scene.job(job).acceptance.accepted_at, Some(scene.now));
}

#[test]
fn the_hub_accepts_for_agents_of_other_protocols() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap();
    assert_eq!(job.acceptance.accepted_at, Some(scene.now));
    let wrong = Refusal::WrongState { state: State::Assigned };
    assert_eq!(scene.respond(job.id, ada, YES).unwrap_err(), wrong);
    assert_eq!(scene.notices_to(client), []);
}

#[test]
fn on_time_is_by_when_it_was_wanted_else_promised_else_what_it_takes_else_always() {
    let takes = Some(seconds(20));
    for (wanted, takes, ready, late_after) in [
        (Some(30), takes, Some(5), Some(30)),
        (None, takes, Some(5), Some(5)),
        (None, takes, None, Some(20)),
        (None, None, Some(5), Some(5)),
        (None, None, None, None),
    ] {
        for late in [false, true] {
            let (mut scene, client) = market();
            let mut one = skill("sum", "0.10");
            one.expected_duration = takes;
            let order = registration("ada", "acme", &[]);
            let ada =
                scene.register(Registration { skills: vec![one], terms: ASKS, ..order }).unwrap();
            let at = |scene: &TestHub, n| scene.now.plus(seconds(n));
            let promised = wanted.map(|n| at(&scene, n));
            let order = OpenJob { wanted_by: promised, ..order_for(&mut scene, client, ada) };
            let job = scene.open_job(order).id;
            let ready_at = ready.map(|n| at(&scene, n));
            scene
                .respond(job, ada, WorkerResponse::Accept { ready_at, worker_job_id: None })
                .unwrap();
            scene.advance(Millis(late_after.unwrap_or(500) * 1_000 + i64::from(late)));
            scene.succeed(job, "0.10");
            assert_eq!(scene.on_time(), !late || late_after.is_none(), "{wanted:?} {takes:?}");
        }
    }
}

/// A job that either party may cancel, with a worker working on it.
fn free_to_go() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let policy = Policy {
        requester: RequesterOptions { cancels_any_time: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let order = OpenJob { policy, ..order_for(&mut scene, client, ada) };
    let job = scene.open_job(order).id;
    scene.run(Command::Start { job: JobRef::Id(job), by: ada }).unwrap();
    (scene, client, ada, job)
}

#[test]
fn either_side_may_call_it_off_where_that_was_agreed() {
    for (worker, text) in [(false, "cancelled by requester"), (true, "cancelled by its worker")] {
        let (mut scene, client, ada, job) = free_to_go();
        let eve = scene.register_worker("eve", "evil", &[]);
        assert_eq!(scene.cancel(job, eve).unwrap_err(), Refusal::NotFound);
        let ended = scene.cancel(job, if worker { ada } else { client }).unwrap();
        assert_eq!(ended.state, State::Cancelled);
        assert_eq!(ended.result.as_ref().unwrap().text.as_deref(), Some(text));
        // The party that cancelled has its answer; the other one is notified.
        assert_eq!(scene.notices_to(client) == [NoticeKind::Ended { job }], worker);
        let taken_back = Some(&NoticeKind::Unassigned { job, epoch: 1 });
        assert_eq!(scene.notices_to(ada).last() == taken_back, !worker);
        assert_eq!(
            (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
            (whole(), 0)
        );
        let word = scene.job_report(job, true, "0.10");
        assert_eq!(
            scene.report_result(word).unwrap_err(),
            Refusal::WrongState { state: State::Cancelled }
        );
    }
    let (mut scene, client, ada, job) = free_to_go();
    scene.succeed(job, "0.10");
    for by in [client, ada] {
        let late = scene.cancel(job, by).unwrap_err();
        assert_eq!(late, Refusal::WrongState { state: State::Completed });
    }
}

#[test]
fn nothing_else_calls_off_what_was_begun() {
    let (mut scene, client) = market();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    let job = hire(&mut scene, client, ada).unwrap().id;
    assert_eq!(scene.cancel(job, ada).unwrap_err(), Refusal::NotFound, "nor its worker");
    scene.run(Command::Start { job: JobRef::Id(job), by: ada }).unwrap();
    let wrong = Refusal::WrongState { state: State::Running };
    assert_eq!(scene.cancel(job, client).unwrap_err(), wrong);
    let (mut scene, client, _, job) = free_to_go();
    scene.remove(client);
    assert_eq!(scene.state(job), State::Running, "unregistering is not cancelling");
    scene.succeed(job, "0.10");
    assert_eq!(scene.balance_text("acme").0, "0.10", "and the work is paid");
}

#[test]
fn a_job_without_a_worker_can_be_cancelled() {
    for (mut scene, client, ada, job) in [needs_a_yes(), asked()] {
        assert_eq!(scene.cancel(job, ada).unwrap_err(), Refusal::NotFound);
        scene.cancel(job, client).unwrap();
        assert_eq!((scene.state(job), scene.balance_text("rich")), (State::Cancelled, whole()));
        scene.advance(Millis::hours(2));
        assert!(scene.approve(job, Approver::Operator, true).is_err());
    }
    let (mut scene, client, _, job) = needs_a_yes();
    scene.remove(client);
    assert_eq!((scene.state(job), scene.balance_text("rich")), (State::Cancelled, whole()));
}

#[test]
fn when_an_agent_leaves_nothing_waits_for_it() {
    let (mut scene, client, ada, approval) = needs_a_yes();
    stand(&mut scene, ada, Availability::Maintenance, Some(60));
    let back = hire(&mut scene, client, ada).unwrap().id;
    scene.remove(ada);
    for job in [approval, back] {
        let report = scene.job(job).result.clone().unwrap();
        assert_eq!(scene.state(job), State::Failed);
        assert_eq!(report.cause, Some(Cause::NoSuchSkill), "{:?}", report.text);
    }
    assert_eq!(
        (scene.balance_text("rich"), scene.agent_state(ada).standing.outcomes),
        (whole(), 0)
    );
    assert_eq!(scene.notices_to(client).len(), 2);

    let (mut scene, _, ada, job) = asked();
    scene.remove(ada);
    assert_eq!((scene.state(job), scene.balance_text("rich")), (State::Failed, whole()));
    assert_eq!(scene.agent_state(ada).standing.outcomes, 0, "it had not accepted");
}

#[test]
fn when_an_agent_leaves_others_may_have_what_waited_for_it() {
    let (mut scene, client) = market();
    let ada = sums(&mut scene, "ada", |skill| skill.needs_approval = true);
    let order = OpenJob { policy: PATIENT, ..scene.job_order(client, "sum", "0.50") };
    let job = scene.open_job(order).id;
    let bob = scene.register_worker("bob", "acme", &[("sum", "0.20")]);
    scene.remove(ada);
    assert_eq!(scene.job(job).worker(), Some(bob));
}

#[test]
fn a_job_for_another_agent_of_the_same_owner_counts_for_nothing() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "acme", "10");
    let ada = keeps(&mut scene, "ada", ASKS);
    let job = hire(&mut scene, client, ada).unwrap().id;
    scene.respond(job, ada, YES).unwrap();
    scene.succeed(job, "0.10");
    assert_eq!(
        (scene.score(ada), scene.balance_text("acme").0),
        (Score::START, "10.00".to_owned())
    );
}
