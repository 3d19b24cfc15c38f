//! Suspension: an agent, or an owner with all its agents, stops until it is resumed.

use super::finds;
use crate::answer::Answer;
use crate::command::{
    Actor, Command, JobRef, OfferRef, OfferTerms, OpenJob, Registration, SuspensionTarget,
    WorkerResponse,
};
use crate::event::Event;
use crate::id::{AgentId, OwnerId};
use crate::job::{NamedWorker, Queueing};
use crate::job::{Policy, Selection, State};
use crate::owner::Owner;
use crate::refusal::Refusal;
use crate::testkit::{HOME, TestHub, message, registration};
use crate::world::Rules;

fn set(scene: &mut TestHub, subject: SuspensionTarget, suspended: bool) {
    scene.run(Command::SetSuspended { subject, suspended }).expect("the operator may");
}

fn owner(scene: &TestHub, name: &str) -> OwnerId {
    scene.owner(name).id
}

/// An agent with one skill, suspended in either of the two ways.
fn suspended(by_owner: bool) -> (TestHub, AgentId, SuspensionTarget) {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
    let subject = match by_owner {
        true => SuspensionTarget::Owner(owner(&scene, "acme")),
        false => SuspensionTarget::Agent(ada),
    };
    set(&mut scene, subject, true);
    (scene, ada, subject)
}

#[test]
fn a_suspended_agent_is_given_no_work_until_it_is_resumed() {
    for by_owner in [false, true] {
        let (mut scene, ada, subject) = suspended(by_owner);
        let client = scene.register_client("client", "rich", "1.00");
        assert!(finds(&scene, "sum").is_empty() && !scene.is_online(ada));
        for selection in [Selection::BestReputation, Selection::Direct(ada), Selection::Broadcast] {
            for absent_too in [false, true] {
                let order = scene.job_order(client, "sum", "0");
                let policy = Policy {
                    named_worker: NamedWorker {
                        may_be_offline: absent_too,
                        ..order.policy.named_worker
                    },
                    ..order.policy
                };
                let opened = scene.try_open_job(OpenJob { selection, policy, ..order });
                assert_eq!(opened.map(|job| job.state), Err(Refusal::Offline), "{selection:?}");
            }
        }
        let order = scene.job_order(client, "sum", "0");
        let policy = Policy {
            queueing: Queueing { when_unmatched: true, ..order.policy.queueing },
            ..order.policy
        };
        let waiting = scene.open_job(OpenJob { policy, ..order });
        assert_eq!(waiting.state, State::Queued);
        set(&mut scene, subject, false);
        assert_eq!(scene.job(waiting.id).worker(), Some(ada), "the queued job is assigned to it");
        assert_eq!(finds(&scene, "sum"), [ada]);
    }
}

#[test]
fn what_a_suspended_agent_orders_is_refused_and_changes_nothing() {
    for by_owner in [false, true] {
        let (mut scene, ada, subject) = suspended(by_owner);
        let bob = scene.register_worker("bob", "other", &[("dig", "0")]);
        let before = scene.world.next;
        let ask = scene.job_order(ada, "dig", "0");
        let update = Registration {
            actor: Actor::Agent(ada),
            ..registration("ada", "acme", &[("sum", "1")])
        };
        let orders = [
            Command::OpenJob(Box::new(ask.clone())),
            Command::SendMessage(Box::new(message(ada, bob, "hello"))),
            Command::Register(Box::new(update)),
        ];
        for order in orders {
            assert_eq!(scene.run(order.clone()), Err(Refusal::Suspended), "{order:?}");
        }
        assert_eq!(scene.world.next, before);
        // Others may send it messages, and none is lost.
        scene.run(Command::SendMessage(Box::new(message(bob, ada, "hello")))).expect("it waits");
        assert_eq!(scene.world.inbox(ada).head, 1);
        set(&mut scene, subject, false);
        scene.open_job(ask);
        scene
            .run(Command::SendMessage(Box::new(message(ada, bob, "hello"))))
            .expect("it is resumed");
    }
}

