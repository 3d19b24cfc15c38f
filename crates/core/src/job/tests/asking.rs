//! Which agents a requester invites, and what is held before any of them has answered.

use super::AWAY_CREDITS;
use crate::agent::presence::Availability;
use crate::agent::{Liveness, Skill};
use crate::command::{Command, JobRequest, ProfileUpdate, Registration, RequestTarget};
use crate::id::AgentId;
use crate::job::{Selection, State};
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{
    accept, envelope_text, failure, offer, partial_result, refusal, result,
};
use crate::testkit::{AWAY, TestHub, credits, message, registration, skill};
use crate::time::Millis;
use crate::world::Rules;

/// A hub with one signer that can pay, and one that works.
fn pair(price: &str) -> (TestHub, AgentId, AgentId) {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    let ann = scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", price)]);
    (scene, ann, pat)
}

fn ask(scene: &mut TestHub, id: &str, order: JobRequest) -> Result<Vec<AgentId>, Refusal> {
    let order = scene.sign_order("ann", id, Command::RequestJob(Box::new(order)));
    let job = scene.run_signed(order)?.job.unwrap();
    Ok(scene.job(job).candidates.invited.clone())
}

fn fill(scene: &mut TestHub, full: AgentId) {
    let other = scene.register_worker("writer", "writer", &[]);
    scene.run(Command::SendMessage(Box::new(message(other, full, "hello")))).unwrap();
}

fn one_message_each() -> TestHub {
    let mut scene = TestHub::new(Rules { inbox_messages_max: 1, ..Rules::default() });
    scene.grant("ann", AWAY_CREDITS);
    scene.introduce("ann", &[]);
    scene
}

#[test]
fn a_request_waits_for_its_provider_who_reads_it_word_for_word() {
    let (mut scene, ann, pat) = pair("5");
    let id = scene.request("ann", "r1", pat, None);
    let job = scene.job(id);
    assert_eq!(
        (job.state, job.worker(), &job.candidates.invited[..]),
        (State::Open, None, &[pat][..])
    );
    assert_eq!(job.selection, Selection::Invited { any_price: true, offers_only: false });
    assert_eq!(scene.messages_to(pat), [envelope_text("ann", "r1")]);
    assert_eq!(scene.notices_to(ann), [], "a sender does not get its own text");
}

#[test]
fn the_listed_price_is_held_within_the_budget_and_paid_for_the_result() {
    let (mut scene, _, pat) = pair("5");
    let job = scene.request("ann", "r1", pat, Some("8"));
    assert_eq!(scene.job(job).payment.held, credits("5"));
    assert_eq!(scene.balance_text("ann"), ("5.00".to_owned(), "5.00".to_owned()));
    assert_eq!(scene.sign_and_run("pat", "x1", result("r1")), Ok(State::Completed));
    assert_eq!(scene.balance_text("ann"), ("5.00".to_owned(), "0.00".to_owned()));
    assert_eq!(scene.balance_text("pat"), ("5.00".to_owned(), "0.00".to_owned()));
    let report = scene.job(job).result.clone().unwrap();
    assert_eq!((report.paid, report.output.as_deref()), (credits("5"), Some("{}")));
    assert_eq!(scene.agent_state(pat).standing.successes, 1);
}

#[test]
fn without_a_budget_or_a_price_the_direct_flow_is_free() {
    let (mut scene, ann, pat) = pair("5");
    let free = scene.request("ann", "no-budget", pat, None);
    assert_eq!(scene.job(free).payment.held, credits("0"));
    scene.sign_and_run("pat", "x1", result("no-budget")).unwrap();
    let by_offer = Skill { by_offer: true, ..skill("sum", "5") };
    let skills = Some(vec![by_offer]);
    scene.update_profile("pat", ProfileUpdate { skills, ..ProfileUpdate::default() });
    let unlisted = scene.request("ann", "no-price", pat, Some("3"));
    assert_eq!(scene.job(unlisted).payment.held, credits("0"));
    scene.sign_and_run("pat", "x2", result("no-price")).unwrap();
    assert_eq!(scene.balance_text("ann").0, "10.00");
    assert_eq!(scene.messages_to(ann), [envelope_text("pat", "x1"), envelope_text("pat", "x2")]);
}

#[test]
fn an_offer_instead_of_the_work_releases_the_listed_price() {
    let (mut scene, _, pat) = pair("5");
    scene.request("ann", "r1", pat, Some("8"));
    assert_eq!(scene.sign_and_run("pat", "o1", offer("r1", "7")), Ok(State::Negotiating));
    assert_eq!(scene.balance_text("ann"), ("10.00".to_owned(), "0.00".to_owned()));
    // An agent that made an offer works for that price or not at all.
    let wrong = Refusal::WrongState { state: State::Negotiating };
    assert_eq!(scene.sign_and_run("pat", "x1", result("r1")), Err(wrong));
}

