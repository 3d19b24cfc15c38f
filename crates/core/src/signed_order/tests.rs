//! Signed orders are executed once, and a signer is registered from its first accepted order on.

use super::{Deed, Profile, Signed, Whom};
use crate::agent::presence::Stance;
use crate::alias::{Digest, Protocol};
use crate::command::{Actor, Command, Enrol};
use crate::id::AgentId;
use crate::job::State;
use crate::notice::News;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{accept, failure, newcomer, offer, result, words};
use crate::testkit::{AWAY, HOME, Scene, credits, enrolment, said};
use crate::world::Rules;

fn welcoming() -> Scene {
    Scene::new(Rules { welcome_grant: credits("3"), ..Rules::default() })
}

#[test]
fn the_first_order_enrols_its_signer_and_welcomes_its_owner_once() {
    let mut scene = welcoming();
    let order = scene.signed("ann", "1", Deed::Nothing);
    let heard = scene.hear(order).unwrap();
    assert_eq!((heard.job, heard.state, heard.repeated), (None, None, false));
    assert_eq!(scene.world.agent_named(AWAY, "ann"), Some(heard.by));
    assert!(scene.online(heard.by));
    assert_eq!(scene.purse("ann").0, "3.00");
    let order = scene.signed("ann", "2", Deed::Nothing);
    assert_eq!(scene.hear(order).unwrap().by, heard.by);
    assert_eq!(scene.purse("ann").0, "3.00");
}

#[test]
fn an_owner_that_was_granted_something_before_is_taken_over() {
    let mut scene = welcoming();
    scene.grant("ann", "4");
    assert_eq!(scene.purse("ann").0, "7.00", "the first grant adds the welcome grant");
    let ann = scene.hello("ann", &[]);
    assert_eq!(
        (scene.agent(ann).owner, scene.purse("ann").0),
        (scene.owner("ann").id, "7.00".to_owned())
    );
    // An owner that was only paid so far gets the welcome grant when it registers.
    let mut pay = scene.payment("ann", "bea", "1");
    pay.open_payee = true;
    scene.pay(pay).unwrap();
    assert_eq!(scene.purse("bea").0, "1.00");
    scene.hello("bea", &[]);
    assert_eq!(scene.purse("bea").0, "4.00");
}

#[test]
fn somebody_elses_owner_is_not_taken_over() {
    let mut scene = Scene::default();
    scene.worker("ann", "ann", &[]);
    let mut order = scene.signed("key", "1", Deed::Nothing);
    let stranger = Enrol { actor: Actor::Nobody, owner: "ann".to_owned(), ..newcomer("key") };
    order.newcomer = Some(Box::new(stranger));
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::OwnerTaken);
}

#[test]
fn a_refused_order_leaves_nothing_behind_and_may_be_given_again() {
    let mut scene = welcoming();
    let pat = scene.hello("pat", &[("sum", "5")]);
    let order = scene.question("sum", Whom::Agent(pat), Some("6"));
    let order = scene.signed("ann", "r", Deed::Ask(Box::new(order)));
    let before = (scene.world.next, scene.world.agents().count(), scene.world.owners().count());
    assert_eq!(scene.hear(order.clone()).unwrap_err(), Refusal::TooFewCredits);
    for (id, deed) in [
        ("1", offer("r", "1")),
        ("2", accept("r")),
        ("3", result("r")),
        ("4", failure("r")),
        ("5", Deed::Write { to: AgentId(99) }),
    ] {
        let order = scene.signed("ann", id, deed);
        assert!(scene.hear(order).is_err(), "{id}");
    }
    let after = (scene.world.next, scene.world.agents().count(), scene.world.owners().count());
    assert_eq!(before, after);
    assert_eq!(scene.world.agent_named(AWAY, "ann"), None);
    assert_eq!((scene.world.owner_named("ann"), scene.told(pat)), (None, vec![]));
    scene.grant("ann", "5");
    let heard = scene.hear(order).unwrap();
    assert_eq!((heard.state, heard.repeated), (Some(State::Open), false));
    assert_eq!(scene.purse("ann"), ("3.00".to_owned(), "5.00".to_owned()));
}

