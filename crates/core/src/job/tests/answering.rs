//! Responses to a request: results and parts, refusals and failures, timeouts and withdrawal.

use super::AWAY_PURSE;
use crate::command::{Canceller, Command, JobRef};
use crate::id::{AgentId, JobId};
use crate::job::{Cause, State};
use crate::notice::News;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::signed_order::{Deed, GiveUp, Profile};
use crate::testkit::signed_orders::{accept, failure, offer, part, refusal, result, with, words};
use crate::testkit::{AWAY, LIFE, Scene, credits, enrolment};
use crate::time::Millis;

/// A requester with credits and a sole invitee, with its listed price held.
fn direct() -> (Scene, AgentId, AgentId, JobId) {
    let mut scene = Scene::default();
    scene.grant("ann", AWAY_PURSE);
    let ann = scene.hello("ann", &[]);
    let pat = scene.hello("pat", &[("sum", "5")]);
    let job = scene.request("ann", "r", pat, Some("8"));
    (scene, ann, pat, job)
}

/// The same after an offer was accepted.
fn accepted() -> (Scene, AgentId, AgentId, JobId) {
    let (mut scene, ann, pat, job) = direct();
    scene.sign("pat", "o", offer("r", "4")).unwrap();
    scene.sign("ann", "a", accept("o")).unwrap();
    (scene, ann, pat, job)
}

fn untouched(scene: &Scene) -> bool {
    scene.purse("ann") == ("10.00".to_owned(), "0.00".to_owned())
}

fn because(cause: Cause, deed: Deed) -> Deed {
    let Deed::Fail(order) = deed else { panic!("{deed:?}") };
    Deed::Fail(GiveUp { cause, ..order })
}

#[test]
fn parts_are_passed_on_and_the_last_one_completes() {
    let (mut scene, ann, pat, job) = accepted();
    for id in ["x1", "x2"] {
        assert_eq!(scene.sign("pat", id, part("r")), Ok(State::Running));
        assert_eq!(scene.purse("ann").1, "4.00", "nothing is paid yet");
    }
    assert_eq!(scene.sign("pat", "x3", result("r")), Ok(State::Completed));
    assert_eq!(scene.heard(ann), ["o", "x1", "x2", "x3"].map(|id| words("pat", id)));
    assert_eq!(scene.purse("pat").0, "4.00");
    let done = Refusal::WrongState { is: State::Completed };
    assert_eq!(scene.sign("pat", "x4", part("r")), Err(done));
    assert_eq!(scene.job(job).worker(), Some(pat));
}

#[test]
fn a_part_begins_the_direct_flow_and_keeps_the_listed_price() {
    let (mut scene, _, pat, job) = direct();
    assert_eq!(scene.sign("pat", "x1", part("r")), Ok(State::Running));
    let running = Refusal::WrongState { is: State::Running };
    assert_eq!(scene.sign("pat", "o", offer("r", "6")), Err(running.clone()));
    assert_eq!(scene.sign("ann", "e", failure("r")), Err(running), "too late to withdraw");
    assert_eq!(scene.job(job).assignment.map(|turn| turn.price), Some(credits("5")));
    assert_eq!(scene.sign("pat", "x2", result("r")), Ok(State::Completed));
    assert_eq!((scene.purse("pat").0, scene.score(pat) > Score::START), ("5.00".to_owned(), true));
}

#[test]
fn in_the_direct_flow_a_failure_counts_and_a_refusal_does_not() {
    let (mut scene, ann, pat, job) = direct();
    let mut refused = scene.clone();
    assert_eq!(scene.sign("pat", "e", failure("r")), Ok(State::Failed));
    assert!(untouched(&scene));
    assert_eq!((scene.desk(pat).standing.failures, scene.heard(ann)), (1, vec![words("pat", "e")]));
    let report = scene.job(job).report.clone().unwrap();
    assert_eq!((report.cause, report.text.as_deref()), (Some(Cause::Execution), Some("it broke")));
    assert_eq!(refused.sign("pat", "e", refusal("r")), Ok(State::Failed));
    assert!(untouched(&refused));
    assert_eq!(refused.desk(pat).standing.outcomes, 0);
    assert_eq!(refused.heard(ann), [words("pat", "e")]);
    let failed = Refusal::WrongState { is: State::Failed };
    assert_eq!(refused.sign("pat", "x", result("r")), Err(failed.clone()));
    assert_eq!(refused.sign("pat", "o", offer("r", "1")), Err(failed));
}