#[test]
fn what_cannot_be_paid_is_not_asked_and_leaves_nothing_behind() {
    let (mut scene, _, pat) = pair("5");
    let before = scene.world.next;
    let price = credits("5");
    let low = scene.try_request("ann", "r1", pat, Some("4.999999"));
    assert_eq!(low, Err(Refusal::BudgetTooLow { price }));
    scene.introduce("poor", &[]);
    let poor = scene.try_request("poor", "r1", pat, Some("8"));
    assert_eq!(poor, Err(Refusal::TooFewCredits));
    let order = scene.job_request("sum", RequestTarget::Agent(pat), Some("8"));
    let dollars = ask(&mut scene, "r1", JobRequest { other_currency: true, ..order });
    assert_eq!(dollars, Err(Refusal::UnsupportedCurrency));
    let order = scene.job_request("sum", RequestTarget::Agent(pat), Some("8"));
    let late = JobRequest { timeout: Millis(0), ..order };
    assert_eq!(ask(&mut scene, "r1", late), Err(Refusal::DeadlineTooSoon));
    assert_eq!(scene.world.next.job, before.job);
    assert_eq!((scene.notices_to(pat), scene.balance_text("ann").0), (vec![], "10.00".to_owned()));
    scene.request("ann", "r1", pat, Some("5"));
}

#[test]
fn who_cannot_be_asked() {
    let (mut scene, ann, pat) = pair("5");
    let nobody = scene.try_request("ann", "r1", AgentId(99), None);
    assert_eq!(nobody, Err(Refusal::NoSuchAgent));
    let itself = scene.try_request("ann", "r1", ann, None);
    assert!(matches!(itself, Err(Refusal::BridgeLoop { .. })));
    let order = scene.job_request("dig", RequestTarget::Agent(pat), None);
    assert_eq!(ask(&mut scene, "r1", order), Err(Refusal::SkillNotOffered));
    let order = scene.job_request("dig", RequestTarget::Best { max: 8 }, Some("1"));
    assert_eq!(ask(&mut scene, "r1", order), Err(Refusal::NoSuchSkill));
    scene.run(Command::SetBlocked { agent: pat, other: ann, blocked: true }).unwrap();
    assert_eq!(scene.try_request("ann", "r1", pat, None), Err(Refusal::Blocked));
    scene.remove(pat);
    assert_eq!(scene.try_request("ann", "r1", pat, None), Err(Refusal::NoSuchAgent));
    // An agent that lists no skills may be asked for anything.
    let blank = scene.introduce("blank", &[]);
    assert!(scene.try_request("ann", "r1", blank, None).is_ok());
}

#[test]
fn the_best_are_those_online_then_by_score_then_who_came_first() {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    let all = ["p1", "p2", "p3", "p4"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let ann = scene.introduce("ann", &[("sum", "0")]);
    let [p1, p2, p3, p4] = all;
    // The third has earned a score; the first has reported that it is away.
    scene.request("ann", "r0", p3, None);
    scene.sign_and_run("p3", "x0", result("r0")).unwrap();
    for availability in [Availability::Offline, Availability::Error, Availability::Maintenance] {
        scene.update_profile(
            "p1",
            ProfileUpdate { availability: Some(availability), ..ProfileUpdate::default() },
        );
        assert!(!scene.is_online(p1), "{availability:?}");
        let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, Some("5"));
        let asked = ask(&mut scene, &format!("r-{availability:?}"), order).unwrap();
        assert_eq!(asked, [p3, p2, p4, p1], "and never {ann}, the requester");
        assert_eq!(
            scene.messages_to(p1).len(),
            scene.messages_to(p2).len(),
            "an agent that is away reads it later"
        );
    }
    let busy = ProfileUpdate { availability: Some(Availability::Busy), ..ProfileUpdate::default() };
    scene.update_profile("p1", busy);
    let order = scene.job_request("sum", RequestTarget::Best { max: 2 }, Some("5"));
    assert_eq!(ask(&mut scene, "r2", order).unwrap(), [p3, p1]);
    // An agent that blocks the requester is not among them.
    scene.run(Command::SetBlocked { agent: p3, other: ann, blocked: true }).unwrap();
    let order = scene.job_request("sum", RequestTarget::Best { max: 1 }, None);
    assert_eq!(ask(&mut scene, "r3", order).unwrap(), [p1]);
}

#[test]
fn who_has_fallen_silent_is_asked_after_those_who_are_there() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let visits = Registration {
        home: AWAY,
        liveness: Liveness::ByPolling,
        ..registration("p1", "p1", &[("sum", "1")])
    };
    let p1 = scene.register(visits).unwrap();
    let p2 = scene.introduce("p2", &[("sum", "1")]);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, None);
    assert_eq!(ask(&mut scene, "r1", order).unwrap(), [p1, p2]);
    scene.advance(Millis::minutes(5));
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, None);
    assert_eq!(ask(&mut scene, "r2", order).unwrap(), [p2, p1]);
    scene.remove(p1);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, None);
    assert_eq!(ask(&mut scene, "r3", order).unwrap(), [p2]);
}

