//! Responses to a request: results and parts, refusals and failures, timeouts and withdrawal.

use super::AWAY_CREDITS;
use crate::command::{
    AbandonJob, Canceller, Command, JobRef, JobRequest, ProfileUpdate, RequestTarget,
};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, State};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::testkit::signed_orders::{
    accept, envelope_text, failure, offer, partial_result, refusal, result, with_counterparty,
};
use crate::testkit::{AWAY, JOB_LIFETIME, TestHub, credits, registration};
use crate::time::Millis;

/// A requester with credits and a sole invitee, with its listed price held.
fn direct() -> (TestHub, AgentId, AgentId, JobId) {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    let ann = scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let job = scene.request("ann", "r", pat, Some("8"));
    (scene, ann, pat, job)
}

/// The same after an offer was accepted.
fn accepted() -> (TestHub, AgentId, AgentId, JobId) {
    let (mut scene, ann, pat, job) = direct();
    scene.sign_and_run("pat", "o", offer("r", "4")).unwrap();
    scene.sign_and_run("ann", "a", accept("o")).unwrap();
    (scene, ann, pat, job)
}

fn untouched(scene: &TestHub) -> bool {
    scene.balance_text("ann") == ("10.00".to_owned(), "0.00".to_owned())
}

fn because(cause: Cause, command: Command) -> Command {
    let Command::AbandonJob(order) = command else { panic!("{command:?}") };
    Command::AbandonJob(Box::new(AbandonJob { cause, ..*order }))
}

#[test]
fn parts_are_passed_on_and_the_last_one_completes() {
    let (mut scene, ann, pat, job) = accepted();
    for id in ["x1", "x2"] {
        assert_eq!(scene.sign_and_run("pat", id, partial_result("r")), Ok(State::Running));
        assert_eq!(scene.balance_text("ann").1, "4.00", "nothing is paid yet");
    }
    assert_eq!(scene.sign_and_run("pat", "x3", result("r")), Ok(State::Completed));
    assert_eq!(scene.messages_to(ann), ["o", "x1", "x2", "x3"].map(|id| envelope_text("pat", id)));
    assert_eq!(scene.balance_text("pat").0, "4.00");
    let done = Refusal::WrongState { state: State::Completed };
    assert_eq!(scene.sign_and_run("pat", "x4", partial_result("r")), Err(done));
    assert_eq!(scene.job(job).worker(), Some(pat));
}

#[test]
fn a_part_begins_the_direct_flow_and_keeps_the_listed_price() {
    let (mut scene, _, pat, job) = direct();
    assert_eq!(scene.sign_and_run("pat", "x1", partial_result("r")), Ok(State::Running));
    let running = Refusal::WrongState { state: State::Running };
    assert_eq!(scene.sign_and_run("pat", "o", offer("r", "6")), Err(running.clone()));
    assert_eq!(scene.sign_and_run("ann", "e", failure("r")), Err(running), "too late to withdraw");
    assert_eq!(scene.job(job).assignment.map(|turn| turn.price), Some(credits("5")));
    assert_eq!(scene.sign_and_run("pat", "x2", result("r")), Ok(State::Completed));
    assert_eq!(
        (scene.balance_text("pat").0, scene.score(pat) > Score::START),
        ("5.00".to_owned(), true)
    );
}

#[test]
fn in_the_direct_flow_a_failure_counts_and_a_refusal_does_not() {
    let (mut scene, ann, pat, job) = direct();
    let mut refused = scene.clone();
    assert_eq!(scene.sign_and_run("pat", "e", failure("r")), Ok(State::Failed));
    assert!(untouched(&scene));
    assert_eq!(
        (scene.agent_state(pat).standing.failures, scene.messages_to(ann)),
        (1, vec![envelope_text("pat", "e")])
    );
    let report = scene.job(job).result.clone().unwrap();
    assert_eq!((report.cause, report.text.as_deref()), (Some(Cause::Execution), Some("it broke")));
    assert_eq!(refused.sign_and_run("pat", "e", refusal("r")), Ok(State::Failed));
    assert!(untouched(&refused));
    assert_eq!(refused.agent_state(pat).standing.outcomes, 0);
    assert_eq!(refused.messages_to(ann), [envelope_text("pat", "e")]);
    let failed = Refusal::WrongState { state: State::Failed };
    assert_eq!(refused.sign_and_run("pat", "x", result("r")), Err(failed.clone()));
    assert_eq!(refused.sign_and_run("pat", "o", offer("r", "1")), Err(failed));
}

