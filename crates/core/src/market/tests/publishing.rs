use super::*;
use crate::command::Command;
use crate::job::State;
use crate::testkit::{LEASE, message};

#[test]
fn what_an_order_tells_agents_of_the_market_is_part_of_its_posting() {
    let (mut scene, client) = market();
    let worker = scene.register_worker("a", "acme", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let said = scene.submit_and_read("x", opening(order));
    let job = JobId(1);
    assert_eq!(heard(&said), [(worker, NoticeKind::Assigned { job, epoch: 1 })]);
    let word = scene.job_report(job, true, "20");
    let said = scene.submit_and_read("y", Command::ReportResult(Box::new(word)));
    assert_eq!(heard(&said), [(client, NoticeKind::Ended { job })]);
    assert_eq!(scene.newest_record(), PostingId(2), "and nothing else");
}

#[test]
fn everything_told_in_one_step_is_one_posting_in_that_order() {
    let (mut scene, client) = market();
    let [a, b, c] = ["a", "b", "c"].map(|name| scene.register_worker(name, name, &[("sum", "1")]));
    let order = task(&mut scene, client, "50", Selection::BroadcastToProtocol);
    let said = scene.submit_and_read("x", opening(order));
    let given = |n: u64, to| (to, NoticeKind::Assigned { job: JobId(n), epoch: 1 });
    assert_eq!(heard(&said), [given(1, a), given(2, b), given(3, c)]);
}

#[test]
fn others_are_published_to_and_never_published() {
    let (mut scene, _) = market();
    let (asks, works) = (stranger(&mut scene, "asks", &[]), stranger(&mut scene, "works", &[]));
    scene.grant("owner-asks", "100");
    scene.run(Command::SendMessage(Box::new(message(asks, works, "hello")))).unwrap();
    assert_eq!(scene.newest_record(), PostingId(0), "no agent of the market got a notice");
    // A job of another protocol, assigned to an agent of the market.
    let worker = scene.register_worker("a", "acme", &[("sum", "20")]);
    let order = OpenJob { origin: AWAY, ..scene.job_order(asks, "sum", "50") };
    let job = scene.open_job(order).id;
    let told = scene.read_record(PostingId(1));
    assert_eq!((told.of.as_ref(), told.outcome.as_str()), (None, "nothing ordered"));
    assert_eq!(heard(&told), [(worker, NoticeKind::Assigned { job, epoch: 1 })]);
    // Its result is an order of the market, without a notice to the market's agents.
    let word = scene.job_report(job, true, "20");
    let told = scene.submit_and_read("y", Command::ReportResult(Box::new(word)));
    assert_eq!((told.outcome.as_str(), told.lines.len()), ("done", 0));
    assert_eq!(scene.notices_to(asks), [NoticeKind::Ended { job }]);
}

#[test]
fn a_task_given_elsewhere_is_published_like_any_other() {
    let (mut scene, client) = market();
    let works = stranger(&mut scene, "works", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let said = scene.submit_and_read("x", opening(order));
    let job = JobId(1);
    assert_eq!(heard(&said), [(works, NoticeKind::Assigned { job, epoch: 1 })]);
    scene.succeed(job, "20");
    assert_eq!(heard(&scene.read_record(PostingId(2))), [(client, NoticeKind::Ended { job })]);
}

#[test]
fn what_falls_due_is_published_by_itself() {
    let (mut scene, client) = market();
    let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[("sum", "20")]));
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    scene.advance(LEASE);
    let told = scene.records_after(PostingId(1));
    assert_eq!(told.len(), 1);
    let news = [
        (a, NoticeKind::Unassigned { job, epoch: 1 }),
        (b, NoticeKind::Assigned { job, epoch: 2 }),
    ];
    assert_eq!((told[0].of.as_ref(), heard(&told[0]), told[0].at), (None, news.into(), scene.now));
    scene.advance(LEASE);
    let told = heard(&scene.read_record(PostingId(3)));
    assert_eq!(
        told,
        [(b, NoticeKind::Unassigned { job, epoch: 2 }), (client, NoticeKind::Queued { job })]
    );
}

