//! Registering, returning and updating: permissions, names, and jobs that wait for the agent.

use super::by;
use crate::agent::Liveness;
use crate::agent::presence::Availability;
use crate::agent::status::AgentStatusUpdate;
use crate::command::{Actor, Command, OpenJob, ProfileUpdate, Registration, RequestTarget};
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Policy, Selection, State};
use crate::job::{Queueing, RequesterOptions};
use crate::refusal::Refusal;
use crate::testkit::{AWAY, HOME, TestHub, registration, skill};
use crate::time::Millis;

#[test]
fn an_alias_of_an_agent_of_another_protocol_cannot_be_registered() {
    for native in ["pat", "pat-of-away"] {
        let mut scene = TestHub::default();
        let aliases = vec![(HOME, "pat".to_owned())];
        let order = Registration { home: AWAY, aliases, ..registration(native, "pat", &[]) };
        let pat = scene.register(order).unwrap();
        for actor in [Actor::OpenRegistration, Actor::Operator, Actor::Agent(pat)] {
            let taken = scene.register(by(actor, registration("pat", "pat", &[])));
            assert_eq!(taken, Err(Refusal::IdTaken), "{native}, {actor:?}");
        }
    }
}

#[test]
fn an_unknown_sender_acts_for_no_agent() {
    let mut scene = TestHub::default();
    scene.register_worker("ada", "acme", &[]);
    let order = by(Actor::Agent(AgentId(999)), registration("eve", "acme", &[]));
    assert_eq!(scene.register(order), Err(Refusal::OwnerTaken));
}

#[test]
fn the_name_an_agent_came_with_is_kept_however_it_is_called_later() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[]);
    for (name, first) in [("ada", "ada"), ("Ada the Great", "ada"), ("ada", "ada")] {
        scene
            .register(Registration { name: name.to_owned(), ..registration("ada", "acme", &[]) })
            .unwrap();
        assert_eq!(
            (scene.agent(ada).name.as_str(), scene.agent(ada).original_name()),
            (name, first)
        );
    }
    let pat = scene.introduce("pat", &[]);
    for name in ["Pat", "Patricia"] {
        scene.update_profile(
            "pat",
            ProfileUpdate { name: Some(name.to_owned()), ..ProfileUpdate::default() },
        );
        assert_eq!(
            (scene.agent(pat).name.as_str(), scene.agent(pat).original_name()),
            (name, "pat")
        );
    }
}

#[test]
fn a_waiting_job_is_given_to_a_capable_agent_that_registers_with_its_first_order() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "100");
    let policy = Policy {
        queueing: Queueing { when_unmatched: true, ..Queueing::default() },
        ..Policy::default()
    };
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { policy, ..order }).id;
    let bob = scene.register_worker("bob", "bob", &[("dig", "0")]);
    let first = scene.job_request("dig", RequestTarget::Agent(bob), None);
    let mut order = scene.sign_order("pat", "first", Command::RequestJob(Box::new(first)));
    if let Some(new_agent) = &mut order.signature.registration {
        new_agent.skills = vec![skill("sum", "1")];
    }
    let pat = scene.run_signed(order).unwrap().by;
    assert_eq!(scene.job(job).worker(), Some(pat));
}

/// A signer that is online only after activity.
fn visitor(scene: &mut TestHub) -> AgentId {
    let order = Registration { home: AWAY, ..registration("pat", "pat", &[("sum", "1")]) };
    scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap()
}

#[test]
fn whatever_a_signer_says_about_itself_is_a_sign_of_life() {
    let mut scene = TestHub::default();
    let pat = visitor(&mut scene);
    scene.advance(Millis::hours(1));
    assert!(!scene.is_online(pat));
    scene.update_profile("pat", ProfileUpdate::default());
    assert!(scene.is_online(pat));
}

#[test]
fn who_is_away_and_says_something_else_is_still_away() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "100");
    let pat = visitor(&mut scene);
    let until = Some(scene.now.plus(Millis::seconds(60)));
    let told = AgentStatusUpdate { availability: Availability::Maintenance, until, words: None };
    scene.run(Command::ReportStatus { agent: pat, status: told }).unwrap();
    let policy = Policy {
        requester: RequesterOptions { answered_at_once: true, ..RequesterOptions::default() },
        ..Policy::default()
    };
    let order = scene.job_order(client, "sum", "5");
    let job = scene.open_job(OpenJob { selection: Selection::Direct(pat), policy, ..order }).id;
    let deferred = |scene: &TestHub| {
        let events = scene.store.rows.history_lines.iter().flat_map(|line| &line.events);
        events.filter(|event| matches!(event, Event::JobDeferred { .. })).count()
    };
    scene.update_profile("pat", ProfileUpdate::default());
    assert!(matches!(scene.state(job), State::Deferred { .. }));
    assert_eq!(deferred(&scene), 1, "nothing was tried again");
}