#[test]
fn before_a_price_is_taken_nobody_is_to_blame_and_afterwards_there_is_no_excuse() {
    let (mut scene, _, pat, _) = direct();
    scene.sign("pat", "o", offer("r", "4")).unwrap();
    assert_eq!(scene.sign("pat", "e", failure("r")), Ok(State::Failed));
    assert_eq!(scene.desk(pat).standing.outcomes, 0);
    for deed in [refusal("r"), because(Cause::BudgetTooLow, refusal("r")), failure("r")] {
        let (mut scene, _, pat, _) = accepted();
        assert_eq!(scene.sign("pat", "e", deed), Ok(State::Failed));
        assert_eq!(scene.desk(pat).standing.failures, 1);
        assert!(untouched(&scene));
    }
}

#[test]
fn one_of_several_says_no_and_the_last_no_is_the_end() {
    let mut scene = Scene::default();
    let ann = scene.hello("ann", &[]);
    let all = ["pat", "sue", "tim"].map(|name| scene.hello(name, &[("sum", "1")]));
    let [pat, sue, tim] = all;
    let job = scene.request_all("ann", "r", Some("3"));
    scene.sign("sue", "o", offer("r", "1")).unwrap();
    assert_eq!(scene.sign("pat", "e1", refusal("r")), Ok(State::Negotiating));
    assert_eq!(scene.sign("sue", "e2", failure("r")), Ok(State::Negotiating));
    let now = scene.job(job);
    assert_eq!((&now.asked[..], &now.declined[..]), (&[tim][..], &[pat, sue][..]));
    assert_eq!(scene.heard(ann), [words("sue", "o")], "the job goes on, without a notice");
    assert_eq!(scene.sign("tim", "e3", failure("r")), Ok(State::Failed));
    assert_eq!(scene.heard(ann)[1..], [words("tim", "e3")]);
    let outcomes = all.map(|one| scene.desk(one).standing.outcomes);
    assert_eq!(outcomes, [0, 0, 0], "nothing had been agreed");
}

#[test]
fn the_requester_withdraws_and_everybody_asked_is_told_in_its_words() {
    let (mut scene, ann, pat, job) = direct();
    assert_eq!(scene.sign("ann", "e", failure("r")), Ok(State::Cancelled));
    assert!(untouched(&scene));
    assert_eq!(scene.heard(pat), [words("ann", "r"), words("ann", "e")]);
    assert_eq!(scene.told(ann), []);
    assert_eq!(scene.desk(pat).standing.outcomes, 0);
    let over = Refusal::WrongState { is: State::Cancelled };
    assert_eq!(scene.sign("pat", "x", result("r")), Err(over.clone()));
    assert_eq!(scene.sign("ann", "e2", failure("r")), Err(over));

    let all = ["sue", "tim"].map(|name| scene.hello(name, &[("sum", "1")]));
    let fan = scene.request_all("ann", "fan", Some("3"));
    scene.sign("sue", "o", offer("fan", "1")).unwrap();
    scene.sign("pat", "e", refusal("fan")).unwrap();
    assert_eq!(scene.sign("ann", "e3", with(all[0], failure("fan"))), Ok(State::Cancelled));
    for one in all {
        assert_eq!(scene.heard(one), [words("ann", "fan"), words("ann", "e3")]);
    }
    assert_eq!(scene.heard(pat)[2..], [words("ann", "fan")], "a declining agent gets no notice");
    assert_eq!(scene.job(fan).state, State::Cancelled);
    assert_ne!(job, fan);
}

#[test]
fn what_was_accepted_cannot_be_withdrawn() {
    let (mut scene, ..) = accepted();
    let assigned = Refusal::WrongState { is: State::Assigned };
    assert_eq!(scene.sign("ann", "e", failure("r")), Err(assigned));
    assert_eq!(scene.sign("pat", "x", result("r")), Ok(State::Completed));
}

