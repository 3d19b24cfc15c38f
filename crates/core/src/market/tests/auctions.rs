use super::*;
use crate::agent::Capacity;
use crate::agent::Terms;
use crate::job::State;

#[test]
fn who_may_offer_what_and_how_often() {
    let (mut scene, client) = market();
    let [a, b, _] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    let late = scene.register_worker("late", "late", &[("sum", "1")]);
    for (by, price, answer) in [
        (late, "10", "refused NotFound".to_owned()),
        (client, "10", "refused NotFound".to_owned()),
        (AgentId(99), "10", "refused NotFound".to_owned()),
        (a, "50.000001", "refused BudgetTooLow { price: Credits(50000001) }".to_owned()),
        (a, "50", "done".to_owned()),
        (a, "40", "refused TooManyOffers { max: 1 }".to_owned()),
        (a, "50", "refused TooManyOffers { max: 1 }".to_owned()),
    ] {
        assert_eq!(bid(&mut scene, job, by, price).outcome, answer);
    }
    assert_eq!(scene.job(job).candidates.offers.len(), 1);
    // The clock closes it, whether or not its timer has fired yet.
    scene.advance_without_timers(WINDOW);
    assert_eq!(bid(&mut scene, job, b, "1").outcome, "refused WrongState { state: Negotiating }");
    scene.advance(Millis(0));
    assert_eq!(scene.job(job).worker(), Some(a));
    assert_eq!(bid(&mut scene, job, b, "1").outcome, "refused WrongState { state: Assigned }");
    assert_eq!(bid(&mut scene, job, late, "1").outcome, "refused NotFound");
    assert_eq!(scene.job(job).assignment.unwrap().price, credits("50"), "an offer binds");
}

#[test]
fn an_offer_a_moment_before_the_end_counts() {
    let (mut scene, client) = market();
    let [a, b, _] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "40");
    scene.advance(Millis(WINDOW.0 - 1));
    assert_eq!(bid(&mut scene, job, b, "39").outcome, "done");
    assert_eq!(scene.state(job), State::Negotiating);
    scene.advance(Millis(1));
    assert_eq!(scene.job(job).worker(), Some(b));
}

#[test]
fn it_closes_when_all_have_answered_and_equal_offers_go_to_the_oldest_agent() {
    let (mut scene, client) = market();
    let [a, b, c] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "40");
    bid(&mut scene, job, c, "30");
    assert_eq!(scene.state(job), State::Negotiating);
    bid(&mut scene, job, b, "30");
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price, turn.since), (b, credits("30"), scene.now));
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
    assert_eq!(scene.notices_to(c).last(), Some(&NoticeKind::OfferLost { job, place: 1 }));
    assert_eq!(scene.notices_to(a).last(), Some(&NoticeKind::OfferLost { job, place: 0 }));
    let word = scene.job_report(job, true, "30");
    post_new(&mut scene, Command::ReportResult(Box::new(word)));
    assert_eq!(scene.balance_text("rich"), account("70.00", "0.00"));
    assert_eq!(scene.balance_text("owner-b").0, "30.00");
}

#[test]
fn who_passes_has_answered_and_cannot_offer_any_more() {
    let (mut scene, client) = market();
    let [a, b, c] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    let late = scene.register_worker("late", "late", &[("sum", "1")]);
    assert_eq!(pass(&mut scene, job, a).outcome, "done");
    assert_eq!(pass(&mut scene, job, a).outcome, "refused NotFound");
    assert_eq!(pass(&mut scene, job, late).outcome, "refused NotFound");
    assert_eq!(pass(&mut scene, job, client).outcome, "refused NotFound");
    assert_eq!(bid(&mut scene, job, a, "1").outcome, "refused NotFound");
    pass(&mut scene, job, b);
    assert_eq!(scene.state(job), State::Negotiating);
    bid(&mut scene, job, c, "50");
    assert_eq!(scene.job(job).worker(), Some(c));
    assert_eq!(
        (scene.notices_to(a).len(), scene.notices_to(b).len()),
        (1, 1),
        "without an offer, none is lost"
    );
}

#[test]
fn without_offers_the_hold_is_released() {
    let (mut scene, client) = market();
    let [a, b, c] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let silent = post_task(&mut scene, order);
    let order = auction(&mut scene, client, "50");
    let passed = post_task(&mut scene, order);
    assert_eq!(scene.balance_text("rich"), account("0.00", "100.00"));
    for agent in [a, b, c] {
        pass(&mut scene, passed, agent);
    }
    assert_eq!((scene.state(passed), scene.state(silent)), (State::Failed, State::Negotiating));
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
    scene.advance(WINDOW);
    assert_eq!(scene.state(silent), State::Failed);
    assert_eq!(scene.balance_text("rich"), account("100.00", "0.00"));
    let ended = [passed, silent].map(|job| NoticeKind::Ended { job });
    assert_eq!(scene.notices_to(client), ended);
}