#[test]
fn what_is_said_again_is_answered_as_the_first_time_and_has_no_effect() {
    let mut scene = Scene::default();
    scene.grant("ann", "10");
    let ann = scene.hello("ann", &[]);
    let pat = scene.hello("pat", &[("sum", "5")]);
    let order = scene.question("sum", Whom::Agent(pat), None);
    let request = scene.signed("ann", "r", Deed::Ask(Box::new(order)));
    let price = scene.signed("pat", "o", offer("r", "4"));
    let taken = scene.signed("ann", "a", accept("o"));
    let done = scene.signed("pat", "x", result("r"));
    let all = [request, price, taken, done];
    let states = [State::Open, State::Negotiating, State::Assigned, State::Completed];
    for (at, order) in all.iter().enumerate() {
        let first = scene.hear(order.clone()).unwrap();
        assert_eq!((first.state, first.repeated), (Some(states[at]), false));
        // Repeats every order so far; each returns the state it led to.
        for (order, state) in all[..=at].iter().zip(states) {
            let again = scene.hear(order.clone()).unwrap();
            assert_eq!((again.state, again.repeated), (Some(state), true));
            assert_eq!(again.job, first.job);
        }
    }
    assert_eq!((scene.told(ann).len(), scene.told(pat).len()), (2, 2));
    assert_eq!(
        (scene.purse("ann").0, scene.purse("pat").0),
        ("6.00".to_owned(), "4.00".to_owned())
    );
    for order in all {
        let other = Signed { content: Digest::of(&[b"other"]), ..order };
        assert_eq!(scene.hear(other).unwrap_err(), Refusal::SameIdOtherContent);
    }
}

#[test]
fn one_id_is_good_for_one_order_of_one_signer() {
    let mut scene = Scene::default();
    let [ann, bea] = ["ann", "bea"].map(|name| scene.hello(name, &[]));
    let order = scene.signed("ann", "1", Deed::Write { to: bea });
    scene.hear(order).unwrap();
    let order = scene.signed("ann", "1", Deed::Nothing);
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::SameIdOtherContent);
    // From another signer, or in another protocol, it is another id.
    let order = scene.signed("bea", "1", Deed::Write { to: ann });
    assert!(!scene.hear(order).unwrap().repeated);
    let third = Protocol::new("third");
    let elsewhere = Enrol { home: third, owner: "else".to_owned(), ..newcomer("ann") };
    let order = scene.signed("ann", "1", Deed::Nothing);
    let order = Signed { home: third, newcomer: Some(Box::new(elsewhere)), ..order };
    let other = scene.hear(order).unwrap();
    assert!(!other.repeated && other.by != ann);
}

#[test]
fn a_name_the_hub_gave_to_somebody_else_signs_nothing() {
    let mut scene = Scene::default();
    let mut order = enrolment("bob", "bob", &[]);
    order.aliases = vec![(AWAY, "bobs-key".to_owned())];
    scene.enrol(order).unwrap();
    let order = scene.signed("bobs-key", "1", Deed::Nothing);
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::NotAuthenticated);
    let order = Signed { newcomer: None, ..scene.signed("unknown", "1", Deed::Nothing) };
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::NotAuthenticated);
}

#[test]
fn who_was_taken_off_the_lists_comes_back_by_introducing_itself() {
    let mut scene = welcoming();
    let pat = scene.hello("pat", &[("sum", "5")]);
    let order = scene.signed("pat", "1", Deed::Nothing);
    scene.hear(order.clone()).unwrap();
    scene.remove(pat);
    for (id, deed) in [("2", Deed::Nothing), ("3", result("r")), ("4", Deed::Write { to: pat })] {
        let order = scene.signed("pat", id, deed);
        assert_eq!(scene.hear(order).unwrap_err(), Refusal::NotAuthenticated, "{id}");
    }
    assert!(scene.hear(order).unwrap().repeated, "omitted fields keep their values");
    assert!(!scene.agent(pat).active);
    assert_eq!(scene.amend("pat", Profile::default()), pat);
    assert!(scene.agent(pat).active && scene.online(pat));
    assert_eq!(scene.agent(pat).skills.len(), 1, "as it was");
    assert_eq!(scene.purse("pat").0, "3.00", "and no second welcome grant");
}

