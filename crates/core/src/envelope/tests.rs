//! Signed orders are executed once, and a signer is registered from its first accepted order on.

use crate::agent::presence::Availability;
use crate::alias::{Digest, Protocol};
use crate::command::{Actor, Command, ProfileUpdate, Registration, RequestTarget};
use crate::id::AgentId;
use crate::job::State;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::testkit::signed_orders::{
    accept, envelope_text, failure, offer, result, signer_registration,
};
use crate::testkit::{AWAY, HOME, TestHub, credits, message, registration};
use crate::world::Rules;

fn welcoming() -> TestHub {
    TestHub::new(Rules { welcome_grant: credits("3"), ..Rules::default() })
}

#[test]
fn the_first_order_enrols_its_signer_and_welcomes_its_owner_once() {
    let mut scene = welcoming();
    let order = scene.sign_order("ann", "1", Command::RecordOnly);
    let heard = scene.run_signed(order).unwrap();
    assert_eq!((heard.job, heard.state, heard.repeated), (None, None, false));
    assert_eq!(scene.world.agent_by_alias(AWAY, "ann"), Some(heard.by));
    assert!(scene.is_online(heard.by));
    assert_eq!(scene.balance_text("ann").0, "3.00");
    let order = scene.sign_order("ann", "2", Command::RecordOnly);
    assert_eq!(scene.run_signed(order).unwrap().by, heard.by);
    assert_eq!(scene.balance_text("ann").0, "3.00");
}

#[test]
fn an_owner_that_was_granted_something_before_is_taken_over() {
    let mut scene = welcoming();
    scene.grant("ann", "4");
    assert_eq!(scene.balance_text("ann").0, "7.00", "the first grant adds the welcome grant");
    let ann = scene.introduce("ann", &[]);
    assert_eq!(
        (scene.agent(ann).owner, scene.balance_text("ann").0),
        (scene.owner("ann").id, "7.00".to_owned())
    );
    // An owner that was only paid so far gets the welcome grant when it registers.
    let mut pay = scene.payment("ann", "bea", "1");
    pay.open_payee = true;
    scene.pay(pay).unwrap();
    assert_eq!(scene.balance_text("bea").0, "1.00");
    scene.introduce("bea", &[]);
    assert_eq!(scene.balance_text("bea").0, "4.00");
}

#[test]
fn another_callers_owner_is_not_taken_over() {
    let mut scene = TestHub::default();
    scene.register_worker("ann", "ann", &[]);
    let mut order = scene.sign_order("key", "1", Command::RecordOnly);
    let stranger = Registration {
        actor: Actor::Anonymous,
        owner: "ann".to_owned(),
        ..signer_registration("key")
    };
    order.signature.registration = Some(Box::new(stranger));
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::OwnerTaken);
}

#[test]
fn a_refused_order_leaves_nothing_behind_and_may_be_given_again() {
    let mut scene = welcoming();
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let order = scene.job_request("sum", RequestTarget::Agent(pat), Some("6"));
    let order = scene.sign_order("ann", "r", Command::RequestJob(Box::new(order)));
    let before = (scene.world.next, scene.world.agents().count(), scene.world.owners().count());
    assert_eq!(scene.run_signed(order.clone()).unwrap_err(), Refusal::TooFewCredits);
    for (id, signed_order) in [
        ("1", offer("r", "1")),
        ("2", accept("r")),
        ("3", result("r")),
        ("4", failure("r")),
        ("5", Command::Forward { to: AgentId(99) }),
    ] {
        let order = scene.sign_order("ann", id, signed_order);
        assert!(scene.run_signed(order).is_err(), "{id}");
    }
    let after = (scene.world.next, scene.world.agents().count(), scene.world.owners().count());
    assert_eq!(before, after);
    assert_eq!(scene.world.agent_by_alias(AWAY, "ann"), None);
    assert_eq!((scene.world.owner_by_name("ann"), scene.notices_to(pat)), (None, vec![]));
    scene.grant("ann", "5");
    let heard = scene.run_signed(order).unwrap();
    assert_eq!((heard.state, heard.repeated), (Some(State::Open), false));
    assert_eq!(scene.balance_text("ann"), ("3.00".to_owned(), "5.00".to_owned()));
}