#[test]
fn without_candidates_there_is_no_auction() {
    let (mut scene, client) = market();
    let order = auction(&mut scene, client, "50");
    assert_eq!(scene.submit_and_read("x", opening(order)).outcome, "refused NoSuchSkill");
    assert_eq!(scene.balance_text("rich"), account("100.00", "0.00"));
}

/// An auction in the queue, after every bidder has declined.
fn queued() -> (TestHub, AgentId, JobId) {
    let (mut scene, client) = market();
    let [a, b, c] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    for (agent, price) in [(a, "30"), (b, "10"), (c, "20")] {
        bid(&mut scene, job, agent, price);
    }
    for (winner, price) in [(b, "10"), (c, "20"), (a, "30")] {
        let turn = scene.job(job).assignment.unwrap();
        assert_eq!((turn.worker, turn.price), (winner, credits(price)));
        pass(&mut scene, job, winner);
    }
    assert_eq!(
        (scene.state(job), scene.notices_to(client)),
        (State::Queued, vec![NoticeKind::Queued { job }])
    );
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
    (scene, client, job)
}

#[test]
fn after_the_last_offer_the_auction_is_repeated_for_new_agents() {
    let (mut scene, _, job) = queued();
    scene.advance(Millis::minutes(3));
    // An agent that declined is not invited again, however often it returns.
    scene.register(registration("b", "owner-b", &[("sum", "1")])).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    // Every time for as long as the first time.
    for name in ["d", "e", "f"] {
        let fresh = scene.register_worker(name, name, &[("sum", "70")]);
        let closes = scene.now.plus(WINDOW);
        assert_eq!(scene.notices_to(fresh), [NoticeKind::OfferRequested { job, closes }]);
        assert_eq!(scene.job(job).candidates.invited, [fresh]);
        scene.advance(Millis(WINDOW.0 - 1));
        bid(&mut scene, job, fresh, "45");
        let turn = scene.job(job).assignment.unwrap();
        assert_eq!((turn.worker, turn.price), (fresh, credits("45")));
        pass(&mut scene, job, fresh);
        assert_eq!(scene.state(job), State::Queued);
        scene.advance(Millis::minutes(5));
    }
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
}

#[test]
fn dispatching_repeats_the_auction_for_agents_that_are_free_now() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "acme", &[("sum", "20")]);
    let busy = registration("busy", "bees", &[("sum", "20"), ("dig", "1")]);
    let terms = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(1), ..Capacity::default() },
        ..Terms::default()
    };
    let busy = scene.register(Registration { terms, ..busy }).unwrap();
    let work = scene.job_order(client, "dig", "1");
    let work = scene.open_job(work).id;
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    assert_eq!(scene.job(job).candidates.invited, [a]);
    bid(&mut scene, job, a, "20");
    pass(&mut scene, job, a);
    assert_eq!(post_new(&mut scene, Command::DispatchQueue).lines.len(), 0);
    assert_eq!(scene.state(job), State::Queued);
    scene.succeed(work, "1");
    assert_eq!(scene.state(job), State::Queued, "the timer has not fired yet");
    let said = post_new(&mut scene, Command::DispatchQueue);
    let closes = scene.now.plus(WINDOW);
    assert_eq!(heard(&said), [(busy, NoticeKind::OfferRequested { job, closes })]);
    scene.advance(WINDOW);
    // No offers this time: the job fails, and the hold is released.
    assert_eq!(
        (scene.state(job), scene.balance_text("rich").1),
        (State::Failed, "0.00".to_owned())
    );
}

#[test]
fn offers_and_the_closing_time_survive_a_restart() {
    let (mut scene, client) = market();
    let [a, b, _] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "40");
    scene.advance(Millis::seconds(1));
    restart(&mut scene);
    bid(&mut scene, job, b, "39");
    assert_eq!(bid(&mut scene, job, a, "1").outcome, "refused TooManyOffers { max: 1 }");
    scene.advance(Millis(999));
    assert_eq!(scene.state(job), State::Negotiating);
    scene.advance(Millis(1));
    assert_eq!(scene.job(job).worker(), Some(b));
}

#[test]
fn an_offer_binds_its_agent_until_it_ends() {
    let (mut scene, client) = market();
    let [a, b, _] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "10");
    assert!(pass(&mut scene, job, a).outcome.starts_with("refused TooManyOffers"));
    assert_eq!(pass(&mut scene, job, b).outcome, "done");
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(a));
    assert_eq!(
        pass(&mut scene, job, a).outcome,
        "done",
        "it may still decline what it is assigned"
    );
}
