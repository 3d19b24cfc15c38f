//! Registration, keys and presence.

mod arriving;
mod confusables;
mod probation;
mod saying;
mod suspension;

use super::key::{Holder, KeyHash};
use super::{Agent, Liveness};
use crate::answer::Answer;
use crate::command::{Actor, Command, Registration};
use crate::id::AgentId;
use crate::money::Credits;
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::reputation::Score;
use crate::testkit::{
    AWAY, HOME, TestHub, agent_in, credits, registration, registration_with_endpoint, skill,
};
use crate::time::Millis;
use crate::world::Rules;
use crate::world::discover::DiscoveryQuery;

const FIRST_KEY: KeyHash = [1; 32];
const NEXT_KEY: KeyHash = [2; 32];
const TTL: Millis = Millis::seconds(90);

fn by(actor: Actor, order: Registration) -> Registration {
    Registration { actor, ..order }
}

fn finds(scene: &TestHub, skill: &str) -> Vec<AgentId> {
    let wanted = DiscoveryQuery {
        skill,
        min_score: Score::MIN,
        max_price: None,
        min_jobs: 0,
        limit: 50,
        offset: 0,
    };
    let found = scene.world.discover(&wanted, scene.now);
    assert_eq!(found.total, found.agents.len());
    found.agents.into_iter().map(|one| one.agent).collect()
}

/// A refused registration changes nothing about existing agents.
fn refuses(scene: &mut TestHub, order: Registration, why: Refusal) {
    let before = scene.world.next;
    let agents: Vec<Agent> = scene.world.agents().map(|agent| Agent::clone(agent)).collect();
    assert_eq!(scene.register(order), Err(why));
    assert_eq!(scene.world.next, before);
    assert!(agents.iter().all(|agent| scene.agent(agent.id) == agent));
}

#[test]
fn a_key_that_stopped_working_is_dropped_and_one_that_works_stays() {
    let mut scene = TestHub::default();
    let ada = scene.register(registration_with_endpoint("ada", "acme", &[])).unwrap();
    let holder = Holder::Agent(ada);
    let rotate = |scene: &mut TestHub, n: u8| {
        let order =
            Command::IssueKey { holder, hash: [n; 32], retire_others: true, by_operator: false };
        scene.run(order).unwrap();
    };
    // What the lane does after every batch.
    let tidy = |scene: &mut TestHub| {
        let stale = scene.world.expired_rows(scene.now, usize::MAX);
        scene.world.remove_expired(&stale);
        stale.keys.len()
    };
    rotate(&mut scene, 1);
    for n in 2..100 {
        rotate(&mut scene, n);
        assert_eq!(tidy(&mut scene), 0, "the previous key stays valid for a while");
        assert_eq!(scene.world.keys_of(ada).count(), 2);
        scene.advance_without_timers(Millis::minutes(10));
        assert_eq!(tidy(&mut scene), 1);
        assert!(scene.world.key(&[n - 1; 32]).is_none());
    }
    // An unregistered agent may return with its key, so the key stays.
    scene.run(Command::Remove { agent: ada, by_operator: false }).unwrap();
    scene.advance_without_timers(Millis::hours(1_000));
    assert_eq!(tidy(&mut scene), 0);
    assert!(scene.world.key(&[99; 32]).is_some());
    // A key that is issued again after it expired stays valid when its old row is removed.
    scene.run(Command::RevokeKeys { agent: ada, by_operator: false }).unwrap();
    rotate(&mut scene, 99);
    assert_eq!(tidy(&mut scene), 1);
    assert!(scene.world.key(&[99; 32]).is_some_and(|key| key.is_valid(scene.now)));
}

