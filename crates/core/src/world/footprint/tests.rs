use super::*;
use crate::answer::Answer;
use crate::command::{Canceller, JobRef, OfferTerms, ProfileUpdate, Registration};
use crate::decide::decide;
use crate::envelope::Envelope;
use crate::testkit::market::market_order;
use crate::testkit::signed_orders::profile_update;
use crate::testkit::{HOME, TestHub, credits, message, registration, skill};
use crate::time::Millis;
use crate::world::Rules;

const ROOMY: MemoryLimits = MemoryLimits { total: 1 << 30, per_owner: 1 << 30 };

fn scene(memory: MemoryLimits) -> TestHub {
    TestHub::new(Rules { memory, ..Rules::default() })
}

fn full(of: MemoryBudget) -> Refusal {
    Refusal::MemoryFull { budget: of }
}

fn held(scene: &TestHub, owner: &str) -> u64 {
    scene.world.footprint().bytes_of(RowOwner::Owner(scene.owner(owner).id))
}

/// A registration with that many bytes.
fn large(native: &str, bytes: usize) -> Registration {
    Registration { card: "x".repeat(bytes), ..registration(native, native, &[]) }
}

#[test]
fn an_agent_that_has_left_takes_little_memory_and_returns_with_all_it_said() {
    let mut scene = scene(ROOMY);
    let about = "a".repeat(10_000);
    let sum = Skill { description: about.clone(), input: "b".repeat(20_000), ..skill("sum", "1") };
    let skills = Some(vec![sum.clone()]);
    let ada = scene.update_profile("ada", ProfileUpdate { skills, ..ProfileUpdate::default() });
    let before = held(&scene, "ada");
    assert!(before > 30_000, "{before}");
    scene.remove(ada);
    let left = scene.agent(ada);
    assert_eq!(left.skills[0].name, "sum", "the names of its skills are still known");
    assert!(left.skills[0].description.is_empty() && left.skills[0].input.is_empty());
    assert!(held(&scene, "ada") < before - 30_000);
    // Also from what is on disk alone.
    let rebuilt = scene.store.rebuild_world(scene.world.rules);
    assert_eq!(rebuilt.footprint(), scene.world.footprint());
    scene.update_profile("ada", ProfileUpdate::default());
    assert_eq!(scene.agent(ada).skills, [sum]);
    assert_eq!(held(&scene, "ada"), before);
}

#[test]
fn what_an_agent_says_about_how_it_is_doing_ends_when_it_leaves() {
    let mut scene = scene(ROOMY);
    let ada = scene.register_worker("ada", "ada", &[]);
    let before = held(&scene, "ada");
    scene.run(Command::ReportReputation { agent: ada, text: "b".repeat(9_000).into() }).unwrap();
    let words = Some((scene.now, "s".repeat(9_000).into()));
    let told = crate::agent::status::AgentStatusUpdate {
        availability: crate::agent::presence::Availability::Busy,
        until: None,
        words,
    };
    scene.run(Command::ReportStatus { agent: ada, status: told }).unwrap();
    assert!(held(&scene, "ada") > before + 18_000);
    scene.remove(ada);
    assert!(held(&scene, "ada") <= before);
    assert_eq!(
        (&scene.agent_state(ada).status, &scene.agent_state(ada).claimed_reputation),
        (&None, &None)
    );
}

#[test]
fn an_agent_that_leaves_and_returns_within_one_batch_loses_nothing() {
    let mut scene = scene(ROOMY);
    let sum = Skill { description: "adds".to_owned(), ..skill("sum", "1") };
    let profile = ProfileUpdate { skills: Some(vec![sum.clone()]), ..ProfileUpdate::default() };
    let ada = scene.update_profile("ada", profile);
    let leave = Command::Remove { agent: ada, by_operator: false };
    let (left, _) = decide(&scene.world, leave, scene.now).unwrap();
    // Nothing of this batch is in the store yet.
    scene.world.apply(&left);
    let hello = scene.sign_order("ada", "again", profile_update(ProfileUpdate::default()));
    let back = Envelope::from(hello);
    assert!(
        crate::decide::missing_rows(&scene.world, &back)
            .iter()
            .all(|need| { !matches!(need, crate::decide::MissingRow::Agent(_)) })
    );
    let (back, _) = decide(&scene.world, back, scene.now).unwrap();
    assert_eq!(back.agents[&ada].skills, [sum]);
}

#[test]
fn an_owner_at_its_limit_can_only_end_what_it_has() {
    let mut scene = scene(ROOMY);
    let ada = scene.register_client("ada", "acme", "9");
    scene.register_worker("bob", "bobs", &[("sum", "1")]);
    let order = scene.job_order(ada, "sum", "1");
    let first = scene.open_job(order);
    scene.world.rules.memory.per_owner = held(&scene, "acme");
    let order = scene.job_order(ada, "sum", "1");
    assert_eq!(scene.try_open_job(order.clone()).unwrap_err(), full(MemoryBudget::Owner));
    let more = scene.register(registration("eve", "acme", &[]));
    assert_eq!(more.unwrap_err(), full(MemoryBudget::Owner));
    assert_eq!(
        scene.balance_text("acme"),
        ("8.00".to_owned(), "1.00".to_owned()),
        "nothing is held for it"
    );
    // Others are not affected.
    let dan = scene.register_client("dan", "dans", "9");
    let other = scene.job_order(dan, "sum", "1");
    scene.open_job(other);
    scene.succeed(first.id, "1");
    let second = scene.open_job(order);
    let (job, by) = (JobRef::Id(second.id), Canceller::Agent(ada));
    scene.run(Command::Cancel { job, by, reason: None }).unwrap();
    scene.remove(ada);
}

