//! Confusable names. In these tests, only case is ignored.

use super::{by, refuses};
use crate::alias::Protocol;
use crate::command::{Actor, Command, Pay, Registration};
use crate::confusables::Confusables;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::testkit::{AWAY, HOME, TestHub, credits, registration};
use crate::world::Rules;

fn owner(name: &str) -> Vec<String> {
    vec![name.to_lowercase()]
}

fn native(home: Protocol, native: &str) -> Vec<String> {
    if home == HOME { vec![native.to_lowercase()] } else { Vec::new() }
}

fn careless() -> Rules {
    Rules {
        confusables: Confusables { owner_skeletons: owner, agent_skeletons: native },
        ..Rules::default()
    }
}

#[test]
fn a_name_confusable_with_another_owners_is_refused() {
    let mut scene = TestHub::new(careless());
    scene.register_worker("ada", "acme", &[]);
    for actor in [Actor::Anonymous, Actor::OpenRegistration, Actor::Operator, Actor::Owner] {
        let order = by(actor, registration("eve", "ACME", &[]));
        refuses(&mut scene, order, Refusal::NameConfusable);
    }
    let grant = |name: &str| Command::Grant { name: name.to_owned(), amount: credits("1") };
    assert_eq!(scene.run(grant("Acme")).unwrap_err(), Refusal::NameConfusable);
    assert_eq!(scene.run(grant("HUB:issuance")).unwrap_err(), Refusal::NameConfusable);
    let open = Command::OpenAccount { name: "aCme".to_owned() };
    assert_eq!(scene.run(open).unwrap_err(), Refusal::NameConfusable);
    scene.run(grant("acme")).unwrap();
    let order = scene.payment("acme", "ACME", "1");
    let order = Pay { open_payee: true, ..order };
    assert_eq!(scene.pay(order).unwrap_err(), Refusal::NameConfusable);
    assert_eq!(scene.balance_text("acme").0, "1.00");
    assert_eq!(scene.world.owners().count(), 2, "acme and the issue account");
    // Exactly the same name still works.
    scene.register_worker("bob", "acme", &[]);
    scene.register_worker("ada", "acme", &[]);
}

#[test]
fn an_id_that_looks_like_anothers_is_taken_and_ones_own_may_look_alike() {
    let mut scene = TestHub::new(careless());
    let ada = scene.register_worker("Ada", "acme", &[]);
    refuses(&mut scene, registration("ada", "globex", &[]), Refusal::NameConfusable);
    assert!(scene.register(registration("ADA", "acme", &[])).is_ok());
    // The id identifies; a confusable id finds no agent.
    assert_eq!(scene.world.agent_by_alias(HOME, "aDa"), None);
    scene.remove(ada);
    refuses(&mut scene, registration("aDA", "globex", &[]), Refusal::NameConfusable);
    assert_eq!(scene.register(registration("Ada", "acme", &[])), Ok(ada));
    let elsewhere = Registration { home: AWAY, ..registration("ada", "globex", &[]) };
    assert!(scene.register(elsewhere).is_ok(), "another protocol has its own ids");
}

#[test]
fn names_that_were_there_before_it_was_asked_stay_and_are_not_joined_by_more() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[]);
    let shouting = scene.register_worker("ADA", "ACME", &[]);
    scene.world = scene.store.rebuild_world(careless());
    assert_eq!(scene.register(registration("ada", "acme", &[])), Ok(ada));
    assert_eq!(scene.register(registration("ADA", "ACME", &[])), Ok(shouting));
    scene.grant("ACME", "1.00");
    assert_eq!(
        (scene.balance_text("ACME").0, scene.balance_text("acme").0),
        ("1.00".into(), "0.00".into())
    );
    refuses(&mut scene, registration("eve", "Acme", &[]), Refusal::NameConfusable);
    refuses(&mut scene, registration("Ada", "globex", &[]), Refusal::NameConfusable);
    assert_eq!(scene.world.owner_by_name(Owner::ISSUANCE_NAME), Some(Owner::ISSUANCE));
}