#[test]
fn a_new_agent_starts_at_fifty_and_is_found_at_once() {
    let mut scene = TestHub::default();
    let order = registration("ada", "acme", &[("translate", "0.10"), ("sum", "0.20")]);
    let answer = scene.run(Command::Register(Box::new(order))).unwrap();
    let Answer::Agent { agent, state: agent_state, new, returned } = answer else {
        panic!("{answer:?}")
    };
    assert!(new && !returned);
    assert_eq!(agent_state.standing.score, Score::START);
    assert_eq!(finds(&scene, "translate"), [agent.id]);
    assert_eq!(finds(&scene, "sum"), [agent.id]);
    assert_eq!(scene.balance_text("acme"), ("0.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn registering_again_updates_and_keeps_score_balance_and_seniority() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "10.00");
    let ada = scene.register_worker("ada", "acme", &[("translate", "0.10"), ("sum", "0.20")]);
    let order = scene.job_order(client, "translate", "1.00");
    let job = scene.open_job(order).id;
    scene.succeed(job, "0.10");
    let before = scene.agent(ada).clone();
    scene.advance_without_timers(Millis::hours(1));

    let mut order = by(Actor::Agent(ada), registration("ada", "acme", &[("sum", "0.30")]));
    order.name = "Ada Two".to_owned();
    order.endpoint = Some("https://new.example".to_owned());
    let answer = scene.run(Command::Register(Box::new(order))).unwrap();
    let is_update = matches!(&answer, Answer::Agent { new: false, returned: false, .. });
    assert!(is_update, "{answer:?}");
    assert_eq!(agent_in(answer), ada);

    let after = scene.agent(ada);
    assert_eq!(after.name, "Ada Two");
    assert_eq!(after.registered_at, before.registered_at);
    assert_eq!(after.skills, [skill("sum", "0.30")]);
    assert_eq!(scene.score(ada), Score::from_millionths(51_000_000));
    assert_eq!(scene.balance_text("acme").0, "0.10");
    assert_eq!(finds(&scene, "translate"), [], "a dropped skill is gone from discovery");
    assert_eq!(finds(&scene, "sum"), [ada]);
}

#[test]
fn an_existing_id_is_taken_without_a_key_and_unauthenticated_with_a_wrong_one() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.20")]);
    let mate = scene.register_worker("bob", "acme", &[]);
    let stranger = scene.register_worker("eve", "evil", &[]);
    let order = registration("ada", "acme", &[("sum", "9.00")]);
    refuses(&mut scene, by(Actor::Anonymous, order.clone()), Refusal::IdTaken);
    refuses(&mut scene, by(Actor::Agent(stranger), order.clone()), Refusal::NotAuthenticated);
    let elsewhere = registration("ada", "evil", &[]);
    refuses(&mut scene, by(Actor::Agent(ada), elsewhere), Refusal::IdentityMismatch);
    assert_eq!(
        scene.register(by(Actor::Agent(mate), order.clone())),
        Ok(ada),
        "the key of another agent of the owner is enough"
    );
    assert_eq!(scene.register(by(Actor::Operator, order)), Ok(ada));
}

#[test]
fn an_existing_owner_takes_new_agents_only_by_a_key_of_a_live_one() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[]);
    let stranger = scene.register_worker("eve", "evil", &[]);
    let order = |name: &str, actor| by(actor, registration(name, "acme", &[]));
    refuses(&mut scene, order("new", Actor::Anonymous), Refusal::OwnerTaken);
    refuses(&mut scene, order("new", Actor::Agent(stranger)), Refusal::OwnerTaken);
    assert!(scene.register(order("bob", Actor::Agent(ada))).is_ok());
    assert!(scene.register(order("cleo", Actor::Operator)).is_ok());
    scene.remove(ada);
    refuses(&mut scene, order("dan", Actor::Agent(ada)), Refusal::OwnerTaken);
}

#[test]
fn an_account_granted_before_is_taken_by_the_first_registration_and_by_no_second() {
    let mut scene = TestHub::default();
    scene.grant("acme", "5.00");
    let ada =
        scene.register(by(Actor::Anonymous, registration("ada", "acme", &[]))).expect("its owner");
    assert_eq!(scene.balance_text("acme").0, "5.00");
    refuses(
        &mut scene,
        by(Actor::Anonymous, registration("eve", "acme", &[])),
        Refusal::OwnerTaken,
    );
    // The owner has registered once, even if the agent is removed.
    scene.remove(ada);
    refuses(
        &mut scene,
        by(Actor::Anonymous, registration("eve", "acme", &[])),
        Refusal::OwnerTaken,
    );
}

#[test]
fn no_agent_can_belong_to_the_issue_account() {
    let mut scene = TestHub::default();
    for actor in [Actor::Anonymous, Actor::OpenRegistration, Actor::Operator] {
        let order = by(actor, registration("ada", Owner::ISSUANCE_NAME, &[]));
        refuses(&mut scene, order, Refusal::OwnerTaken);
    }
}

