use super::*;
use crate::agent::Capacity;
use crate::agent::Terms;
use crate::job::RequesterOptions;
use crate::job::State;
use crate::testkit::JOB_LIFETIME;

#[test]
fn without_online_agents_it_is_refused_and_after_all_declined_it_waits() {
    let (mut scene, client) = market();
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    assert_eq!(post_new(&mut scene, opening(order)).outcome, "refused NoSuchSkill");
    let dear = scene.register_worker("dear", "dear", &[("sum", "60")]);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let refused = post_new(&mut scene, opening(order)).outcome;
    assert!(refused.starts_with("refused BudgetTooLow"), "{refused}");
    let [a, b] =
        [("a", "20"), ("b", "45")].map(|(n, price)| scene.register_worker(n, n, &[("sum", price)]));
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    assert_eq!(scene.job(job).worker(), Some(a));
    pass(&mut scene, job, a);
    assert_eq!(scene.job(job).worker(), Some(b));
    pass(&mut scene, job, b);
    assert_eq!(scene.state(job), State::Queued);
    assert_eq!(scene.balance_text("rich"), account("50.00", "50.00"));
    assert_eq!(scene.notices_to(client), [NoticeKind::Queued { job }]);
    // An update triggers a try as well, and an agent that declined does not get it again.
    scene.register(registration("a", "a", &[("sum", "1")])).unwrap();
    assert_eq!(scene.state(job), State::Queued);
    scene.register(registration("dear", "dear", &[("sum", "45")])).unwrap();
    let turn = scene.job(job).assignment.unwrap();
    assert_eq!((turn.worker, turn.price), (dear, credits("45")));
    scene.succeed(job, "45");
    assert_eq!(scene.balance_text("rich"), account("55.00", "0.00"));
}

#[test]
fn a_queued_task_ends_with_its_time_and_gives_everything_back() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    pass(&mut scene, job, a);
    scene.advance(JOB_LIFETIME);
    assert_eq!(
        (scene.state(job), scene.balance_text("rich")),
        (State::Expired, account("100.00", "0.00"))
    );
    assert_eq!(scene.notices_to(client), [NoticeKind::Queued { job }, NoticeKind::Ended { job }]);
}

#[test]
fn a_decline_and_a_dispatch_try_what_is_queued_the_oldest_first() {
    let (mut scene, client) = market();
    let quits = scene.register_worker("quits", "quits", &[("sum", "1")]);
    let terms = Terms {
        capacity: Capacity { max_concurrent_jobs: Some(1), ..Capacity::default() },
        ..Terms::default()
    };
    let order = registration("full", "full", &[("sum", "1")]);
    let full = scene.register(Registration { terms, ..order }).unwrap();
    let order = task(&mut scene, client, "5", Selection::Direct(full));
    let work = post_task(&mut scene, order);
    let [first, second] = [(); 2].map(|()| {
        let order = task(&mut scene, client, "5", Selection::Cheapest);
        let job = post_task(&mut scene, order);
        assert_eq!(heard(&pass(&mut scene, job, quits)), [(client, NoticeKind::Queued { job })]);
        job
    });
    assert_eq!(
        post_new(&mut scene, Command::DispatchQueue).lines.len(),
        0,
        "no agent has capacity"
    );
    scene.succeed(work, "1");
    let given = |job| (full, NoticeKind::Assigned { job, epoch: 2 });
    assert_eq!(heard(&post_new(&mut scene, Command::DispatchQueue)), [given(first)]);
    // It declines, has capacity again, and the same order assigns it the next job.
    let said = pass(&mut scene, first, full);
    assert_eq!(heard(&said), [(client, NoticeKind::Queued { job: first }), given(second)]);
}

