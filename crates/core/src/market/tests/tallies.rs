use super::*;
use crate::agent::MarketTotals;
use crate::testkit::LEASE;

#[test]
fn agents_of_the_market_are_counted_and_others_for_what_they_do_there() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "20")]);
    let far = stranger(&mut scene, "far", &[("sum", "25")]);
    scene.grant("owner-far", "10");
    for price in ["20", "15"] {
        let order = task(&mut scene, client, "50", Selection::Cheapest);
        let job = post_task(&mut scene, order);
        scene.succeed(job, price);
    }
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    let job = post_task(&mut scene, order);
    let name = scene.job(job).request.foreign_id.clone();
    pass(&mut scene, job, a);
    assert_eq!(scene.job(job).worker(), Some(far));
    scene.decline(job);
    let order = OpenJob { origin: AWAY, ..task(&mut scene, far, "0.5", Selection::Cheapest) };
    let free = scene.register_worker("free", "free", &[("sum", "0.5")]);
    // The queued job went to the agent that registered.
    assert_eq!(scene.job(job).worker(), Some(free));
    scene.fail(job);
    let other = scene.open_job(order).id;
    scene.succeed(other, "0.5");
    let tally = |agent| scene.agent_state(agent).market_totals;
    let earned = credits("35");
    assert_eq!(tally(a), MarketTotals { requested: 0, assigned: 3, completed: 2, earned });
    assert_eq!(tally(client), MarketTotals { requested: 3, ..MarketTotals::default() });
    let earned = credits("0.5");
    assert_eq!(tally(free), MarketTotals { requested: 0, assigned: 2, completed: 1, earned });
    assert_eq!(
        tally(far),
        MarketTotals { assigned: 1, ..MarketTotals::default() },
        "and not what it requested elsewhere"
    );
    assert_eq!(scene.agent_state(a).declined_jobs, std::slice::from_ref(&name));
    assert_eq!(scene.agent_state(far).declined_jobs, [name]);
}

#[test]
fn an_update_keeps_the_tally_and_what_was_declined() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "20")]);
    for declines in [false, true] {
        let order = task(&mut scene, client, "50", Selection::Cheapest);
        let job = post_task(&mut scene, order);
        match declines {
            true => drop(pass(&mut scene, job, a)),
            false => drop(scene.succeed(job, "20")),
        }
    }
    let before = scene.agent_state(a).clone();
    assert!(before.market_totals.completed == 1 && before.declined_jobs.len() == 1);
    post_new(&mut scene, Command::Register(Box::new(registration("a", "a", &[("sum", "30")]))));
    assert_eq!(
        (scene.agent_state(a).market_totals, &scene.agent_state(a).declined_jobs),
        (before.market_totals, &before.declined_jobs)
    );
    restart(&mut scene);
    assert_eq!(
        (scene.agent_state(a).market_totals, &scene.agent_state(a).declined_jobs),
        (before.market_totals, &before.declined_jobs)
    );
}

#[test]
fn silence_is_no_decline() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::Cheapest);
    post_task(&mut scene, order);
    scene.read_inbox(a);
    scene.advance(LEASE);
    let agent_state = scene.agent_state(a);
    assert_eq!(
        (
            agent_state.market_totals.assigned,
            agent_state.market_totals.completed,
            agent_state.declined_jobs.len()
        ),
        (1, 0, 0)
    );
    assert_eq!(agent_state.standing.failures, 1);
}

#[test]
fn only_the_newest_of_what_was_declined_is_kept() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "1")]);
    let mut names = Vec::new();
    for n in 0..70 {
        let selection = Selection::Direct(a);
        let policy = Policy::default();
        let order = OpenJob { policy, ..task(&mut scene, client, "1", selection) };
        names.push(order.foreign_id.clone());
        let job = post_task(&mut scene, order);
        pass(&mut scene, job, a);
        assert_eq!(scene.agent_state(a).declined_jobs.len(), (n + 1).min(64));
    }
    assert_eq!(scene.agent_state(a).declined_jobs, names[6..]);
}
