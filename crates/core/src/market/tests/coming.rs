use super::*;
use crate::command::{Actor, Command};
use crate::job::{Requester, State};
use crate::refusal::Refusal;
use crate::testkit::message;

fn own(native: &str, owner: &str, price: &str) -> Registration {
    Registration { actor: Actor::Owner, ..registration(native, owner, &[("sum", price)]) }
}

#[test]
fn a_proven_owner_controls_only_its_own_agents() {
    let (mut scene, _) = market();
    let first = scene.register(own("a", "ada", "20")).unwrap();
    let second = scene.register(own("b", "ada", "30")).unwrap();
    assert_eq!(scene.agent(first).owner, scene.agent(second).owner);
    assert_eq!(scene.register(own("a", "ada", "25")), Ok(first));
    assert_eq!(scene.agent(first).skills[0].price, credits("25"));
    // A name of another owner is taken, for every caller.
    let before = scene.agent(first).clone();
    assert_eq!(scene.register(own("a", "bob", "1")), Err(Refusal::IdentityMismatch));
    assert_eq!(scene.agent(first), &before);
    assert_eq!(scene.world.owner_by_name("bob"), None);
    let said = scene.submit_and_read("x", Command::Register(Box::new(own("a", "bob", "1"))));
    assert_eq!(said.outcome, "refused IdentityMismatch");
    // An alias of an agent of another protocol is taken as well.
    let stranger = registration("far", "far", &[]);
    let aliases = vec![(HOME, "home-far".to_owned())];
    scene.register(Registration { home: AWAY, aliases, ..stranger }).unwrap();
    assert_eq!(scene.register(own("home-far", "far", "1")), Err(Refusal::IdTaken));
    let issue = own("mint", crate::owner::Owner::ISSUANCE_NAME, "1");
    assert_eq!(scene.register(issue), Err(Refusal::OwnerTaken));
}

/// A task of an unregistered requester, and its registration.
fn arriving(scene: &mut TestHub, native: &str, budget: &str) -> (Registration, Command) {
    let order = task(scene, AgentId(0), budget, Selection::Cheapest);
    let requester = Requester::Guest(native.to_owned());
    let new_agent = Registration { actor: Actor::Owner, ..registration(native, native, &[]) };
    let order = OpenJob { requester, ..order };
    (new_agent, Command::OpenJob(Box::new(order)))
}

/// The outcome of such a task.
fn submit_arriving(scene: &mut TestHub, id: &str, task: (Registration, Command)) -> String {
    let (record, repeated) = scene.submit_for(id, Some(task.0), task.1);
    assert!(!repeated, "{id} was submitted before");
    scene.read_record(record).outcome
}

fn generous() -> TestHub {
    let rules = Rules { welcome_grant: credits("100"), ..Rules::default() };
    TestHub::with_market(rules, HOME)
}

#[test]
fn a_new_agent_registers_with_its_first_order_and_pays_from_its_welcome_grant() {
    let mut scene = generous();
    let worker = scene.register_worker("a", "acme", &[("sum", "20")]);
    // Both were prepared before it was registered, and come in one batch.
    let orders = [(); 2].map(|()| arriving(&mut scene, "ada", "40"));
    for (id, order) in ["x", "y"].into_iter().zip(orders) {
        assert_eq!(submit_arriving(&mut scene, id, order), "done");
    }
    let ada = scene.world.agent_by_alias(HOME, "ada").unwrap();
    assert_eq!(scene.world.agents().count(), 2);
    for job in scene.store.rows.jobs.values() {
        assert_eq!((&job.request.requester, job.worker()), (&Requester::Agent(ada), Some(worker)));
        assert_eq!(job.payment.payer, scene.world.owner_by_name("ada"));
    }
    assert_eq!(scene.balance_text("ada"), account("20.00", "80.00"));
    assert_eq!(scene.agent_state(ada).market_totals.requested, 2);
}

#[test]
fn a_refused_order_registers_no_agent() {
    let mut scene = generous();
    let order = arriving(&mut scene, "ada", "40");
    assert_eq!(submit_arriving(&mut scene, "x", order), "refused NoSuchSkill");
    scene.register_worker("a", "acme", &[("sum", "20")]);
    let order = arriving(&mut scene, "ada", "101");
    assert_eq!(submit_arriving(&mut scene, "y", order), "refused TooFewCredits");
    assert_eq!(scene.world.agent_by_alias(HOME, "ada"), None);
    assert_eq!(scene.world.owner_by_name("ada"), None);
    let order = arriving(&mut scene, "ada", "100");
    assert_eq!(submit_arriving(&mut scene, "z", order), "done");
    assert_eq!(scene.balance_text("ada"), account("0.00", "100.00"));
}

#[test]
fn what_is_read_is_read_once() {
    let (mut scene, client) = market();
    let writer = scene.register_worker("writer", "writer", &[]);
    for text in ["one", "two", "three"] {
        scene.run(Command::SendMessage(Box::new(message(writer, client, text)))).unwrap();
    }
    let mut read =
        |up_to| post_new(&mut scene, Command::AckUnread { agent: client, up_to }).outcome;
    assert_eq!(read(1), "done");
    assert_eq!(read(1), "refused NotFound", "another reader was faster");
    assert_eq!(read(0), "refused NotFound");
    assert_eq!(read(3), "done");
    assert_eq!(read(2), "refused NotFound");
    assert_eq!(read(9), "refused NotFound", "there is nothing more to read");
    let mailbox = scene.world.inbox(client);
    assert_eq!((mailbox.acked, mailbox.messages_waiting), (3, 0));
    restart(&mut scene);
    let again = post_new(&mut scene, Command::AckUnread { agent: client, up_to: 3 });
    assert_eq!(again.outcome, "refused NotFound");
}

#[test]
fn a_registration_gives_out_what_is_queued_in_the_same_posting() {
    let (mut scene, client) = market();
    let a = scene.register_worker("a", "a", &[("sum", "20")]);
    let order = task(&mut scene, client, "50", Selection::RoundRobin);
    let job = post_task(&mut scene, order);
    pass(&mut scene, job, a);
    assert_eq!(scene.state(job), State::Queued);
    let said = post_new(&mut scene, Command::Register(Box::new(own("b", "b", "50"))));
    let b = scene.world.agent_by_alias(HOME, "b").unwrap();
    assert_eq!(heard(&said), [(b, NoticeKind::Assigned { job, epoch: 2 })]);
}
