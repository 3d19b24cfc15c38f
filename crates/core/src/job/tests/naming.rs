//! Which job or offer is meant: independent parties may choose the same id.

use super::AWAY_CREDITS;
use crate::id::{AgentId, JobId};
use crate::job::State;
use crate::refusal::Refusal;
use crate::testkit::TestHub;
use crate::testkit::signed_orders::{
    accept, failure, offer, partial_result, refusal, result, with_counterparty,
};

/// Two requesters that both invite `pat` under the id `r`.
fn twins() -> (TestHub, [AgentId; 3], [JobId; 2]) {
    let mut scene = TestHub::default();
    for owner in ["ann", "bea"] {
        scene.grant(owner, AWAY_CREDITS);
    }
    let [ann, bea] = ["ann", "bea"].map(|name| scene.introduce(name, &[("dig", "1")]));
    let pat = scene.introduce("pat", &[("sum", "1")]);
    let jobs = ["ann", "bea"].map(|name| scene.request(name, "r", pat, Some("5")));
    (scene, [ann, bea, pat], jobs)
}

#[test]
fn two_requesters_with_one_id_are_told_apart_by_who_they_are() {
    let (mut scene, [ann, bea, _], [first, second]) = twins();
    for (id, order) in [
        ("1", offer("r", "1")),
        ("2", result("r")),
        ("3", partial_result("r")),
        ("4", failure("r")),
        ("5", refusal("r")),
    ] {
        assert_eq!(scene.sign_and_run("pat", id, order), Err(Refusal::Ambiguous), "{id}");
    }
    assert_eq!(
        scene.sign_and_run("pat", "x1", with_counterparty(bea, result("r"))),
        Ok(State::Completed)
    );
    assert_eq!([scene.state(first), scene.state(second)], [State::Open, State::Completed]);
    // One of them has ended, and the id alone is still ambiguous.
    assert_eq!(scene.sign_and_run("pat", "x2", result("r")), Err(Refusal::Ambiguous));
    assert_eq!(
        scene.sign_and_run("pat", "o1", with_counterparty(ann, offer("r", "2"))),
        Ok(State::Negotiating)
    );
    // An offer can only be for the one that has not ended.
    assert_eq!(scene.sign_and_run("pat", "o2", offer("r", "3")), Ok(State::Negotiating));
    assert_eq!(scene.job(first).candidates.offers.len(), 2);
    // For the requesters themselves the id is unambiguous.
    assert_eq!(scene.sign_and_run("ann", "e1", failure("r")), Ok(State::Cancelled));
}