#[test]
fn the_price_says_nothing_about_who_is_best_and_two_prices_are_one_provider() {
    let mut scene = TestHub::default();
    scene.introduce("ann", &[]);
    let dear = scene.introduce("dear", &[("sum", "9")]);
    let cheap = scene.introduce("cheap", &[("sum", "1"), ("sum", "2")]);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, Some("5"));
    assert_eq!(ask(&mut scene, "r1", order).unwrap(), [dear, cheap]);
}

#[test]
fn only_one_provider_found_is_one_asked_alone() {
    let (mut scene, _, pat) = pair("5");
    let job = scene.request_all("ann", "r1", Some("5"));
    assert_eq!(
        (&scene.job(job).candidates.invited[..], scene.job(job).payment.held),
        (&[pat][..], credits("5"))
    );
    assert_eq!(scene.sign_and_run("pat", "x1", result("r1")), Ok(State::Completed));
}

#[test]
fn a_fan_out_holds_nothing_and_is_not_done_without_being_taken() {
    let (mut scene, _, pat) = pair("5");
    let sue = scene.introduce("sue", &[("sum", "6")]);
    let job = scene.request_all("ann", "r1", Some("2"));
    assert_eq!(&scene.job(job).candidates.invited, &[pat, sue]);
    assert_eq!(scene.balance_text("ann").1, "0.00");
    assert_eq!(
        (scene.messages_to(pat), scene.messages_to(sue)),
        (vec![envelope_text("ann", "r1")], scene.messages_to(pat))
    );
    let open = Refusal::WrongState { state: State::Open };
    assert_eq!(scene.sign_and_run("pat", "x1", result("r1")), Err(open.clone()));
    assert_eq!(scene.sign_and_run("pat", "x2", partial_result("r1")), Err(open.clone()));
    // Also if only one of several remains.
    assert_eq!(scene.sign_and_run("sue", "e1", refusal("r1")), Ok(State::Open));
    assert_eq!(scene.sign_and_run("pat", "x3", result("r1")), Err(open.clone()));
    assert_eq!(
        scene.sign_and_run("sue", "o1", offer("r1", "1")),
        Err(open),
        "a declining agent is out"
    );
    assert_eq!(scene.sign_and_run("pat", "o2", offer("r1", "1")), Ok(State::Negotiating));
}

#[test]
fn a_full_inbox_takes_no_request_and_a_fan_out_passes_it_by() {
    let mut scene = one_message_each();
    let pat = scene.introduce("pat", &[("sum", "0")]);
    fill(&mut scene, pat);
    assert_eq!(scene.try_request("ann", "r1", pat, None), Err(Refusal::InboxFull));
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, Some("5"));
    assert_eq!(ask(&mut scene, "r1", order), Err(Refusal::NoSuchSkill));
    let sue = scene.introduce("sue", &[("sum", "0")]);
    let order = scene.job_request("sum", RequestTarget::Best { max: 8 }, Some("5"));
    assert_eq!(ask(&mut scene, "r1", order).unwrap(), [sue]);
}

#[test]
fn a_full_inbox_takes_no_offer_and_no_part_but_every_end() {
    let mut scene = one_message_each();
    let [ann, pat, sue] = ["ann", "pat", "sue"].map(|name| scene.introduce(name, &[("sum", "0")]));
    scene.request("ann", "r1", pat, None);
    scene.request("ann", "r2", sue, None);
    fill(&mut scene, ann);
    assert_eq!(scene.sign_and_run("pat", "o1", offer("r1", "1")), Err(Refusal::InboxFull));
    assert_eq!(scene.sign_and_run("pat", "x1", partial_result("r1")), Err(Refusal::InboxFull));
    assert_eq!(scene.sign_and_run("pat", "x2", result("r1")), Ok(State::Completed));
    assert_eq!(scene.sign_and_run("sue", "e1", failure("r2")), Ok(State::Failed));
    assert_eq!(
        scene.messages_to(ann)[1..],
        [envelope_text("pat", "x2"), envelope_text("sue", "e1")]
    );
}

#[test]
fn a_full_inbox_takes_that_its_price_was_accepted() {
    let mut scene = one_message_each();
    let pat = scene.introduce("pat", &[("sum", "0")]);
    scene.request("ann", "r1", pat, None);
    scene.sign_and_run("pat", "o1", offer("r1", "1")).unwrap();
    assert_eq!(scene.world.inbox(pat).messages_waiting, 1, "the request is still there");
    let taken = scene.sign_and_run("ann", "a1", accept("o1"));
    assert_eq!(taken, Ok(State::Assigned));
    assert_eq!(scene.messages_to(pat), [envelope_text("ann", "r1"), envelope_text("ann", "a1")]);
}