#[test]
fn before_a_price_is_accepted_a_failure_has_no_penalty_and_afterwards_it_has() {
    let (mut scene, _, pat, _) = direct();
    scene.sign_and_run("pat", "o", offer("r", "4")).unwrap();
    assert_eq!(scene.sign_and_run("pat", "e", failure("r")), Ok(State::Failed));
    assert_eq!(scene.agent_state(pat).standing.outcomes, 0);
    for signed_order in [refusal("r"), because(Cause::BudgetTooLow, refusal("r")), failure("r")] {
        let (mut scene, _, pat, _) = accepted();
        assert_eq!(scene.sign_and_run("pat", "e", signed_order), Ok(State::Failed));
        assert_eq!(scene.agent_state(pat).standing.failures, 1);
        assert!(untouched(&scene));
    }
}

#[test]
fn one_of_several_says_no_and_the_last_no_is_the_end() {
    let mut scene = TestHub::default();
    let ann = scene.introduce("ann", &[]);
    let all = ["pat", "sue", "tim"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let [pat, sue, tim] = all;
    let job = scene.request_all("ann", "r", Some("3"));
    scene.sign_and_run("sue", "o", offer("r", "1")).unwrap();
    assert_eq!(scene.sign_and_run("pat", "e1", refusal("r")), Ok(State::Negotiating));
    assert_eq!(scene.sign_and_run("sue", "e2", failure("r")), Ok(State::Negotiating));
    let now = scene.job(job);
    assert_eq!(
        (&now.candidates.invited[..], &now.candidates.declined[..]),
        (&[tim][..], &[pat, sue][..])
    );
    assert_eq!(
        scene.messages_to(ann),
        [envelope_text("sue", "o")],
        "the job goes on, without a notice"
    );
    assert_eq!(scene.sign_and_run("tim", "e3", failure("r")), Ok(State::Failed));
    assert_eq!(scene.messages_to(ann)[1..], [envelope_text("tim", "e3")]);
    let outcomes = all.map(|one| scene.agent_state(one).standing.outcomes);
    assert_eq!(outcomes, [0, 0, 0], "nothing had been agreed");
}

#[test]
fn the_requester_withdraws_and_all_invited_agents_get_its_reason() {
    let (mut scene, ann, pat, job) = direct();
    assert_eq!(scene.sign_and_run("ann", "e", failure("r")), Ok(State::Cancelled));
    assert!(untouched(&scene));
    assert_eq!(scene.messages_to(pat), [envelope_text("ann", "r"), envelope_text("ann", "e")]);
    assert_eq!(scene.notices_to(ann), []);
    assert_eq!(scene.agent_state(pat).standing.outcomes, 0);
    let over = Refusal::WrongState { state: State::Cancelled };
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Err(over.clone()));
    assert_eq!(scene.sign_and_run("ann", "e2", failure("r")), Err(over));

    let all = ["sue", "tim"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let fan = scene.request_all("ann", "fan", Some("3"));
    scene.sign_and_run("sue", "o", offer("fan", "1")).unwrap();
    scene.sign_and_run("pat", "e", refusal("fan")).unwrap();
    assert_eq!(
        scene.sign_and_run("ann", "e3", with_counterparty(all[0], failure("fan"))),
        Ok(State::Cancelled)
    );
    for one in all {
        assert_eq!(
            scene.messages_to(one),
            [envelope_text("ann", "fan"), envelope_text("ann", "e3")]
        );
    }
    assert_eq!(
        scene.messages_to(pat)[2..],
        [envelope_text("ann", "fan")],
        "a declining agent gets no notice"
    );
    assert_eq!(scene.job(fan).state, State::Cancelled);
    assert_ne!(job, fan);
}

#[test]
fn what_was_accepted_cannot_be_withdrawn() {
    let (mut scene, ..) = accepted();
    let assigned = Refusal::WrongState { state: State::Assigned };
    assert_eq!(scene.sign_and_run("ann", "e", failure("r")), Err(assigned));
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
}

#[test]
fn a_directly_asked_agent_that_does_not_answer_is_penalized_and_both_are_notified() {
    let (mut scene, ann, pat, job) = direct();
    scene.read_inbox(pat);
    scene.advance(Millis(JOB_LIFETIME.0 - 1));
    assert_eq!(scene.state(job), State::Open);
    scene.advance(Millis(1));
    assert_eq!(scene.state(job), State::Expired);
    assert!(untouched(&scene));
    assert_eq!(scene.agent_state(pat).standing.failures, 1);
    assert_eq!(scene.notices_to(ann), [NoticeKind::Ended { job }]);
    assert_eq!(scene.notices_to(pat)[1..], [NoticeKind::Unassigned { job, epoch: 1 }]);
    assert_eq!(scene.job(job).result.as_ref().unwrap().cause, Some(Cause::TimedOut));
}

#[test]
fn an_invitation_that_was_never_read_or_came_too_late_has_no_penalty() {
    let (mut scene, _, pat, job) = direct();
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.agent_state(pat).standing.outcomes, 0);
    for (timeout, failures) in [(1_000, 0), (29_999, 0), (30_000, 1)] {
        let mut scene = TestHub::default();
        scene.grant("ann", AWAY_CREDITS);
        scene.introduce("ann", &[]);
        let pat = scene.introduce("pat", &[("sum", "5")]);
        let question = scene.job_request("sum", RequestTarget::Agent(pat), None);
        let asked = JobRequest { timeout: Millis(timeout), ..question };
        let signed_order = Command::RequestJob(Box::new(asked));
        scene.sign_and_run("ann", "r", signed_order).unwrap();
        scene.read_inbox(pat);
        scene.advance(Millis(timeout));
        assert_eq!(scene.agent_state(pat).standing.failures, failures, "{timeout}");
    }
}