#[test]
fn two_offers_with_one_id_are_told_apart_by_who_made_them() {
    let mut scene = TestHub::default();
    scene.grant("ann", AWAY_CREDITS);
    scene.introduce("ann", &[]);
    let [pat, sue] = ["pat", "sue"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let job = scene.request_all("ann", "r", None);
    scene.sign_and_run("pat", "o", offer("r", "3")).unwrap();
    scene.sign_and_run("sue", "o", offer("r", "2")).unwrap();
    assert_eq!(scene.sign_and_run("ann", "a1", accept("o")), Err(Refusal::Ambiguous));
    assert_eq!(
        scene.sign_and_run("ann", "a2", with_counterparty(AgentId(99), accept("o"))),
        Err(Refusal::WrongParty)
    );
    assert_eq!(
        scene.sign_and_run("ann", "a3", with_counterparty(sue, accept("o"))),
        Ok(State::Assigned)
    );
    assert_eq!(scene.job(job).worker(), Some(sue));
    assert_eq!(scene.balance_text("ann").1, "2.00");
    assert_ne!(pat, sue);
}

#[test]
fn an_address_that_is_right_is_taken_and_one_that_is_wrong_refused() {
    let (mut scene, [ann, bea, pat], _) = twins();
    let job = scene.request("ann", "own", pat, Some("5"));
    for (id, order) in [
        ("1", with_counterparty(bea, offer("own", "1"))),
        ("2", with_counterparty(bea, result("own"))),
        ("3", with_counterparty(bea, failure("own"))),
        ("4", with_counterparty(AgentId(99), refusal("own"))),
    ] {
        assert_eq!(scene.sign_and_run("pat", id, order), Err(Refusal::WrongParty), "{id}");
    }
    assert_eq!(
        scene.sign_and_run("ann", "e1", with_counterparty(bea, failure("own"))),
        Err(Refusal::WrongParty)
    );
    assert_eq!(scene.state(job), State::Open);
    assert_eq!(
        scene.sign_and_run("pat", "o1", with_counterparty(ann, offer("own", "1"))),
        Ok(State::Negotiating)
    );
    assert_eq!(
        scene.sign_and_run("ann", "a1", with_counterparty(bea, accept("o1"))),
        Err(Refusal::WrongParty)
    );
    assert_eq!(
        scene.sign_and_run("ann", "a2", with_counterparty(pat, accept("o1"))),
        Ok(State::Assigned)
    );
    assert_eq!(
        scene.sign_and_run("pat", "x1", with_counterparty(ann, result("own"))),
        Ok(State::Completed)
    );
}

#[test]
fn a_third_party_and_an_unknown_id_get_the_same_answer() {
    let (mut scene, [ann, ..], [first, _]) = twins();
    scene.introduce("zoe", &[("sum", "1")]);
    let uuid = scene.job(first).uuid.to_string();
    for (n, id) in ["r", "unknown", "ann/r", &uuid, ""].into_iter().enumerate() {
        for (m, order) in
            [offer(id, "1"), result(id), partial_result(id), failure(id), refusal(id), accept(id)]
                .into_iter()
                .enumerate()
        {
            let named = scene.sign_and_run(
                "zoe",
                &format!("{n}-{m}"),
                with_counterparty(ann, order.clone()),
            );
            assert_eq!(named, Err(Refusal::NotFound), "{order:?}");
            assert_eq!(
                scene.sign_and_run("zoe", &format!("{n}-{m}"), order),
                Err(Refusal::NotFound)
            );
        }
    }
    // A requester cannot work on its own request.
    assert_eq!(scene.sign_and_run("ann", "x1", result("r")), Err(Refusal::NotFound));
    assert_eq!(scene.sign_and_run("ann", "o1", offer("r", "1")), Err(Refusal::NotFound));
}

#[test]
fn two_who_asked_each_other_under_one_id_mean_what_is_not_over() {
    let mut scene = TestHub::default();
    let [pat, sue] = ["pat", "sue"].map(|name| scene.introduce(name, &[("sum", "1")]));
    let mine = scene.request("pat", "r", sue, None);
    let yours = scene.request("sue", "r", pat, None);
    assert_eq!(scene.sign_and_run("pat", "e1", failure("r")), Err(Refusal::Ambiguous));
    assert_eq!(
        scene.sign_and_run("pat", "e2", with_counterparty(sue, failure("r"))),
        Err(Refusal::Ambiguous)
    );
    // For a result, only one of the two jobs can be meant.
    assert_eq!(scene.sign_and_run("sue", "x1", result("r")), Ok(State::Completed));
    assert_eq!(scene.state(mine), State::Completed);
    assert_eq!(scene.sign_and_run("pat", "e1", failure("r")), Ok(State::Failed));
    assert_eq!(scene.state(yours), State::Failed);
}

#[test]
fn a_finished_job_is_still_known_by_its_name() {
    let (mut scene, [ann, ..], _) = twins();
    scene.sign_and_run("pat", "x1", with_counterparty(ann, result("r"))).unwrap();
    let done = Refusal::WrongState { state: State::Completed };
    assert_eq!(
        scene.sign_and_run("pat", "x2", with_counterparty(ann, result("r"))),
        Err(done.clone())
    );
    assert_eq!(scene.sign_and_run("ann", "e1", failure("r")), Err(done));
}

#[test]
fn a_name_used_again_does_not_take_a_workers_own_job_from_it() {
    let (mut scene, [ann, ..], [first, second]) = twins();
    scene.sign_and_run("pat", "o", with_counterparty(ann, offer("r", "1"))).unwrap();
    scene.sign_and_run("ann", "a", accept("o")).unwrap();
    // Of the two jobs with this id, one is assigned to it.
    assert_eq!(scene.sign_and_run("pat", "p", partial_result("r")), Ok(State::Running));
    assert_eq!(scene.sign_and_run("pat", "x", result("r")), Ok(State::Completed));
    assert_eq!([scene.state(first), scene.state(second)], [State::Completed, State::Open]);
}