#[test]
fn what_others_do_with_an_open_job_is_not_refused_for_its_requester() {
    let mut scene = scene(ROOMY);
    let ada = scene.register_client("ada", "acme", "9");
    let bob = scene.register_worker("bob", "bobs", &[("sum", "1")]);
    let order = scene.job_order(ada, "sum", "5");
    let job = scene
        .open_job(crate::command::OpenJob { selection: crate::job::Selection::Offers, ..order });
    scene.world.rules.memory.per_owner = held(&scene, "acme");
    let (job, price, valid_for) = (JobRef::Id(job.id), credits("2"), Millis::minutes(1));
    scene
        .run(Command::Offer { job, by: bob, price, terms: OfferTerms::Open { valid_for } })
        .unwrap();
    assert!(held(&scene, "acme") > scene.world.rules.memory.per_owner);
}

#[test]
fn at_the_hubs_limit_only_what_takes_no_more_memory_is_accepted() {
    let mut scene = scene(ROOMY);
    let ada = scene.register_client("ada", "acme", "9");
    let bob = scene.register_worker("bob", "bobs", &[("sum", "1")]);
    let [first, second] = [(); 2].map(|()| {
        let order = scene.job_order(ada, "sum", "1");
        scene.open_job(order)
    });
    scene.world.rules.memory.total = scene.world.footprint().total();
    let order = scene.job_order(ada, "sum", "1");
    assert_eq!(scene.try_open_job(order).unwrap_err(), full(MemoryBudget::Hub));
    assert_eq!(
        scene.register(registration("eve", "eves", &[])).unwrap_err(),
        full(MemoryBudget::Hub)
    );
    let pushed = crate::command::SendMessage {
        url: Some("https://bob.example".to_owned()),
        ..message(ada, bob, "hello")
    };
    assert_eq!(
        scene.run(Command::SendMessage(Box::new(pushed))).unwrap_err(),
        full(MemoryBudget::Hub)
    );
    // A message that only waits in an inbox is on disk.
    scene.run(Command::SendMessage(Box::new(message(ada, bob, "hello")))).unwrap();
    scene.run(Command::Ack { agent: bob, up_to: 9 }).unwrap();
    scene.run(Command::Heartbeat { agent: bob }).unwrap();
    scene.succeed(first.id, "1");
    let (job, by) = (JobRef::Id(second.id), Canceller::Agent(ada));
    scene.run(Command::Cancel { job, by, reason: None }).unwrap();
    scene.remove(bob);
    assert!(scene.world.footprint().total() < scene.world.rules.memory.total);
}

#[test]
fn owners_that_never_had_a_credit_leave_half_of_the_memory_to_the_others() {
    let total = 400_000;
    let mut scene = scene(MemoryLimits { total, ..ROOMY });
    let come = |n| scene.register(large(&format!("stranger-{n}"), 10_000)).err();
    let (came, refused) = (0..100).map(come).enumerate().find(|(_, no)| no.is_some()).unwrap();
    assert_eq!(refused, Some(full(MemoryBudget::Newcomers)));
    assert!(came > 5, "{came}");
    let new_owners = scene.world.footprint().new_owners();
    assert!(new_owners <= total / NEW_OWNERS_SHARE, "{new_owners}");
    // A small registration still finds room, and an owner with credits finds a lot.
    scene.register(registration("late", "late", &[])).unwrap();
    scene.grant("acme", "1");
    let order = Registration { owner: "acme".to_owned(), ..large("ada", 100_000) };
    scene.register(order).unwrap();
    // With its first credit an owner is no longer new.
    let before = scene.world.footprint().new_owners();
    scene.grant("stranger-0", "1");
    assert!(scene.world.footprint().new_owners() < before - 10_000);
}

#[test]
fn requesters_without_an_account_count_as_one_owner() {
    let mut scene = scene(ROOMY);
    let ada = scene.register_client("ada", "acme", "9");
    scene.register_worker("bob", "bobs", &[("sum", "0")]);
    scene.world.rules.memory.per_owner = 20_000;
    let ask = |scene: &mut TestHub, guest: Option<&str>| {
        let order = scene.job_order(ada, "sum", "0");
        let requester =
            guest.map_or(order.requester.clone(), |name| Requester::Guest(name.to_owned()));
        let input = "i".repeat(10_000);
        scene.try_open_job(crate::command::OpenJob { requester, input, ..order })
    };
    ask(&mut scene, Some("one")).unwrap();
    assert_eq!(ask(&mut scene, Some("two")).unwrap_err(), full(MemoryBudget::Owner));
    scene.world.rules.memory.per_owner = held(&scene, "acme") + 20_000;
    ask(&mut scene, None).unwrap();
}

#[test]
fn an_order_that_finds_no_memory_is_not_posted_and_can_be_posted_later() {
    let rules = Rules { memory: ROOMY, ..Rules::default() };
    let mut scene = TestHub::with_market(rules, HOME);
    let posted = || {
        let order = Command::Register(Box::new(registration("ada", "acme", &[])));
        market_order(HOME, "order-1", None, order)
    };
    scene.world.rules.memory.total = scene.world.footprint().total();
    assert_eq!(scene.run(posted()).unwrap_err(), full(MemoryBudget::Hub));
    scene.world.rules.memory = ROOMY;
    let answer = scene.run(posted()).unwrap();
    assert!(matches!(answer, Answer::MarketOrder { repeated: false, .. }), "{answer:?}");
    assert!(scene.world.agent_by_alias(HOME, "ada").is_some());
}

#[test]
fn the_operator_is_never_refused_for_memory() {
    let mut scene = scene(MemoryLimits { total: 0, per_owner: 0 });
    scene.grant("acme", "1");
    let order =
        Registration { actor: crate::command::Actor::Operator, ..registration("ada", "acme", &[]) };
    scene.register(order).unwrap();
}
