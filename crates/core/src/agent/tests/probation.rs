//! Agents that register without proof (T50).

use super::*;
use crate::command::{OpenJob, PushEnd};
use crate::event::Event;
use crate::job::Selection;
use crate::testkit::said;
use crate::time::Timestamp;

const LONG: Millis = Millis::hours(24 * 30);

fn strict() -> Scene {
    Scene::new(Rules { unproven_ttl: Some(LONG), ..Rules::default() })
}

/// A registration without proof.
fn unproven(native: &str) -> Enrol {
    let order = enrolment(native, native, &[("sum", "0")]);
    Enrol { actor: Actor::Nobody, key: Some(FIRST_KEY), ..order }
}

#[test]
fn whoever_comes_without_proof_and_is_never_heard_of_again_is_taken_off_the_lists() {
    let mut scene = strict();
    let ghost = scene.enrol(unproven("ghost")).unwrap();
    scene.wait(Millis(LONG.0 - 1));
    assert_eq!(finds(&scene, "sum"), [ghost]);
    scene.sleep(Millis(1));
    let timers: Vec<_> = scene.world.due(scene.now).collect();
    let [timer] = timers[..] else { panic!("{timers:?}") };
    let (changes, _) = scene.decided(Command::Tick(timer)).unwrap();
    let events: Vec<&Event> = changes.lines.iter().flat_map(|line| &line.events).collect();
    assert_eq!(events, [&Event::AgentRemoved { agent: ghost, by_operator: false }]);
    assert_eq!((finds(&scene, "sum"), scene.agent(ghost).active), (vec![], false));
    // As after leaving: the id stays reserved, and its own key brings it back for good.
    assert_eq!(scene.enrol(unproven("ghost")), Err(Refusal::IdTaken));
    scene.enrol(by(Actor::Agent(ghost), unproven("ghost"))).unwrap();
    scene.wait(Millis(2 * LONG.0));
    assert_eq!(finds(&scene, "sum"), [ghost]);
}

#[test]
fn one_sign_of_any_kind_is_enough_to_stay() {
    type Act = fn(&mut Scene, AgentId, AgentId);
    let acts: [(&str, Act); 9] = [
        ("its key was used", |scene, one, _| {
            drop(scene.run(Command::Return { agent: one }).unwrap())
        }),
        ("it sent a heartbeat", |scene, one, _| {
            drop(scene.run(Command::Beat { agent: one }).unwrap())
        }),
        ("it sent a message", |scene, one, other| {
            let letter = Command::Send(Box::new(said(one, other, "hello")));
            scene.run(letter).unwrap();
        }),
        ("it read", |scene, one, other| {
            scene.run(Command::Send(Box::new(said(other, one, "hello")))).unwrap();
            scene.run(Command::Present { agent: one, up_to: 1 }).unwrap();
        }),
        ("it requested a job", |scene, one, other| {
            let order = scene.ask(one, "other", "0");
            let job = scene.open(OpenJob { selection: Selection::Direct(other), ..order });
            scene.succeed(job.id, "0");
        }),
        ("it worked", |scene, one, other| {
            let order = scene.ask(other, "sum", "0");
            let job = scene.open(OpenJob { selection: Selection::Direct(one), ..order });
            scene.fail(job.id);
        }),
        ("it has an assigned job", |scene, one, other| {
            scene.sleep(Millis(LONG.0 - 1));
            let order = scene.ask(other, "sum", "0");
            scene.open(OpenJob { selection: Selection::Direct(one), ..order });
        }),
        ("it was paid", |scene, _, _| scene.grant("one", "1.00")),
        ("it had credits once", |scene, _, _| {
            scene.grant("one", "1.00");
            scene.run(Command::Burn { name: "one".to_owned(), amount: credits("1.00") }).unwrap();
        }),
    ];
    for (what, act) in acts {
        let mut scene = strict();
        let one = scene.enrol(unproven("one")).unwrap();
        let other = scene.worker("other", "other", &[("other", "0")]);
        scene.sleep(Millis(1));
        act(&mut scene, one, other);
        scene.wait(Millis(2 * LONG.0));
        assert!(scene.agent(one).active, "{what}");
        assert_eq!(scene.agent(one).probation, None, "{what}");
    }
}

#[test]
fn an_endpoint_that_takes_a_delivery_is_a_sign() {
    let mut scene = strict();
    let order = reached("one", "one", &[("sum", "0")]);
    let one = scene.enrol(by(Actor::Nobody, order)).unwrap();
    let other = scene.worker("other", "other", &[]);
    let order = scene.ask(other, "sum", "0");
    scene.open(order);
    assert!(scene.agent(one).probation.is_some(), "receiving a message is not activity");
    let notice = scene.world.pushes().next().map(|push| push.notice).unwrap();
    let ended = PushEnd::Delivered { reply: None };
    scene.run(Command::PushDone { notice, ended }).unwrap();
    assert_eq!(scene.agent(one).probation, None);
}

#[test]
fn who_was_spoken_for_is_not_on_probation_and_nobody_is_by_default() {
    let mut scene = strict();
    for (native, actor) in [("a", Actor::Open), ("b", Actor::Operator), ("c", Actor::Owner)] {
        let one = scene.enrol(by(actor, enrolment(native, native, &[]))).unwrap();
        assert_eq!(scene.agent(one).probation, None, "{actor:?}");
    }
    let mut scene = Scene::default();
    let ghost = scene.enrol(unproven("ghost")).unwrap();
    let row = serde_json::to_string(scene.agent(ghost)).unwrap();
    assert!(!row.contains("probation"), "{row}");
    scene.wait(Millis(2 * LONG.0));
    assert!(scene.agent(ghost).active);
}

#[test]
fn probation_outlives_a_restart_and_ends_when_it_is_switched_off() {
    let mut scene = strict();
    let ghost = scene.enrol(unproven("ghost")).unwrap();
    scene.world = scene.store.rebuilt(scene.world.rules);
    assert_eq!(scene.world.next_timer(), Some(Timestamp(scene.now.0 + LONG.0)));
    scene.world = scene.store.rebuilt(Rules::default());
    scene.wait(Millis(2 * LONG.0));
    let kept = scene.agent(ghost);
    assert_eq!((kept.active, kept.probation), (true, None));
}