#[test]
fn after_removal_only_the_former_key_brings_an_id_back() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.20")]);
    let mate = scene.register_worker("bob", "acme", &[]);
    scene.remove(ada);
    assert_eq!(finds(&scene, "sum"), []);
    let order = registration("ada", "acme", &[("sum", "0.20")]);
    refuses(&mut scene, by(Actor::Anonymous, order.clone()), Refusal::IdTaken);
    refuses(&mut scene, by(Actor::Agent(mate), order.clone()), Refusal::NotAuthenticated);
    let again = Command::Remove { agent: ada, by_operator: false };
    assert_eq!(scene.run(again).unwrap_err(), Refusal::NotFound);
    let answer = scene.run(Command::Register(Box::new(by(Actor::Agent(ada), order)))).unwrap();
    assert!(matches!(answer, Answer::Agent { new: false, returned: true, .. }), "{answer:?}");
    assert_eq!(agent_in(answer), ada);
    assert_eq!(finds(&scene, "sum"), [ada]);
}

#[test]
fn an_alias_given_by_the_hub_cannot_be_registered() {
    let mut scene = TestHub::default();
    let mut order = registration("ada", "acme", &[]);
    order.aliases = vec![(AWAY, "ada-alias".to_owned())];
    let ada = scene.register(order).unwrap();
    assert_eq!(scene.world.agent_by_alias(AWAY, "ada-alias"), Some(ada));
    assert_eq!(scene.world.alias_of(ada, AWAY), Some("ada-alias"));

    for actor in [Actor::Anonymous, Actor::OpenRegistration, Actor::Agent(ada), Actor::Operator] {
        let order =
            Registration { home: AWAY, ..by(actor, registration("ada-alias", "acme", &[])) };
        refuses(&mut scene, order, Refusal::IdTaken);
    }
    let mut clash = registration("bob", "bobs", &[]);
    clash.aliases = vec![(AWAY, "ada-alias".to_owned())];
    refuses(&mut scene, clash, Refusal::IdTaken);
    // The same text in another protocol is another id.
    assert!(
        scene.register(Registration { home: AWAY, ..registration("ada", "others", &[]) }).is_ok()
    );
}

#[test]
fn one_owner_has_a_limited_number_of_agents() {
    let mut scene = TestHub::new(Rules { agents_per_owner_max: 2, ..Rules::default() });
    scene.register_worker("a", "acme", &[]);
    let second = scene.register_worker("b", "acme", &[]);
    refuses(&mut scene, registration("c", "acme", &[]), Refusal::TooManyAgents { max: 2 });
    scene.remove(second);
    refuses(&mut scene, registration("c", "acme", &[]), Refusal::TooManyAgents { max: 2 });
    assert!(scene.register(registration("b", "acme", &[])).is_ok(), "a return is not a new agent");
}

#[test]
fn a_new_agent_gets_its_key_and_an_update_leaves_it_alone() {
    let mut scene = TestHub::default();
    let order = Registration { key: Some(FIRST_KEY), ..registration("ada", "acme", &[]) };
    let ada = scene.register(order.clone()).unwrap();
    let key = scene.world.key(&FIRST_KEY).expect("the key is known").clone();
    assert_eq!((key.holder, key.valid_until), (Holder::Agent(ada), None));
    scene.register(Registration { key: Some(NEXT_KEY), ..order }).unwrap();
    assert!(scene.world.key(&NEXT_KEY).is_none(), "a key that was not requested is not issued");
    assert!(scene.world.key(&FIRST_KEY).unwrap().is_valid(scene.now));
}

#[test]
fn after_a_rotation_the_old_key_lives_ten_minutes() {
    let mut scene = TestHub::default();
    let order = Registration { key: Some(FIRST_KEY), ..registration("ada", "acme", &[]) };
    scene.register(order.clone()).unwrap();
    scene.register(Registration { key: Some(NEXT_KEY), rotate_key: true, ..order }).unwrap();
    let works = |scene: &TestHub, key| scene.world.key(key).unwrap().is_valid(scene.now);
    assert!(works(&scene, &FIRST_KEY) && works(&scene, &NEXT_KEY));
    scene.advance_without_timers(Millis(10 * 60_000 - 1));
    assert!(works(&scene, &FIRST_KEY));
    scene.advance_without_timers(Millis(1));
    assert!(!works(&scene, &FIRST_KEY));
    assert!(works(&scene, &NEXT_KEY));
}

