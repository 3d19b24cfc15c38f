//! Confusable names. In these tests, only case is ignored.

use super::{by, refuses};
use crate::alias::Protocol;
use crate::command::{Actor, Command, Enrol, Pay};
use crate::confusables::Likeness;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::testkit::{AWAY, HOME, Scene, credits, enrolment};
use crate::world::Rules;

fn owner(name: &str) -> Vec<String> {
    vec![name.to_lowercase()]
}

fn native(home: Protocol, native: &str) -> Vec<String> {
    if home == HOME { vec![native.to_lowercase()] } else { Vec::new() }
}

fn careless() -> Rules {
    Rules { likeness: Likeness { owner, native }, ..Rules::default() }
}

#[test]
fn nobody_takes_a_name_that_looks_like_another_owners() {
    let mut scene = Scene::new(careless());
    scene.worker("ada", "acme", &[]);
    for actor in [Actor::Nobody, Actor::Open, Actor::Operator, Actor::Owner] {
        let order = by(actor, enrolment("eve", "ACME", &[]));
        refuses(&mut scene, order, Refusal::LooksTaken);
    }
    let grant = |name: &str| Command::Grant { name: name.to_owned(), amount: credits("1") };
    assert_eq!(scene.run(grant("Acme")).unwrap_err(), Refusal::LooksTaken);
    assert_eq!(scene.run(grant("HUB:issuance")).unwrap_err(), Refusal::LooksTaken);
    let open = Command::OpenAccount { name: "aCme".to_owned() };
    assert_eq!(scene.run(open).unwrap_err(), Refusal::LooksTaken);
    scene.run(grant("acme")).unwrap();
    let order = scene.payment("acme", "ACME", "1");
    let order = Pay { open_payee: true, ..order };
    assert_eq!(scene.pay(order).unwrap_err(), Refusal::LooksTaken);
    assert_eq!(scene.purse("acme").0, "1.00");
    assert_eq!(scene.world.owners().count(), 2, "acme and the issue account");
    // Exactly the same name still works.
    scene.worker("bob", "acme", &[]);
    scene.worker("ada", "acme", &[]);
}

#[test]
fn an_id_that_looks_like_anothers_is_taken_and_ones_own_may_look_alike() {
    let mut scene = Scene::new(careless());
    let ada = scene.worker("Ada", "acme", &[]);
    refuses(&mut scene, enrolment("ada", "globex", &[]), Refusal::LooksTaken);
    assert!(scene.enrol(enrolment("ADA", "acme", &[])).is_ok());
    // The id identifies; a confusable id finds no agent.
    assert_eq!(scene.world.agent_named(HOME, "aDa"), None);
    scene.remove(ada);
    refuses(&mut scene, enrolment("aDA", "globex", &[]), Refusal::LooksTaken);
    assert_eq!(scene.enrol(enrolment("Ada", "acme", &[])), Ok(ada));
    let elsewhere = Enrol { home: AWAY, ..enrolment("ada", "globex", &[]) };
    assert!(scene.enrol(elsewhere).is_ok(), "another protocol has its own ids");
}

#[test]
fn names_that_were_there_before_it_was_asked_stay_and_are_not_joined_by_more() {
    let mut scene = Scene::default();
    let ada = scene.worker("ada", "acme", &[]);
    let shouting = scene.worker("ADA", "ACME", &[]);
    scene.world = scene.store.rebuilt(careless());
    assert_eq!(scene.enrol(enrolment("ada", "acme", &[])), Ok(ada));
    assert_eq!(scene.enrol(enrolment("ADA", "ACME", &[])), Ok(shouting));
    scene.grant("ACME", "1.00");
    assert_eq!((scene.purse("ACME").0, scene.purse("acme").0), ("1.00".into(), "0.00".into()));
    refuses(&mut scene, enrolment("eve", "Acme", &[]), Refusal::LooksTaken);
    refuses(&mut scene, enrolment("Ada", "globex", &[]), Refusal::LooksTaken);
    assert_eq!(scene.world.owner_named(Owner::ISSUANCE_NAME), Some(Owner::ISSUANCE));
}