#[test]
fn whoever_was_asked_alone_and_stays_silent_is_to_blame_and_both_are_told() {
    let (mut scene, ann, pat, job) = direct();
    scene.read(pat);
    scene.wait(Millis(LIFE.0 - 1));
    assert_eq!(scene.state(job), State::Open);
    scene.wait(Millis(1));
    assert_eq!(scene.state(job), State::Expired);
    assert!(untouched(&scene));
    assert_eq!(scene.desk(pat).standing.failures, 1);
    assert_eq!(scene.told(ann), [News::Ended { job }]);
    assert_eq!(scene.told(pat)[1..], [News::TakenBack { job, epoch: 1 }]);
    assert_eq!(scene.job(job).report.as_ref().unwrap().cause, Some(Cause::TimedOut));
}

#[test]
fn nobody_is_blamed_for_a_question_it_never_read_or_had_no_time_for() {
    let (mut scene, _, pat, job) = direct();
    scene.wait(LIFE);
    assert_eq!(scene.state(job), State::Expired);
    assert_eq!(scene.desk(pat).standing.outcomes, 0);
    for (timeout, failures) in [(1_000, 0), (29_999, 0), (30_000, 1)] {
        let mut scene = Scene::default();
        scene.grant("ann", AWAY_PURSE);
        scene.hello("ann", &[]);
        let pat = scene.hello("pat", &[("sum", "5")]);
        let question = scene.question("sum", crate::signed_order::Whom::Agent(pat), None);
        let asked = crate::signed_order::Ask { timeout: Millis(timeout), ..question };
        let deed = Deed::Ask(Box::new(asked));
        scene.sign("ann", "r", deed).unwrap();
        scene.read(pat);
        scene.wait(Millis(timeout));
        assert_eq!(scene.desk(pat).standing.failures, failures, "{timeout}");
    }
}

#[test]
fn an_offer_nobody_took_and_a_fan_out_nobody_answered_blame_nobody() {
    let (mut scene, ann, pat, job) = direct();
    scene.sign("pat", "o", offer("r", "4")).unwrap();
    let sue = scene.hello("sue", &[("sum", "1")]);
    let fan = scene.request_all("ann", "fan", Some("5"));
    scene.wait(LIFE);
    assert_eq!([scene.state(job), scene.state(fan)], [State::Expired; 2]);
    assert_eq!([pat, sue].map(|one| scene.desk(one).standing.outcomes), [0, 0]);
    for (one, times) in [(pat, 2), (sue, 1)] {
        let told = scene.told(one);
        let taken = told.iter().filter(|news| matches!(news, News::TakenBack { .. }));
        assert_eq!(taken.count(), times);
    }
    let ended = scene.told(ann).iter().filter(|news| matches!(news, News::Ended { .. })).count();
    assert_eq!((ended, untouched(&scene)), (2, true));
}

#[test]
fn the_silence_of_the_last_of_several_blames_nobody() {
    let (mut scene, ..) = direct();
    let sue = scene.hello("sue", &[("sum", "1")]);
    scene.request_all("ann", "fan", Some("5"));
    scene.sign("pat", "e", refusal("fan")).unwrap();
    scene.wait(LIFE);
    assert_eq!(scene.desk(sue).standing.outcomes, 0);
}

#[test]
fn silence_after_the_price_was_taken_counts() {
    let (mut scene, ann, pat, job) = accepted();
    scene.read(pat);
    scene.wait(LIFE);
    assert_eq!((scene.state(job), scene.desk(pat).standing.failures), (State::Expired, 1));
    assert_eq!(scene.told(ann).last(), Some(&News::Ended { job }));
    assert_eq!(scene.told(pat).last(), Some(&News::TakenBack { job, epoch: 1 }));
}