#[test]
fn a_suspended_owner_neither_pays_nor_adds_agents_and_can_still_be_paid() {
    let (mut scene, _, subject) = suspended(true);
    scene.grant("acme", "5.00");
    scene.register_client("client", "rich", "5.00");
    let out = scene.payment("acme", "rich", "1.00");
    assert_eq!(scene.pay(out.clone()), Err(Refusal::Suspended));
    let more = Registration { actor: Actor::Owner, ..registration("eve", "acme", &[]) };
    assert_eq!(scene.register(more.clone()), Err(Refusal::Suspended));
    let order = scene.payment("rich", "acme", "1.00");
    scene.pay(order).expect("credits come in");
    set(&mut scene, subject, false);
    scene.pay(out).expect("it is resumed");
    scene.register(more).expect("it is resumed");
    assert_eq!(scene.balance_text("acme"), ("5.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn signed_and_posted_orders_of_a_suspended_agent_are_refused() {
    let mut scene = TestHub::with_market(Rules::default(), HOME);
    let order = scene.sign_order("sam", "1", Command::RecordOnly);
    let sam = scene.run_signed(order).expect("it registers").by;
    let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
    let client = scene.register_client("client", "rich", "1.00");
    let order = scene.job_order(client, "sum", "0");
    let job = scene.open_job(order).id;
    for agent in [sam, ada] {
        set(&mut scene, SuspensionTarget::Agent(agent), true);
    }
    let order = scene.sign_order("sam", "2", Command::RecordOnly);
    assert_eq!(scene.run_signed(order.clone()), Err(Refusal::Suspended));
    let word = scene.job_report(job, true, "0");
    let told = scene.submit_and_read("3", Command::ReportResult(Box::new(word)));
    assert_ne!(told.outcome, "done", "{:?}", told.lines);
    assert_eq!(scene.state(job), State::Assigned);
    set(&mut scene, SuspensionTarget::Agent(sam), false);
    scene.run_signed(order).expect("the same order is executed once it is resumed");
}

#[test]
fn work_in_hand_stays_in_hand_and_a_price_named_before_is_not_taken() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
    let client = scene.register_client("client", "rich", "1.00");
    let order = scene.job_order(client, "sum", "0");
    let in_hand = scene.open_job(order).id;
    let order = scene.job_order(client, "sum", "1.00");
    let offered = scene.open_job(OpenJob { selection: Selection::Offers, ..order }).id;
    let (job, valid_for) = (JobRef::Id(offered), crate::time::Millis::minutes(5));
    let price = crate::testkit::credits("0.10");
    let offer =
        Command::Offer { job: job.clone(), by: ada, price, terms: OfferTerms::Open { valid_for } };
    scene.run(offer.clone()).expect("it may");
    set(&mut scene, SuspensionTarget::Agent(ada), true);
    assert_eq!(scene.run(offer), Err(Refusal::Suspended));
    let take = Command::accept_offer(job, client, OfferRef::Only { by: ada });
    assert!(scene.run(take).is_err());
    assert!(!matches!(scene.state(offered), State::Assigned | State::Running));
    let accept = WorkerResponse::Accept { ready_at: None, worker_job_id: None };
    let respond = Command::Respond { job: JobRef::Id(in_hand), by: ada, response: accept };
    assert_eq!(scene.run(respond), Err(Refusal::Suspended));
    assert_eq!(scene.job(in_hand).worker(), Some(ada));
    // The response to a call the hub made itself counts.
    assert_eq!(scene.succeed(in_hand, "0").state, State::Completed);
}

#[test]
fn registering_again_does_not_end_a_suspension() {
    let (mut scene, ada, _) = suspended(false);
    let update =
        Registration { actor: Actor::Operator, ..registration("ada", "acme", &[("sum", "1")]) };
    scene.register(update).expect("the operator may change it");
    assert!(scene.agent(ada).suspended);
    scene.remove(ada);
    let update = Registration { actor: Actor::Agent(ada), ..registration("ada", "acme", &[]) };
    assert_eq!(scene.register(update), Err(Refusal::Suspended), "not even after it has left");
}

#[test]
fn history_names_each_suspension_once_and_an_agents_own_outlives_its_owners() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[("sum", "0")]);
    let acme = owner(&scene, "acme");
    let mut events = Vec::new();
    for (subject, suspended) in [
        (SuspensionTarget::Owner(acme), true),
        (SuspensionTarget::Owner(acme), true),
        (SuspensionTarget::Agent(ada), true),
        (SuspensionTarget::Owner(acme), false),
    ] {
        let (changes, answer) =
            scene.run_with_changes(Command::SetSuspended { subject, suspended }).unwrap();
        assert_eq!(answer, Answer::Done);
        for line in &changes.history_lines {
            assert!(line.by_operator);
            events.extend(line.events.clone());
        }
    }
    let wanted = [
        Event::OwnerSuspended { owner: acme },
        Event::AgentSuspended { agent: ada },
        Event::OwnerResumed { owner: acme },
    ];
    assert_eq!(events, wanted);
    assert!(scene.world.is_suspended(ada) && finds(&scene, "sum").is_empty());
}

#[test]
fn neither_strangers_nor_the_issue_account_can_be_suspended() {
    let mut scene = TestHub::default();
    for (subject, why) in [
        (SuspensionTarget::Agent(AgentId(99)), Refusal::NoSuchAgent),
        (SuspensionTarget::Owner(OwnerId(99)), Refusal::NotFound),
        (SuspensionTarget::Owner(Owner::ISSUANCE), Refusal::NotFound),
    ] {
        assert_eq!(scene.run(Command::SetSuspended { subject, suspended: true }), Err(why));
    }
}

#[test]
fn rows_from_before_there_was_suspension_are_read_and_written_as_they_were() {
    let mut scene = TestHub::default();
    let ada = scene.register_worker("ada", "acme", &[]);
    let agent = serde_json::to_string(scene.agent(ada)).unwrap();
    let owner = serde_json::to_string(scene.owner("acme")).unwrap();
    assert!(!agent.contains("suspended") && !owner.contains("suspended"));
    assert!(!serde_json::from_str::<crate::agent::Agent>(&agent).unwrap().suspended);
    assert!(!serde_json::from_str::<Owner>(&owner).unwrap().suspended);
}

#[test]
fn a_restored_hub_has_an_epoch_of_its_own_and_history_says_so() {
    let mut scene = TestHub::default();
    assert_eq!(scene.world.next.epoch, 1);
    let (changes, _) = scene.run_with_changes(Command::BeginEpoch).unwrap();
    assert_eq!(scene.world.next.epoch, 2);
    let line = &changes.history_lines[0];
    assert!(line.by_operator);
    assert_eq!(line.events, [Event::HubRestored { epoch: 2 }]);
    let mut old = serde_json::to_value(scene.world.next).unwrap();
    old.as_object_mut().unwrap().remove("epoch");
    let old: crate::changes::Counters = serde_json::from_value(old).unwrap();
    assert_eq!(old.epoch, 1, "a store from before there were epochs is in its first");
}