#[test]
fn what_is_said_again_is_answered_as_the_first_time_and_has_no_effect() {
    let mut scene = TestHub::default();
    scene.grant("ann", "10");
    let ann = scene.introduce("ann", &[]);
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let order = scene.job_request("sum", RequestTarget::Agent(pat), None);
    let request = scene.sign_order("ann", "r", Command::RequestJob(Box::new(order)));
    let price = scene.sign_order("pat", "o", offer("r", "4"));
    let taken = scene.sign_order("ann", "a", accept("o"));
    let done = scene.sign_order("pat", "x", result("r"));
    let all = [request, price, taken, done];
    let states = [State::Open, State::Negotiating, State::Assigned, State::Completed];
    for (at, order) in all.iter().enumerate() {
        let first = scene.run_signed(order.clone()).unwrap();
        assert_eq!((first.state, first.repeated), (Some(states[at]), false));
        // Repeats every order so far; each returns the state it led to.
        for (order, state) in all[..=at].iter().zip(states) {
            let again = scene.run_signed(order.clone()).unwrap();
            assert_eq!((again.state, again.repeated), (Some(state), true));
            assert_eq!(again.job, first.job);
        }
    }
    assert_eq!((scene.notices_to(ann).len(), scene.notices_to(pat).len()), (2, 2));
    assert_eq!(
        (scene.balance_text("ann").0, scene.balance_text("pat").0),
        ("6.00".to_owned(), "4.00".to_owned())
    );
    for mut other in all {
        other.signature.content = Digest::of(&[b"other"]);
        assert_eq!(scene.run_signed(other).unwrap_err(), Refusal::SameIdOtherContent);
    }
}

#[test]
fn one_id_is_good_for_one_order_of_one_signer() {
    let mut scene = TestHub::default();
    let [ann, bea] = ["ann", "bea"].map(|name| scene.introduce(name, &[]));
    let order = scene.sign_order("ann", "1", Command::Forward { to: bea });
    scene.run_signed(order).unwrap();
    let order = scene.sign_order("ann", "1", Command::RecordOnly);
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::SameIdOtherContent);
    // From another signer, or in another protocol, it is another id.
    let order = scene.sign_order("bea", "1", Command::Forward { to: ann });
    assert!(!scene.run_signed(order).unwrap().repeated);
    let third = Protocol::new("third");
    let elsewhere =
        Registration { home: third, owner: "else".to_owned(), ..signer_registration("ann") };
    let mut order = scene.sign_order("ann", "1", Command::RecordOnly);
    order.signature.home = third;
    order.signature.registration = Some(Box::new(elsewhere));
    let other = scene.run_signed(order).unwrap();
    assert!(!other.repeated && other.by != ann);
}

#[test]
fn an_alias_given_by_the_hub_cannot_sign() {
    let mut scene = TestHub::default();
    let mut order = registration("bob", "bob", &[]);
    order.aliases = vec![(AWAY, "bobs-key".to_owned())];
    scene.register(order).unwrap();
    let order = scene.sign_order("bobs-key", "1", Command::RecordOnly);
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::NotAuthenticated);
    let mut order = scene.sign_order("unknown", "1", Command::RecordOnly);
    order.signature.registration = None;
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::NotAuthenticated);
}

#[test]
fn who_was_taken_off_the_lists_comes_back_by_introducing_itself() {
    let mut scene = welcoming();
    let pat = scene.introduce("pat", &[("sum", "5")]);
    let order = scene.sign_order("pat", "1", Command::RecordOnly);
    scene.run_signed(order.clone()).unwrap();
    scene.remove(pat);
    for (id, signed_order) in
        [("2", Command::RecordOnly), ("3", result("r")), ("4", Command::Forward { to: pat })]
    {
        let order = scene.sign_order("pat", id, signed_order);
        assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::NotAuthenticated, "{id}");
    }
    assert!(scene.run_signed(order).unwrap().repeated, "omitted fields keep their values");
    assert!(!scene.agent(pat).active);
    assert_eq!(scene.update_profile("pat", ProfileUpdate::default()), pat);
    assert!(scene.agent(pat).active && scene.is_online(pat));
    assert_eq!(scene.agent(pat).skills.len(), 1, "as it was");
    assert_eq!(scene.balance_text("pat").0, "3.00", "and no second welcome grant");
}