#[test]
fn an_offer_not_accepted_and_a_fan_out_not_answered_penalize_no_agent() {
    let (mut scene, ann, pat, job) = direct();
    scene.sign_and_run("pat", "o", offer("r", "4")).unwrap();
    let sue = scene.introduce("sue", &[("sum", "1")]);
    let fan = scene.request_all("ann", "fan", Some("5"));
    scene.advance(JOB_LIFETIME);
    assert_eq!([scene.state(job), scene.state(fan)], [State::Expired; 2]);
    assert_eq!([pat, sue].map(|one| scene.agent_state(one).standing.outcomes), [0, 0]);
    for (one, times) in [(pat, 2), (sue, 1)] {
        let told = scene.notices_to(one);
        let taken = told.iter().filter(|news| matches!(news, NoticeKind::Unassigned { .. }));
        assert_eq!(taken.count(), times);
    }
    let ended = scene
        .notices_to(ann)
        .iter()
        .filter(|news| matches!(news, NoticeKind::Ended { .. }))
        .count();
    assert_eq!((ended, untouched(&scene)), (2, true));
}

#[test]
fn the_last_of_several_that_does_not_answer_has_no_penalty() {
    let (mut scene, ..) = direct();
    let sue = scene.introduce("sue", &[("sum", "1")]);
    scene.request_all("ann", "fan", Some("5"));
    scene.sign_and_run("pat", "e", refusal("fan")).unwrap();
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.agent_state(sue).standing.outcomes, 0);
}

#[test]
fn silence_after_the_price_was_taken_counts() {
    let (mut scene, ann, pat, job) = accepted();
    scene.read_inbox(pat);
    scene.advance(JOB_LIFETIME);
    assert_eq!((scene.state(job), scene.agent_state(pat).standing.failures), (State::Expired, 1));
    assert_eq!(scene.notices_to(ann).last(), Some(&NoticeKind::Ended { job }));
    assert_eq!(scene.notices_to(pat).last(), Some(&NoticeKind::Unassigned { job, epoch: 1 }));
}

#[test]
fn an_agent_with_an_endpoint_gets_the_timeout_there() {
    let mut scene = TestHub::default();
    let endpoint = |name: &str| Some(format!("https://{name}.example"));
    let [ann, pat] = ["ann", "pat"].map(|name| {
        scene.update_profile(
            name,
            ProfileUpdate { endpoint: endpoint(name), ..ProfileUpdate::default() },
        )
    });
    let job = scene.request("ann", "r", pat, None);
    scene.advance(JOB_LIFETIME);
    let mut pushed: Vec<_> = scene.world.deliveries().collect();
    pushed.sort_by_key(|push| push.notice);
    let pushed: Vec<_> = pushed.iter().map(|push| (push.to, push.url.as_str())).collect();
    let (to_ann, to_pat) = ("https://ann.example", "https://pat.example");
    let all = [(Some(pat), to_pat), (Some(pat), to_pat), (Some(ann), to_ann)];
    assert_eq!((&pushed[..], scene.state(job)), (&all[..], State::Expired));
}

