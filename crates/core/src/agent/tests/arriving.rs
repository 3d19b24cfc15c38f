//! Registering, returning and updating: permissions, names, and jobs that wait for the agent.

use super::by;
use crate::agent::Liveness;
use crate::agent::presence::Stance;
use crate::agent::status::Condition;
use crate::command::{Actor, Command, Enrol, OpenJob};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Policy, Selection, State};
use crate::refusal::Refusal;
use crate::signed_order::{Deed, Profile, Whom};
use crate::testkit::{AWAY, HOME, Scene, enrolment, skill};
use crate::time::Millis;

#[test]
fn a_name_that_somebody_of_another_protocol_goes_by_is_nobodys_to_register() {
    for native in ["pat", "pat-of-away"] {
        let mut scene = Scene::default();
        let aliases = vec![(HOME, "pat".to_owned())];
        let order = Enrol { home: AWAY, aliases, ..enrolment(native, "pat", &[]) };
        let pat = scene.enrol(order).unwrap();
        for actor in [Actor::Open, Actor::Operator, Actor::Agent(pat)] {
            let taken = scene.enrol(by(actor, enrolment("pat", "pat", &[])));
            assert_eq!(taken, Err(Refusal::IdTaken), "{native}, {actor:?}");
        }
    }
}

#[test]
fn somebody_unknown_speaks_for_nobody() {
    let mut scene = Scene::default();
    scene.worker("ada", "acme", &[]);
    let order = by(Actor::Agent(AgentId(999)), enrolment("eve", "acme", &[]));
    assert_eq!(scene.enrol(order), Err(Refusal::OwnerTaken));
}

#[test]
fn the_name_an_agent_came_with_is_kept_however_it_is_called_later() {
    let mut scene = Scene::default();
    let ada = scene.worker("ada", "acme", &[]);
    for (name, first) in [("ada", "ada"), ("Ada the Great", "ada"), ("ada", "ada")] {
        scene.enrol(Enrol { name: name.to_owned(), ..enrolment("ada", "acme", &[]) }).unwrap();
        assert_eq!((scene.agent(ada).name.as_str(), scene.agent(ada).first_name()), (name, first));
    }
    let pat = scene.hello("pat", &[]);
    for name in ["Pat", "Patricia"] {
        scene.amend("pat", Profile { name: Some(name.to_owned()), ..Profile::default() });
        assert_eq!((scene.agent(pat).name.as_str(), scene.agent(pat).first_name()), (name, "pat"));
    }
}

#[test]
fn what_waits_is_given_to_whoever_comes_with_its_first_order_and_can_do_it() {
    let mut scene = Scene::default();
    let client = scene.client("client", "rich", "100");
    let policy = Policy { queue_unmatched: true, ..Policy::default() };
    let order = scene.ask(client, "sum", "5");
    let job = scene.open(OpenJob { policy, ..order }).id;
    let bob = scene.worker("bob", "bob", &[("dig", "0")]);
    let first = scene.question("dig", Whom::Agent(bob), None);
    let mut order = scene.signed("pat", "first", Deed::Ask(Box::new(first)));
    if let Some(newcomer) = &mut order.newcomer {
        newcomer.skills = vec![skill("sum", "1")];
    }
    let pat = scene.hear(order).unwrap().by;
    assert_eq!(scene.job(job).worker(), Some(pat));
}

/// A signer that is online only after activity.
fn visitor(scene: &mut Scene) -> AgentId {
    let order = Enrol { home: AWAY, ..enrolment("pat", "pat", &[("sum", "1")]) };
    scene.enrol(Enrol { liveness: Liveness::Polls, ..order }).unwrap()
}

#[test]
fn whatever_a_signer_says_about_itself_is_a_sign_of_life() {
    let mut scene = Scene::default();
    let pat = visitor(&mut scene);
    scene.wait(Millis::hours(1));
    assert!(!scene.online(pat));
    scene.amend("pat", Profile::default());
    assert!(scene.online(pat));
}

#[test]
fn who_is_away_and_says_something_else_is_still_away() {
    let mut scene = Scene::default();
    let client = scene.client("client", "rich", "100");
    let pat = visitor(&mut scene);
    let until = Some(scene.now.plus(Millis::seconds(60)));
    let told = Condition { stance: Stance::Maintenance, until, words: None };
    scene.run(Command::Stand { agent: pat, told }).unwrap();
    let policy = Policy { presence_first: true, ..Policy::default() };
    let order = scene.ask(client, "sum", "5");
    let job = scene.open(OpenJob { selection: Selection::Direct(pat), policy, ..order }).id;
    let deferred = |scene: &Scene| {
        let events = scene.store.rows.lines.iter().flat_map(|line| &line.events);
        events.filter(|event| matches!(event, Event::JobDeferred { .. })).count()
    };
    scene.amend("pat", Profile::default());
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    assert_eq!(deferred(&scene), 1, "nothing was tried again");
}