#[test]
fn an_introduction_changes_what_it_names_and_nothing_else() {
    let mut scene = TestHub::default();
    let pat = scene.introduce("pat", &[("sum", "5"), ("sum", "6")]);
    assert_eq!(scene.agent(pat).skills.len(), 1, "the first price named counts");
    assert_eq!(scene.agent(pat).listed_price("sum"), Some(credits("5")));
    scene.update_profile(
        "pat",
        ProfileUpdate { name: Some("Pat".to_owned()), ..ProfileUpdate::default() },
    );
    let agent = scene.agent(pat).clone();
    assert_eq!((agent.name.as_str(), agent.skills.len(), agent.endpoint), ("Pat", 1, None));
    let endpoint = Some("https://pat.example".to_owned());
    scene.update_profile(
        "pat",
        ProfileUpdate { endpoint: endpoint.clone(), ..ProfileUpdate::default() },
    );
    assert_eq!(scene.agent(pat).delivery_url(), endpoint);
    scene.update_profile(
        "pat",
        ProfileUpdate { skills: Some(Vec::new()), ..ProfileUpdate::default() },
    );
    assert_eq!(scene.agent(pat).skills, []);
    assert_eq!(scene.agent(pat).native_id, "pat");
    assert_eq!(scene.notices_to(pat), []);
}

#[test]
fn a_stance_lasts_until_another_is_taken() {
    let mut scene = TestHub::default();
    let pat = scene.introduce("pat", &[]);
    for (availability, there) in [
        (Availability::Offline, false),
        (Availability::Busy, true),
        (Availability::Maintenance, false),
        (Availability::Error, false),
        (Availability::Idle, true),
    ] {
        scene.update_profile(
            "pat",
            ProfileUpdate { availability: Some(availability), ..ProfileUpdate::default() },
        );
        scene.update_profile("pat", ProfileUpdate::default());
        assert_eq!(
            (scene.is_online(pat), scene.agent_state(pat).presence.availability),
            (there, availability)
        );
    }
}

#[test]
fn a_message_is_passed_on_as_it_is() {
    let mut scene = TestHub::new(Rules { inbox_messages_max: 2, ..Rules::default() });
    let [ann, pat] = ["ann", "pat"].map(|name| scene.introduce(name, &[]));
    let bob = scene.register_worker("bob", "bob", &[]);
    for (to, id) in [(pat, "1"), (bob, "2")] {
        let order = scene.sign_order("ann", id, Command::Forward { to });
        assert_eq!(scene.run_signed(order).unwrap().job, None);
        let told = scene.notices_to(to);
        let [NoticeKind::Message { from, protocol: home, body, .. }] = &told[..] else {
            panic!("{told:?}")
        };
        assert_eq!((*from, *home, body), (Some(ann), AWAY, &envelope_text("ann", id)));
    }
    scene.run(Command::SetBlocked { agent: bob, other: ann, blocked: true }).unwrap();
    let order = scene.sign_order("ann", "3", Command::Forward { to: bob });
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::Blocked);
    scene.run(Command::SendMessage(Box::new(message(bob, pat, "full")))).unwrap();
    let order = scene.sign_order("ann", "3", Command::Forward { to: pat });
    assert_eq!(scene.run_signed(order.clone()).unwrap_err(), Refusal::InboxFull);
    scene.run(Command::Ack { agent: pat, up_to: 1 }).unwrap();
    assert!(!scene.run_signed(order).unwrap().repeated);
    scene.remove(pat);
    let order = scene.sign_order("ann", "4", Command::Forward { to: pat });
    assert_eq!(scene.run_signed(order).unwrap_err(), Refusal::NoSuchAgent);
}

#[test]
fn names_in_other_protocols_are_given_once_and_never_taken() {
    let mut scene = TestHub::default();
    let [ann, pat] = ["ann", "pat"].map(|name| scene.introduce(name, &[]));
    let name = |agent, name: &str| {
        let aliases = vec![(HOME, name.to_owned())];
        Command::AddAliases { agent, aliases }
    };
    scene.run(name(ann, "ann.key")).unwrap();
    scene.run(name(ann, "another")).unwrap();
    scene.run(name(pat, "ann.key")).unwrap();
    assert_eq!(scene.world.alias_of(ann, HOME), Some("ann.key"));
    assert_eq!(scene.world.agent_by_alias(HOME, "ann.key"), Some(ann));
    assert_eq!(
        (scene.world.agent_by_alias(HOME, "another"), scene.world.alias_of(pat, HOME)),
        (None, None)
    );
    let nobody = scene.run(name(AgentId(99), "x"));
    assert_eq!(nobody.unwrap_err(), Refusal::NoSuchAgent);
}