#[test]
fn after_the_deadline_nothing_is_taken_even_before_the_clock_was_looked_at() {
    let expired = Refusal::WrongState { state: State::Expired };
    let (mut scene, ..) = direct();
    scene.advance_without_timers(JOB_LIFETIME);
    for fired in [false, true] {
        for (id, signed_order) in [
            ("1", offer("r", "1")),
            ("2", result("r")),
            ("3", partial_result("r")),
            ("4", failure("r")),
            ("5", refusal("r")),
        ] {
            assert_eq!(
                scene.sign_and_run("pat", id, signed_order),
                Err(expired.clone()),
                "{id} {fired}"
            );
        }
        assert_eq!(scene.sign_and_run("ann", "e", failure("r")), Err(expired.clone()));
        scene.advance(Millis(0));
    }
    let (mut scene, ..) = direct();
    scene.sign_and_run("pat", "o", offer("r", "4")).unwrap();
    let mut taken = scene.clone();
    scene.advance_without_timers(JOB_LIFETIME);
    taken.sign_and_run("ann", "a", accept("o")).unwrap();
    taken.advance_without_timers(JOB_LIFETIME);
    for fired in [false, true] {
        assert_eq!(scene.sign_and_run("ann", "a", accept("o")), Err(expired.clone()), "{fired}");
        assert_eq!(taken.sign_and_run("pat", "x", result("r")), Err(expired.clone()), "{fired}");
        assert_eq!(taken.sign_and_run("ann", "e", failure("r")), Err(expired.clone()), "{fired}");
        scene.advance(Millis(0));
        taken.advance(Millis(0));
    }
}

#[test]
fn between_agents_of_one_owner_nothing_counts() {
    for good in [true, false] {
        let mut scene = TestHub::default();
        scene.grant("ann", AWAY_CREDITS);
        scene.introduce("ann", &[]);
        let cousin = crate::command::Registration {
            home: AWAY,
            ..registration("kin", "ann", &[("sum", "5")])
        };
        let kin = scene.register(cousin).unwrap();
        scene.request("ann", "r1", kin, Some("8"));
        scene.sign_and_run("kin", "x1", if good { result("r1") } else { failure("r1") }).unwrap();
        scene.request("ann", "r2", kin, Some("8"));
        scene.read_inbox(kin);
        scene.advance(JOB_LIFETIME);
        let standing = scene.agent_state(kin).standing;
        assert_eq!((standing.settled_jobs(), standing.outcomes), (0, 2));
        assert!(untouched(&scene));
    }
}

#[test]
fn who_leaves_calls_off_what_it_asked_and_fails_what_it_took() {
    let (mut scene, ann, pat, job) = direct();
    scene.remove(ann);
    assert_eq!(scene.state(job), State::Cancelled);
    assert!(untouched(&scene));
    assert_eq!(scene.notices_to(pat)[1..], [NoticeKind::Unassigned { job, epoch: 0 }]);
    let (mut scene, ann, pat, job) = accepted();
    scene.remove(pat);
    assert_eq!((scene.state(job), untouched(&scene)), (State::Failed, true));
    assert_eq!(scene.notices_to(ann).last(), Some(&NoticeKind::Ended { job }));
}

#[test]
fn an_operator_may_call_off_or_take_away() {
    let (mut scene, _, pat, job) = direct();
    scene
        .run(Command::Cancel { job: JobRef::Id(job), by: Canceller::Operator, reason: None })
        .unwrap();
    assert_eq!((scene.state(job), scene.notices_to(pat).len()), (State::Cancelled, 2));
    let (mut scene, _, pat, job) = accepted();
    scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
    assert_eq!(
        (scene.state(job), untouched(&scene)),
        (State::Failed, true),
        "there is no next agent"
    );
    assert_eq!(scene.agent_state(pat).standing.outcomes, 0);
}