#[test]
fn an_introduction_changes_what_it_names_and_nothing_else() {
    let mut scene = Scene::default();
    let pat = scene.hello("pat", &[("sum", "5"), ("sum", "6")]);
    assert_eq!(scene.agent(pat).skills.len(), 1, "the first price named counts");
    assert_eq!(scene.agent(pat).listed_price("sum"), Some(credits("5")));
    scene.amend("pat", Profile { name: Some("Pat".to_owned()), ..Profile::default() });
    let agent = scene.agent(pat).clone();
    assert_eq!((agent.name.as_str(), agent.skills.len(), agent.endpoint), ("Pat", 1, None));
    let endpoint = Some("https://pat.example".to_owned());
    scene.amend("pat", Profile { endpoint: endpoint.clone(), ..Profile::default() });
    assert_eq!(scene.agent(pat).push_url(), endpoint);
    scene.amend("pat", Profile { skills: Some(Vec::new()), ..Profile::default() });
    assert_eq!(scene.agent(pat).skills, []);
    assert_eq!(scene.agent(pat).native, "pat");
    assert_eq!(scene.told(pat), []);
}

#[test]
fn a_stance_lasts_until_another_is_taken() {
    let mut scene = Scene::default();
    let pat = scene.hello("pat", &[]);
    for (stance, there) in [
        (Stance::Offline, false),
        (Stance::Busy, true),
        (Stance::Maintenance, false),
        (Stance::Error, false),
        (Stance::Idle, true),
    ] {
        scene.amend("pat", Profile { stance: Some(stance), ..Profile::default() });
        scene.amend("pat", Profile::default());
        assert_eq!((scene.online(pat), scene.desk(pat).presence.stance), (there, stance));
    }
}

#[test]
fn a_message_is_passed_on_as_it_is() {
    let mut scene = Scene::new(Rules { inbox_messages_max: 2, ..Rules::default() });
    let [ann, pat] = ["ann", "pat"].map(|name| scene.hello(name, &[]));
    let bob = scene.worker("bob", "bob", &[]);
    for (to, id) in [(pat, "1"), (bob, "2")] {
        let order = scene.signed("ann", id, Deed::Write { to });
        assert_eq!(scene.hear(order).unwrap().job, None);
        let told = scene.told(to);
        let [News::Message { from, words: home, body, .. }] = &told[..] else { panic!("{told:?}") };
        assert_eq!((*from, *home, body), (Some(ann), AWAY, &words("ann", id)));
    }
    scene.run(Command::Block { agent: bob, whom: ann, blocked: true }).unwrap();
    let order = scene.signed("ann", "3", Deed::Write { to: bob });
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::Blocked);
    scene.run(Command::Send(Box::new(said(bob, pat, "full")))).unwrap();
    let order = scene.signed("ann", "3", Deed::Write { to: pat });
    assert_eq!(scene.hear(order.clone()).unwrap_err(), Refusal::InboxFull);
    scene.run(Command::Ack { agent: pat, up_to: 1 }).unwrap();
    assert!(!scene.hear(order).unwrap().repeated);
    scene.remove(pat);
    let order = scene.signed("ann", "4", Deed::Write { to: pat });
    assert_eq!(scene.hear(order).unwrap_err(), Refusal::NoSuchAgent);
}

#[test]
fn names_in_other_protocols_are_given_once_and_never_taken() {
    let mut scene = Scene::default();
    let [ann, pat] = ["ann", "pat"].map(|name| scene.hello(name, &[]));
    let name = |agent, name: &str| {
        let aliases = vec![(HOME, name.to_owned())];
        Command::Name { agent, aliases }
    };
    scene.run(name(ann, "ann.key")).unwrap();
    scene.run(name(ann, "another")).unwrap();
    scene.run(name(pat, "ann.key")).unwrap();
    assert_eq!(scene.world.name_of(ann, HOME), Some("ann.key"));
    assert_eq!(scene.world.agent_named(HOME, "ann.key"), Some(ann));
    assert_eq!(
        (scene.world.agent_named(HOME, "another"), scene.world.name_of(pat, HOME)),
        (None, None)
    );
    let nobody = scene.run(name(AgentId(99), "x"));
    assert_eq!(nobody.unwrap_err(), Refusal::NoSuchAgent);
}