#[test]
fn revocation_ends_every_key_at_once_and_a_later_rotation_revives_none() {
    let mut scene = TestHub::default();
    let order = Registration { key: Some(FIRST_KEY), ..registration("ada", "acme", &[]) };
    let ada = scene.register(order).unwrap();
    let bystander = Registration { key: Some([9; 32]), ..registration("bob", "acme", &[]) };
    scene.register(bystander).unwrap();
    scene.run(Command::RevokeKeys { agent: ada, by_operator: false }).unwrap();
    assert!(!scene.world.key(&FIRST_KEY).unwrap().is_valid(scene.now));
    assert!(scene.world.key(&[9; 32]).unwrap().is_valid(scene.now));
    let holder = Holder::Agent(ada);
    scene
        .run(Command::IssueKey { holder, hash: NEXT_KEY, retire_others: true, by_operator: false })
        .unwrap();
    assert!(!scene.world.key(&FIRST_KEY).unwrap().is_valid(scene.now));
    assert!(scene.world.key(&NEXT_KEY).unwrap().is_valid(scene.now));
    assert_eq!(scene.world.keys_of(ada).count(), 2);
}

#[test]
fn another_operator_key_ends_the_old_one_at_once() {
    let mut scene = TestHub::default();
    let order = Registration { key: Some([9; 32]), ..registration("ada", "acme", &[]) };
    scene.register(order).unwrap();
    let issue = |hash, retire_others| Command::IssueKey {
        holder: Holder::Operator,
        hash,
        retire_others,
        by_operator: true,
    };
    let works = |scene: &TestHub, key: &KeyHash| scene.world.key(key).unwrap().is_valid(scene.now);
    scene.run(issue(FIRST_KEY, false)).unwrap();
    scene.run(issue([3; 32], false)).unwrap();
    assert!(works(&scene, &FIRST_KEY) && works(&scene, &[3; 32]));
    scene.run(issue(NEXT_KEY, true)).unwrap();
    assert!(!works(&scene, &FIRST_KEY) && !works(&scene, &[3; 32]));
    assert!(works(&scene, &NEXT_KEY) && works(&scene, &[9; 32]), "an agent's key is not affected");
    // The same key set again stays valid, also after a restart.
    scene.run(issue(NEXT_KEY, true)).unwrap();
    assert!(works(&scene, &NEXT_KEY));
    scene.world = scene.store.rebuild_world(scene.world.rules);
    assert!(works(&scene, &NEXT_KEY) && !works(&scene, &FIRST_KEY));
}

#[test]
fn every_owner_is_welcomed_once() {
    let mut scene = TestHub::new(Rules { welcome_grant: credits("100"), ..Rules::default() });
    let open = |scene: &mut TestHub, name: &str| match scene
        .run(Command::OpenAccount { name: name.to_owned() })
        .unwrap()
    {
        Answer::Account { granted, .. } => granted,
        other => panic!("{other:?}"),
    };
    let ada = scene.register_worker("ada", "acme", &[]);
    assert_eq!(scene.balance_text("acme").0, "100.00");
    scene.register_worker("bob", "acme", &[]);
    scene.remove(ada);
    scene.register_worker("ada", "acme", &[]);
    assert_eq!(open(&mut scene, "acme"), Credits::ZERO);
    assert_eq!(scene.balance_text("acme").0, "100.00");
    assert_eq!(open(&mut scene, "other"), credits("100"));
    assert_eq!(open(&mut scene, "other"), Credits::ZERO);
}

#[test]
fn an_account_made_by_being_paid_is_empty_until_its_owner_comes() {
    let mut scene = TestHub::new(Rules { welcome_grant: credits("100"), ..Rules::default() });
    scene.register_worker("ada", "acme", &[]);
    let mut gift = scene.payment("acme", "newcomer", "1.00");
    gift.open_payee = true;
    scene.pay(gift).unwrap();
    assert_eq!(scene.balance_text("newcomer").0, "1.00");
    scene.register_worker("nina", "newcomer", &[]);
    assert_eq!(scene.balance_text("newcomer").0, "101.00");
    scene.register_worker("nora", "newcomer", &[]);
    assert_eq!(scene.balance_text("newcomer").0, "101.00");
}

#[test]
fn a_reached_agent_is_there_until_a_connection_fails_and_again_after_a_call() {
    let mut scene = TestHub::default();
    let client = scene.register_client("client", "rich", "10.00");
    let ada =
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    scene.advance_without_timers(Millis::hours(24 * 30));
    assert!(scene.is_online(ada));
    let order = scene.job_order(client, "sum", "1.00");
    let job = scene.open_job(order).id;
    scene.unreachable(job);
    assert!(!scene.is_online(ada));
    assert_eq!(finds(&scene, "sum"), []);
    scene.world.record_activity(ada, scene.now);
    assert!(scene.is_online(ada));
    assert_eq!(finds(&scene, "sum"), [ada]);
}

