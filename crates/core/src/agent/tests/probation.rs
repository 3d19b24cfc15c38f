//! Agents that register without proof (T50).

use super::*;
use crate::command::{DeliveryResult, OpenJob};
use crate::event::Event;
use crate::job::Selection;
use crate::testkit::message;
use crate::time::Timestamp;

const LONG: Millis = Millis::hours(24 * 30);

fn strict() -> TestHub {
    TestHub::new(Rules { probation_period: Some(LONG), ..Rules::default() })
}

/// A registration without proof.
fn unproven(native: &str) -> Registration {
    let order = registration(native, native, &[("sum", "0")]);
    Registration { actor: Actor::Anonymous, key: Some(FIRST_KEY), ..order }
}

#[test]
fn an_unproven_agent_without_further_calls_is_delisted() {
    let mut scene = strict();
    let ghost = scene.register(unproven("ghost")).unwrap();
    scene.advance(Millis(LONG.0 - 1));
    assert_eq!(finds(&scene, "sum"), [ghost]);
    scene.advance_without_timers(Millis(1));
    let timers: Vec<_> = scene.world.due_timers(scene.now).collect();
    let [timer] = timers[..] else { panic!("{timers:?}") };
    let (changes, _) = scene.run_with_changes(Command::FireTimer(timer)).unwrap();
    let events: Vec<&Event> = changes.history_lines.iter().flat_map(|line| &line.events).collect();
    assert_eq!(events, [&Event::AgentRemoved { agent: ghost, by_operator: false }]);
    assert_eq!((finds(&scene, "sum"), scene.agent(ghost).active), (vec![], false));
    // As after leaving: the id stays reserved, and its own key brings it back for good.
    assert_eq!(scene.register(unproven("ghost")), Err(Refusal::IdTaken));
    scene.register(by(Actor::Agent(ghost), unproven("ghost"))).unwrap();
    scene.advance(Millis(2 * LONG.0));
    assert_eq!(finds(&scene, "sum"), [ghost]);
}

#[test]
fn one_sign_of_any_kind_is_enough_to_stay() {
    type Act = fn(&mut TestHub, AgentId, AgentId);
    let acts: [(&str, Act); 9] = [
        ("its key was used", |scene, one, _| {
            drop(scene.run(Command::RecordActivity { agent: one }).unwrap())
        }),
        ("it sent a heartbeat", |scene, one, _| {
            drop(scene.run(Command::Heartbeat { agent: one }).unwrap())
        }),
        ("it sent a message", |scene, one, other| {
            let envelope = Command::SendMessage(Box::new(message(one, other, "hello")));
            scene.run(envelope).unwrap();
        }),
        ("it read", |scene, one, other| {
            scene.run(Command::SendMessage(Box::new(message(other, one, "hello")))).unwrap();
            scene.run(Command::MarkPresented { agent: one, up_to: 1 }).unwrap();
        }),
        ("it requested a job", |scene, one, other| {
            let order = scene.job_order(one, "other", "0");
            let job = scene.open_job(OpenJob { selection: Selection::Direct(other), ..order });
            scene.succeed(job.id, "0");
        }),
        ("it worked", |scene, one, other| {
            let order = scene.job_order(other, "sum", "0");
            let job = scene.open_job(OpenJob { selection: Selection::Direct(one), ..order });
            scene.fail(job.id);
        }),
        ("it has an assigned job", |scene, one, other| {
            scene.advance_without_timers(Millis(LONG.0 - 1));
            let order = scene.job_order(other, "sum", "0");
            scene.open_job(OpenJob { selection: Selection::Direct(one), ..order });
        }),
        ("it was paid", |scene, _, _| scene.grant("one", "1.00")),
        ("it had credits once", |scene, _, _| {
            scene.grant("one", "1.00");
            scene.run(Command::Burn { name: "one".to_owned(), amount: credits("1.00") }).unwrap();
        }),
    ];
    for (what, act) in acts {
        let mut scene = strict();
        let one = scene.register(unproven("one")).unwrap();
        let other = scene.register_worker("other", "other", &[("other", "0")]);
        scene.advance_without_timers(Millis(1));
        act(&mut scene, one, other);
        scene.advance(Millis(2 * LONG.0));
        assert!(scene.agent(one).active, "{what}");
        assert_eq!(scene.agent(one).probation, None, "{what}");
    }
}

#[test]
fn an_endpoint_that_takes_a_delivery_is_a_sign() {
    let mut scene = strict();
    let order = registration_with_endpoint("one", "one", &[("sum", "0")]);
    let one = scene.register(by(Actor::Anonymous, order)).unwrap();
    let other = scene.register_worker("other", "other", &[]);
    let order = scene.job_order(other, "sum", "0");
    scene.open_job(order);
    assert!(scene.agent(one).probation.is_some(), "receiving a message is not activity");
    let notice = scene.world.deliveries().next().map(|push| push.notice).unwrap();
    let ended = DeliveryResult::Delivered { reply: None };
    scene.run(Command::RecordDelivery { notice, result: ended, report: None }).unwrap();
    assert_eq!(scene.agent(one).probation, None);
}

#[test]
fn a_proven_agent_is_not_on_probation_and_none_is_by_default() {
    let mut scene = strict();
    for (native, actor) in
        [("a", Actor::OpenRegistration), ("b", Actor::Operator), ("c", Actor::Owner)]
    {
        let one = scene.register(by(actor, registration(native, native, &[]))).unwrap();
        assert_eq!(scene.agent(one).probation, None, "{actor:?}");
    }
    let mut scene = TestHub::default();
    let ghost = scene.register(unproven("ghost")).unwrap();
    let row = serde_json::to_string(scene.agent(ghost)).unwrap();
    assert!(!row.contains("probation"), "{row}");
    scene.advance(Millis(2 * LONG.0));
    assert!(scene.agent(ghost).active);
}

#[test]
fn probation_outlives_a_restart_and_ends_when_it_is_switched_off() {
    let mut scene = strict();
    let ghost = scene.register(unproven("ghost")).unwrap();
    scene.world = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(scene.world.next_timer_at(), Some(Timestamp(scene.now.0 + LONG.0)));
    scene.world = scene.store.rebuild_world(Rules::default());
    scene.advance(Millis(2 * LONG.0));
    let kept = scene.agent(ghost);
    assert_eq!((kept.active, kept.probation), (true, None));
}