#[test]
fn without_a_market_nothing_is_published_or_counted() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "100");
    let worker = scene.register_worker("a", "acme", &[("sum", "20")]);
    let order = auction(&mut scene, client, "50");
    let job = scene.open_job(order).id;
    scene.advance(WINDOW);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let other = scene.open_job(order).id;
    scene.decline(other);
    assert_eq!((scene.state(job), scene.state(other)), (State::Failed, State::Queued));
    assert!(scene.store.rows.market_records.is_empty());
    let next = scene.world.next;
    assert_eq!(
        (next.market_record, next.market_orders, next.market_messages),
        (PostingId(1), 0, 0)
    );
    assert_eq!(closing(&scene, job), None);
    let agent_state = scene.agent_state(worker);
    assert!(agent_state.market_totals.is_empty() && agent_state.declined_jobs.is_empty());
}

#[test]
fn the_last_answer_of_an_auction_does_not_say_who_won() {
    for declines in [false, true] {
        let (mut scene, client) = market();
        let [a, b, c] = three(&mut scene);
        let order = auction(&mut scene, client, "50");
        let job = post_task(&mut scene, order);
        assert_eq!(bid(&mut scene, job, a, "40").lines.len(), 0);
        assert_eq!(bid(&mut scene, job, b, "30").lines.len(), 0);
        assert_eq!((scene.newest_record(), closing(&scene, job)), (PostingId(3), None));
        let last = match declines {
            true => pass(&mut scene, job, c),
            false => bid(&mut scene, job, c, "35"),
        };
        assert_eq!((last.outcome.as_str(), last.lines.len()), ("done", 0));
        let ends = scene.read_record(PostingId(5));
        let mut news = vec![
            (b, NoticeKind::Assigned { job, epoch: 1 }),
            (a, NoticeKind::OfferLost { job, place: 0 }),
        ];
        news.extend((!declines).then_some((c, NoticeKind::OfferLost { job, place: 2 })));
        assert_eq!((ends.of.as_ref(), heard(&ends)), (None, news));
        assert_eq!(ends.first_message, last.first_message + 1);
        assert_eq!(closing(&scene, job), Some(PostingId(5)));
        assert_eq!(scene.world.next.market_orders, 4, "there was no order");
    }
}

#[test]
fn an_auction_closed_by_the_clock_leads_to_what_was_said_then() {
    let (mut scene, client) = market();
    let [a, b, _] = three(&mut scene);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "40");
    scene.advance(WINDOW);
    let ends = scene.read_record(PostingId(3));
    assert_eq!(heard(&ends), [(a, NoticeKind::Assigned { job, epoch: 1 })]);
    assert_eq!(closing(&scene, job), Some(PostingId(3)));
    // So does one without offers.
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    scene.advance(WINDOW);
    let ends = scene.read_record(PostingId(5));
    assert_eq!(
        (heard(&ends), closing(&scene, job)),
        (vec![(client, NoticeKind::Ended { job })], Some(PostingId(5)))
    );
    assert!(!scene.notices_to(b).is_empty());
}

#[test]
fn an_auction_won_elsewhere_says_so() {
    let (mut scene, client) = market();
    let works = stranger(&mut scene, "works", &[("sum", "20")]);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    assert_eq!((scene.newest_record(), closing(&scene, job)), (PostingId(1), None));
    scene.advance(WINDOW);
    assert_eq!(scene.job(job).worker(), Some(works));
    assert_eq!(closing(&scene, job), Some(PostingId(2)));
    let ends = scene.read_record(PostingId(2));
    assert_eq!(heard(&ends), [(works, NoticeKind::Assigned { job, epoch: 1 })]);
    assert_eq!(scene.notices_to(works).len(), 1, "it was not invited to make an offer");
}

#[test]
fn what_came_of_an_auction_stays_what_it_was_when_it_is_held_again() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "acme", &[("sum", "20")]);
    let order = auction(&mut scene, client, "50");
    let job = post_task(&mut scene, order);
    bid(&mut scene, job, a, "40");
    assert_eq!(closing(&scene, job), Some(PostingId(3)));
    pass(&mut scene, job, a);
    let b = scene.register_worker("b", "bees", &[("sum", "20")]);
    bid(&mut scene, job, b, "10");
    assert_eq!(scene.job(job).worker(), Some(b));
    assert_eq!(closing(&scene, job), Some(PostingId(3)));
}

#[test]
fn declining_a_task_and_the_next_agents_task_are_one_posting() {
    let (mut scene, client) = market();
    let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[("sum", "20")]));
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    let said = pass(&mut scene, job, a);
    assert_eq!(heard(&said), [(b, NoticeKind::Assigned { job, epoch: 2 })]);
    let said = pass(&mut scene, job, b);
    assert_eq!(heard(&said), [(client, NoticeKind::Queued { job })]);
    assert_eq!((scene.newest_record(), closing(&scene, job)), (PostingId(3), None));
}