#[test]
fn whoever_is_reached_at_an_endpoint_hears_of_the_timeout_there() {
    let mut scene = Scene::default();
    let endpoint = |name: &str| Some(format!("https://{name}.example"));
    let [ann, pat] = ["ann", "pat"]
        .map(|name| scene.amend(name, Profile { endpoint: endpoint(name), ..Profile::default() }));
    let job = scene.request("ann", "r", pat, None);
    scene.wait(LIFE);
    let mut pushed: Vec<_> = scene.world.pushes().collect();
    pushed.sort_by_key(|push| push.notice);
    let pushed: Vec<_> = pushed.iter().map(|push| (push.to, push.url.as_str())).collect();
    let (to_ann, to_pat) = ("https://ann.example", "https://pat.example");
    let all = [(Some(pat), to_pat), (Some(pat), to_pat), (Some(ann), to_ann)];
    assert_eq!((&pushed[..], scene.state(job)), (&all[..], State::Expired));
}

#[test]
fn after_the_deadline_nothing_is_taken_even_before_the_clock_was_looked_at() {
    let expired = Refusal::WrongState { is: State::Expired };
    let (mut scene, ..) = direct();
    scene.sleep(LIFE);
    for fired in [false, true] {
        for (id, deed) in [
            ("1", offer("r", "1")),
            ("2", result("r")),
            ("3", part("r")),
            ("4", failure("r")),
            ("5", refusal("r")),
        ] {
            assert_eq!(scene.sign("pat", id, deed), Err(expired.clone()), "{id} {fired}");
        }
        assert_eq!(scene.sign("ann", "e", failure("r")), Err(expired.clone()));
        scene.wait(Millis(0));
    }
    let (mut scene, ..) = direct();
    scene.sign("pat", "o", offer("r", "4")).unwrap();
    let mut taken = scene.clone();
    scene.sleep(LIFE);
    taken.sign("ann", "a", accept("o")).unwrap();
    taken.sleep(LIFE);
    for fired in [false, true] {
        assert_eq!(scene.sign("ann", "a", accept("o")), Err(expired.clone()), "{fired}");
        assert_eq!(taken.sign("pat", "x", result("r")), Err(expired.clone()), "{fired}");
        assert_eq!(taken.sign("ann", "e", failure("r")), Err(expired.clone()), "{fired}");
        scene.wait(Millis(0));
        taken.wait(Millis(0));
    }
}

#[test]
fn between_agents_of_one_owner_nothing_counts() {
    for good in [true, false] {
        let mut scene = Scene::default();
        scene.grant("ann", AWAY_PURSE);
        scene.hello("ann", &[]);
        let cousin =
            crate::command::Enrol { home: AWAY, ..enrolment("kin", "ann", &[("sum", "5")]) };
        let kin = scene.enrol(cousin).unwrap();
        scene.request("ann", "r1", kin, Some("8"));
        scene.sign("kin", "x1", if good { result("r1") } else { failure("r1") }).unwrap();
        scene.request("ann", "r2", kin, Some("8"));
        scene.read(kin);
        scene.wait(LIFE);
        let standing = scene.desk(kin).standing;
        assert_eq!((standing.settled(), standing.outcomes), (0, 2));
        assert!(untouched(&scene));
    }
}

#[test]
fn who_leaves_calls_off_what_it_asked_and_fails_what_it_took() {
    let (mut scene, ann, pat, job) = direct();
    scene.remove(ann);
    assert_eq!(scene.state(job), State::Cancelled);
    assert!(untouched(&scene));
    assert_eq!(scene.told(pat)[1..], [News::TakenBack { job, epoch: 0 }]);
    let (mut scene, ann, pat, job) = accepted();
    scene.remove(pat);
    assert_eq!((scene.state(job), untouched(&scene)), (State::Failed, true));
    assert_eq!(scene.told(ann).last(), Some(&News::Ended { job }));
}

#[test]
fn an_operator_may_call_off_or_take_away() {
    let (mut scene, _, pat, job) = direct();
    scene
        .run(Command::Cancel { job: JobRef::Id(job), by: Canceller::Operator, reason: None })
        .unwrap();
    assert_eq!((scene.state(job), scene.told(pat).len()), (State::Cancelled, 2));
    let (mut scene, _, pat, job) = accepted();
    scene.run(Command::Requeue { job: JobRef::Id(job) }).unwrap();
    assert_eq!(
        (scene.state(job), untouched(&scene)),
        (State::Failed, true),
        "there is no next agent"
    );
    assert_eq!(scene.desk(pat).standing.outcomes, 0);
}