#[test]
fn without_payments_prices_only_steer_the_choice() {
    let (mut scene, _) = market();
    let poor = scene.register_worker("poor", "poor", &[]);
    for (name, price) in [("a", "30"), ("b", "20"), ("c", "70")] {
        scene.register_worker(name, name, &[("sum", price)]);
    }
    let entries = scene.store.rows.entries.len();
    let mut unpaid = |budget: &str, selection| {
        let order = task(&mut scene, poor, budget, selection);
        let order = OpenJob {
            policy: Policy {
                requester: RequesterOptions { unpaid: true, ..TASK.requester },
                ..TASK
            },
            ..order
        };
        post_new(&mut scene, opening(order)).outcome
    };
    assert!(unpaid("10", Selection::Cheapest).starts_with("refused BudgetTooLow"));
    assert_eq!(unpaid("50", Selection::Cheapest), "done");
    assert_eq!(unpaid("50", Selection::BroadcastToProtocol), "done");
    let jobs: Vec<_> = scene.store.rows.jobs.values().cloned().collect();
    let given: Vec<_> = jobs.iter().map(|job| job.assignment.unwrap().price.to_text(0)).collect();
    assert_eq!(given, ["20", "30", "20"], "the cheapest; then all but the one above the reward");
    for job in &jobs {
        let done = scene.succeed(job.id, "20");
        assert_eq!(
            (done.payment.held, done.result.as_ref().unwrap().paid),
            (credits("0"), credits("0"))
        );
    }
    let order = auction(&mut scene, poor, "50");
    let order = OpenJob {
        policy: Policy { requester: RequesterOptions { unpaid: true, ..TASK.requester }, ..TASK },
        ..order
    };
    let job = post_task(&mut scene, order);
    let [a, b, c] = ["a", "b", "c"].map(|name| scene.world.agent_by_alias(HOME, name).unwrap());
    for (agent, price) in [(a, "9"), (b, "10"), (c, "50")] {
        assert_eq!(bid(&mut scene, job, agent, price).outcome, "done");
    }
    assert_eq!(scene.job(job).worker(), Some(a));
    pass(&mut scene, job, a);
    assert_eq!(scene.job(job).worker(), Some(b));
    scene.fail(job);
    assert_eq!(scene.job(job).worker(), Some(c));
    scene.advance(JOB_LIFETIME);
    assert_eq!(scene.store.rows.entries.len(), entries, "not a credit moved");
}

#[test]
fn every_agent_gets_a_copy_at_its_own_price_and_each_copy_ends_separately() {
    let (mut scene, client) = market();
    scene.register(registration("client", "rich", &[("sum", "1")])).unwrap();
    let a = scene.register_worker("a", "a", &[("sum", "20"), ("dig", "90")]);
    let b = scene.register_worker("b", "b", &[("dig", "50")]);
    scene.register_worker("dear", "dear", &[("dig", "80"), ("sum", "1")]);
    scene.register_worker("idle", "idle", &[]);
    stranger(&mut scene, "works", &[("sum", "20")]);
    let left = scene.register_worker("left", "left", &[("sum", "20")]);
    scene.remove(left);
    let order = task(&mut scene, client, "50", Selection::BroadcastToProtocol);
    let said = scene.submit_and_read("x", opening(order));
    assert_eq!(said.lines.len(), 2);
    let [one, two] = [JobId(1), JobId(2)].map(|id| scene.job(id));
    for (copy, agent, skill, price) in [(&one, a, "sum", "20"), (&two, b, "dig", "50")] {
        let turn = copy.assignment.unwrap();
        assert_eq!(
            (turn.worker, turn.price, copy.payment.held),
            (agent, credits(price), credits(price))
        );
        assert_eq!(copy.request.skill, skill);
    }
    assert!(one.uuid != two.uuid && one.request.foreign_id != two.request.foreign_id);
    assert_eq!(scene.balance_text("rich"), account("30.00", "70.00"));
    scene.succeed(one.id, "20");
    assert_eq!(scene.balance_text("rich"), account("30.00", "50.00"));
    // The other copy is dropped: it is not reassigned and does not wait.
    assert_eq!(pass(&mut scene, two.id, b).outcome, "done");
    assert_eq!(scene.state(two.id), State::Failed);
    assert_eq!(scene.balance_text("rich"), account("80.00", "0.00"));
}

#[test]
fn a_broadcast_has_no_receivers_when_all_are_too_expensive() {
    let (mut scene, client) = market();
    scene.register_worker("a", "a", &[("sum", "51")]);
    stranger(&mut scene, "works", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::BroadcastToProtocol);
    let said = scene.submit_and_read("x", opening(order));
    assert!(said.outcome.starts_with("refused"), "{said:?}");
    assert_eq!(scene.balance_text("rich"), account("100.00", "0.00"));
}