#[test]
fn a_poller_is_there_for_ninety_seconds_after_each_sign_of_life() {
    let mut scene = TestHub::default();
    let order = registration("ada", "acme", &[("sum", "0.10")]);
    let ada = scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap();
    scene.advance_without_timers(TTL);
    assert!(scene.is_online(ada));
    scene.advance_without_timers(Millis(1));
    assert!(!scene.is_online(ada));
    assert_eq!(finds(&scene, "sum"), []);
    scene.run(Command::HandOver { agent: ada, jobs: Vec::new() }).unwrap();
    assert_eq!(finds(&scene, "sum"), [ada]);
    scene.advance_without_timers(Millis(60_000));
    scene.world.record_activity(ada, scene.now);
    scene.advance_without_timers(TTL);
    assert!(scene.is_online(ada));
}

#[test]
fn an_agent_that_sent_a_heartbeat_must_continue_even_with_an_endpoint() {
    let mut scene = TestHub::default();
    let ada =
        scene.register(registration_with_endpoint("ada", "acme", &[("sum", "0.10")])).unwrap();
    scene.run(Command::Heartbeat { agent: ada }).unwrap();
    assert_eq!(scene.agent_state(ada).presence.last_heartbeat, Some(scene.now));
    scene.advance_without_timers(TTL);
    assert!(scene.is_online(ada));
    scene.advance_without_timers(Millis(1));
    assert!(!scene.is_online(ada), "no heartbeat means offline from now on");
    scene.run(Command::Heartbeat { agent: ada }).unwrap();
    assert!(scene.is_online(ada));
}

#[test]
fn who_reads_when_it_likes_is_always_there() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0.10")]);
    scene.run(Command::Heartbeat { agent: ada }).unwrap();
    scene.advance_without_timers(Millis::hours(24 * 365));
    assert!(scene.is_online(ada));
    scene.remove(ada);
    assert!(!scene.is_online(ada), "but not once it has unregistered");
}

#[test]
fn the_sweep_takes_out_exactly_those_whose_time_is_up() {
    let mut scene = TestHub::default();
    let mut ids = Vec::new();
    for n in 0..20 {
        let order = registration(&format!("poller-{n}"), &format!("owner-{n}"), &[("sum", "0.10")]);
        ids.push(scene.register(Registration { liveness: Liveness::ByPolling, ..order }).unwrap());
        scene.now = scene.now.plus(Millis::seconds(1));
    }
    // The first of them registered 20 s ago. 80 s later, those of the first 10 s are past their 90
    // s.
    scene.now = scene.now.plus(Millis::seconds(80));
    assert_eq!(scene.world.online_count(), 20, "none is removed before expiry runs");
    assert_eq!(finds(&scene, "sum"), ids[10..], "but no offline agent is found");
    scene.world.expire_online(scene.now);
    assert_eq!(scene.world.online_count(), 10);
    assert_eq!(finds(&scene, "sum"), ids[10..]);
    assert_eq!(scene.world.next_offline_at(), Some(scene.now));
}

#[test]
fn a_heartbeat_of_an_unknown_agent_creates_no_state() {
    let mut scene = TestHub::default();
    let nobody = AgentId(77);
    let beat = Command::Heartbeat { agent: nobody };
    let poll = Command::HandOver { agent: nobody, jobs: Vec::new() };
    let ack = Command::Ack { agent: nobody, up_to: 3 };
    for command in [beat, poll, ack] {
        assert_eq!(scene.run(command).unwrap_err(), Refusal::NoSuchAgent);
    }
    assert!(scene.world.agent_state(nobody).is_none());
    assert_eq!(scene.world.agent_by_alias(HOME, "unknown"), None);
}

#[test]
fn a_registration_that_changes_something_says_when() {
    let mut scene = TestHub::default();
    let order = |price| by(Actor::Operator, registration("ada", "acme", &[("sum", price)]));
    let ada = scene.register(order("0.10")).unwrap();
    assert_eq!(scene.agent(ada).changed_at, None);
    scene.advance(Millis::seconds(1));
    scene.register(order("0.10")).unwrap();
    assert_eq!(scene.agent(ada).changed_at, None, "it repeats what is known");
    scene.register(order("0.20")).unwrap();
    let changed = scene.now;
    assert_eq!(scene.agent(ada).changed_at, Some(changed));
    scene.advance(Millis::seconds(1));
    scene.register(order("0.20")).unwrap();
    assert_eq!(scene.agent(ada).changed_at, Some(changed));
}
