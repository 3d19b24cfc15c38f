//! Several nodes over one log in memory: one chain, every command at most once, no answer lost.

use std::time::Duration;

use rialto_core::command::Command;
use rialto_core::id::{EntryId, TransferId};
use rialto_core::time::Timestamp;
use rialto_core::world::World;

use super::*;
use crate::cluster::frame::{Ask, BatchRecord, CallFuture, Hop, Notes, Reply, ReplyResult};
use crate::cluster::memory::{AppendFault, MemoryCluster, MemoryNetwork};
use crate::cluster::state::{CoordinatorRequest, Role};
use crate::cluster::{Lease, NodeId};
use crate::fixtures::{enrol, grant, message, pay, report, snapshot};
use crate::run::start::{ClusterOptions, EngineParts, ManualLane, NodeParts};
use crate::secret::HubSecret;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::testkit::SeededRandom;
use crate::testkit::postgres::TestDatabase;

/// Short enough that a silent writer does not hold up a test.
const LEASE: Duration = Duration::from_millis(300);

/// A node of a cluster.
struct Node {
    hub: Hub,
    id: NodeId,
}

/// A cluster whose nodes are engines of this process.
struct Cluster {
    database: MemoryCluster,
    network: MemoryNetwork,
    nodes: Vec<Node>,
    started: u64,
}

impl Cluster {
    async fn of(count: usize) -> Self {
        let (database, network) = (MemoryCluster::at(START), MemoryNetwork::default());
        let mut cluster = Self { database, network, nodes: Vec::new(), started: 0 };
        for _ in 0..count {
            cluster.add().await;
        }
        cluster
    }

    /// Starts a node, and waits until it takes part.
    async fn add(&mut self) {
        self.started += 1;
        let clock = ManualClock::at(START);
        let setup = EngineParts {
            store: Box::new(self.database.store()),
            rules: Rules { welcome_grant: credits("10"), ..Rules::default() },
            clock: clock.clone(),
            random: SeededRandom::new(self.started),
            secret: HubSecret::from_bytes([7; 32]),
            markets: markets(),
            cluster: None,
        };
        let network = self.network.clone();
        let mut id = NodeId(0);
        let parts = NodeParts { lease: LEASE, ..NodeParts::default() };
        let started = Engine::start_node(setup, parts, |node, events| {
            id = node;
            Ok((network.add(node, events), String::new()))
        });
        let node = Node { hub: Hub::started(started, clock), id };
        node.hub.until(|engine| engine.has_joined()).await;
        self.nodes.push(node);
    }

    fn writer(&self) -> usize {
        let is_writer = |node: &Node| node.hub.engine.is_writer();
        self.nodes.iter().position(is_writer).expect("one node writes")
    }

    /// Waits until exactly one node writes.
    async fn elected(&self) -> usize {
        let waiting = async {
            while self.nodes.iter().filter(|node| node.hub.engine.is_writer()).count() != 1 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(LONG, waiting).await.expect("a node takes over");
        self.writer()
    }

    fn follower(&self) -> usize {
        (0..self.nodes.len()).find(|index| *index != self.writer()).expect("there are several")
    }

    /// Ends a node as if it was killed.
    fn kill(&mut self, index: usize) {
        let node = self.nodes.remove(index);
        self.network.remove(node.id);
        self.database.set_cut(node.id, true);
        let state = node.hub.engine.inner.cluster.as_ref().expect("a node");
        let _ = state.requests.send(CoordinatorRequest::Stop);
    }

    /// Every node has the same world, and it is the fold of the log.
    async fn check(&self) {
        let mut fold = World::new(Rules { welcome_grant: credits("10"), ..Rules::default() });
        fold.markets = markets();
        let batches = self.database.batches();
        let mut before = Place::default();
        for logged in &batches {
            assert_eq!(logged.place.number, before.number + 1, "one chain");
            before = logged.place;
            for (agent, at) in &logged.batch.for_nodes.last_seen {
                fold.record_activity(*agent, *at);
            }
            fold.replay(&logged.batch.changes, &logged.batch.expired);
        }
        for node in &self.nodes {
            node.hub.engine.fresh().await.expect("the log can be read");
            let picture = node.hub.engine.with_world(|world| snapshot(world, START));
            assert_eq!(picture, snapshot(&fold, START));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_run_on_every_node_and_all_worlds_are_the_same() {
    let cluster = Cluster::of(3).await;
    let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    cluster.nodes[1].hub.run(grant("ada", "5")).await.expect("a grant");
    for node in &cluster.nodes {
        node.hub.engine.fresh().await.expect("the log can be read");
        assert_eq!(node.hub.account("ada").0, "15.00");
    }
    let bob = cluster.nodes[2].hub.enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    let order = cluster.nodes[1].hub.ask(1, ada, "sum", "3");
    let job = cluster.nodes[1].hub.open(order).await;
    cluster.nodes[0].hub.run(report(job, bob, true, "1")).await.expect("a result");
    cluster.check().await;
    assert_eq!(cluster.nodes[2].hub.account("bob").0, "11.00");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_the_writer_sends_is_applied_without_reading_the_log() {
    let cluster = Cluster::of(2).await;
    let (writer, follower) = (cluster.writer(), cluster.follower());
    let (writer, follower) = (&cluster.nodes[writer], &cluster.nodes[follower]);
    cluster.database.set_cut(follower.id, true);
    for _ in 0..20 {
        writer.hub.run(grant("ada", "1")).await.expect("a grant");
    }
    let has_all = |engine: &Engine| engine.with_world(|world| snapshot(world, START));
    let expected = has_all(&writer.hub.engine);
    follower.hub.until(|engine| has_all(engine) == expected).await;
    // What was sent while the node was paused is read from the log.
    cluster.database.set_cut(follower.id, false);
    cluster.network.remove(follower.id);
    writer.hub.run(grant("ada", "1")).await.expect("a grant");
    cluster.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_takes_no_reports_can_still_be_read() {
    let cluster = Cluster::of(2).await;
    cluster.database.hold_reports(true);
    cluster.nodes[0].hub.until(|_| cluster.database.held_reports() == 2).await;
    for node in &cluster.nodes {
        node.hub.engine.fresh().await.expect("the log can be read");
        node.hub.run(grant("ada", "1")).await.expect("the log can be written");
    }
    cluster.database.hold_reports(false);
    cluster.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_is_the_same_on_every_node() {
    let cluster = Cluster::of(2).await;
    for node in &cluster.nodes {
        let refused = node.hub.run(Command::Pay(Box::new(pay(1, "nobody", "no one", "1")))).await;
        assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
    }
    cluster.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_the_writer_is_killed_another_node_goes_on() {
    let mut cluster = Cluster::of(3).await;
    let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
    for round in 0..3 {
        if round > 0 {
            let writer = cluster.elected().await;
            cluster.kill(writer);
            cluster.add().await;
        }
        let follower = cluster.follower();
        let sent = message(ada, bob, &format!("\"{round}\""));
        cluster.nodes[follower].hub.run(Command::SendMessage(Box::new(sent))).await.expect("sent");
    }
    cluster.elected().await;
    cluster.check().await;
    let head = cluster.nodes[0].hub.engine.with_world(|world| world.inbox(bob).head);
    assert_eq!(head, 3);
}

fn send(from: AgentId, to: AgentId, text: usize) -> Command {
    Command::SendMessage(Box::new(message(from, to, &format!("\"{text}\""))))
}

/// Connections that only keep the replies of a writer.
#[derive(Default)]
struct KeptReplies(Mutex<Vec<Reply>>);

impl Hop for KeptReplies {
    fn follow(&self, _: &Lease) {}
    fn lead(&self, _: u64) {}
    fn ask(&self, _: u64, _: Ask) {}
    fn note(&self, _: Notes) {}
    fn reply(&self, _: NodeId, _: u64, reply: Reply) {
        self.0.lock().push(reply);
    }
    fn announce(&self, _: u64, _: Place, _: Timestamp, _: Option<BatchRecord>) {}
    fn tell_readers(&self, _: &[AgentId]) {}
    fn call(&self, _: Vec<u8>) -> CallFuture {
        Box::pin(std::future::ready(None))
    }
}

/// The parts of a node whose clock shows this time.
fn node_parts(database: &MemoryCluster, now: Timestamp) -> EngineParts {
    EngineParts {
        store: Box::new(database.store()),
        rules: Rules { welcome_grant: credits("10"), ..Rules::default() },
        clock: ManualClock::at(now),
        random: SeededRandom::new(1),
        secret: HubSecret::from_bytes([7; 32]),
        markets: markets(),
        cluster: None,
    }
}

#[test]
fn a_node_goes_on_at_the_time_of_the_log_even_if_its_newest_batch_has_no_rows() {
    let later = START.plus(Millis::hours(1));
    let database = MemoryCluster::at(later);
    let start = || {
        let hop = Arc::new(KeptReplies::default());
        let started = ManualLane::start_node(node_parts(&database, START), |_, _| hop.clone());
        started.expect("the log can be read").1
    };
    start().lead(&Lease { epoch: 1, ..Lease::default() }).expect("nothing hinders it");
    // A database that took over may have another time.
    for behind_or_ahead in [START, later.plus(Millis::hours(1))] {
        database.set_time(behind_or_ahead);
        let lane = start();
        assert_eq!(lane.place().number, 1, "the first batch of the epoch");
        assert_eq!(lane.now(), later);
    }
}

#[test]
fn a_command_that_was_refused_and_is_sent_again_stays_refused() {
    let (database, hop) = (MemoryCluster::at(START), Arc::new(KeptReplies::default()));
    let setup = node_parts(&database, START);
    let mut events = None;
    let started = ManualLane::start_node(setup, |_, of| {
        events = Some(of);
        hop.clone()
    });
    let (engine, mut lane) = started.expect("an empty log can be read");
    let events = events.expect("a node has connections");
    lane.lead(&Lease { epoch: 1, ..Lease::default() }).expect("nothing hinders it");
    let mut ask = |number: u64, command: Command| {
        let ask = Ask { number, low: 1, envelope: command.into() };
        assert!(events.asked(1, NodeId(9), ask), "there is room");
        assert!(lane.run_batch(), "the lane goes on");
        hop.0.lock().pop().expect("a reply").result
    };
    let transfer = || Command::Pay(Box::new(pay(1, "ada", "bob", "1")));
    let refused = ask(1, transfer());
    assert!(matches!(refused, ReplyResult::Refused(_)), "there is no account: {refused:?}");
    for (number, owner) in [(2, "ada"), (3, "bob")] {
        ask(number, Command::Register(Box::new(enrol(owner, owner, &[]))));
    }
    // Its node has sent it again before the first reply arrived.
    assert_eq!(ask(1, transfer()), refused);
    assert!(matches!(ask(4, transfer()), ReplyResult::Answer(_)), "as a new command it succeeds");
    assert_eq!(ask(4, transfer()), ReplyResult::Committed, "its answer is in the log");
    assert_eq!(engine.with_world(|world| world.next.transfer), TransferId(2), "one transfer");
}

#[tokio::test]
async fn a_node_that_is_told_twice_to_lead_runs_what_waits_once() {
    let (database, hop) = (MemoryCluster::at(START), Arc::new(KeptReplies::default()));
    let started = ManualLane::start_node(node_parts(&database, START), |_, _| hop.clone());
    let (engine, mut lane) = started.expect("an empty log can be read");
    let caller = engine.clone();
    let waiting = tokio::spawn(async move { caller.run(grant("ada", "5")).await });
    tokio::task::yield_now().await;
    lane.decide_batch();
    // The first request took so long that the coordinator asked again.
    for epoch in [1, 2] {
        lane.lead(&Lease { epoch, ..Lease::default() }).expect("nothing hinders it");
    }
    assert!(lane.run_batch(), "the lane goes on");
    waiting.await.expect("no panic").expect("it is granted");
    let epochs: Vec<u64> = database.batches().iter().map(|logged| logged.epoch).collect();
    assert_eq!(epochs, [1, 2, 2], "two first batches, and the grant");
    let next = engine.with_world(|world| world.next.entry);
    assert_eq!(next, EntryId(3), "the welcome grant and this one");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_in_doubt_is_settled_and_its_commands_run_once() {
    for is_written in [true, false] {
        let cluster = Cluster::of(3).await;
        let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
        let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
        let writer = cluster.writer();
        let epoch = cluster.database.lease().epoch;
        for (index, node) in cluster.nodes.iter().enumerate() {
            cluster.database.arm(AppendFault::Doubt { is_written });
            node.hub.run(send(ada, bob, index)).await.expect("it is sent once");
        }
        assert!(cluster.database.lease().epoch >= epoch + 3, "each doubt begins an epoch");
        cluster.check().await;
        let head = cluster.nodes[writer].hub.engine.with_world(|world| world.inbox(bob).head);
        assert_eq!(head, 3, "written {is_written}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_batch_that_lands_late_lands_never() {
    let cluster = Cluster::of(2).await;
    let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
    cluster.database.arm(AppendFault::Late);
    cluster.nodes[cluster.follower()].hub.run(send(ada, bob, 1)).await.expect("it is sent once");
    assert_eq!(cluster.database.land_late(), 0, "its place is taken");
    cluster.check().await;
    let head = cluster.nodes[0].hub.engine.with_world(|world| world.inbox(bob).head);
    assert_eq!(head, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_cut_from_the_database_is_replaced_and_follows_later() {
    let cluster = Cluster::of(3).await;
    let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
    let old = cluster.writer();
    cluster.database.set_cut(cluster.nodes[old].id, true);
    let follower = cluster.follower();
    let answered = cluster.nodes[follower].hub.run(send(ada, bob, 1)).await;
    answered.expect("another node takes over while the command waits");
    cluster.database.set_cut(cluster.nodes[old].id, false);
    let late = cluster.nodes[old].hub.run(send(ada, bob, 2)).await;
    late.expect("the old writer passes it on");
    cluster.check().await;
    let head = cluster.nodes[old].hub.engine.with_world(|world| world.inbox(bob).head);
    assert_eq!(head, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_resigns_hands_over_and_passes_its_commands_on() {
    let cluster = Cluster::of(2).await;
    let ada = cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
    let old = cluster.writer();
    cluster.nodes[old].hub.engine.resign().await;
    cluster.nodes[old].hub.run(send(ada, bob, 1)).await.expect("the other node writes");
    assert_ne!(cluster.elected().await, old);
    cluster.check().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_place_is_lost_stops_and_names_both_places() {
    let cluster = Cluster::of(2).await;
    cluster.nodes[0].hub.enrol(enrol("ada", "ada", &[])).await;
    cluster.nodes[1].hub.engine.fresh().await.expect("the log can be read");
    cluster.database.lose_newest();
    let node = &cluster.nodes[cluster.follower()];
    node.hub.until(|engine| engine.watch_store_failure().borrow().is_some()).await;
    let why = node.hub.engine.watch_store_failure().borrow().clone().expect("it failed");
    assert!(why.contains("this node is at batch") && why.contains("the log ends"), "{why}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_knows_whose_inbox_is_read_at_another() {
    let cluster = Cluster::of(3).await;
    let bob = cluster.nodes[1].hub.enrol(enrol("bob", "bob", &[])).await;
    for reading in 0..3 {
        let stream = cluster.nodes[reading].hub.engine.subscribe_inbox(bob);
        for node in &cluster.nodes {
            node.hub.until(|engine| engine.has_inbox_reader(bob)).await;
        }
        drop(stream);
        for node in &cluster.nodes {
            node.hub.until(|engine| !engine.has_inbox_reader(bob)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_are_shown() {
    let cluster = Cluster::of(2).await;
    let status = |index: usize| {
        let status = cluster.nodes[index].hub.engine.cluster_status();
        status.expect("a node of a cluster")
    };
    let (writer, follower) = (status(cluster.writer()), status(cluster.follower()));
    assert_eq!((writer.role, follower.role), (Role::Writer, Role::Follower));
    assert_eq!((writer.writer, follower.writer), (Some(writer.node), Some(writer.node)));
    assert_eq!(writer.epoch, follower.epoch);
    assert!(writer.takeovers == 1 && follower.takeovers == 0);
}

/// A node over a real database, connected by TCP.
async fn start_real_node(url: &str, seed: u64) -> Hub {
    let (url, clock) = (url.to_owned(), ManualClock::at(START));
    let hands = clock.clone();
    // Opening the store waits for the database.
    let started = tokio::task::spawn_blocking(move || {
        let store = PostgresStore::open(&url, PostgresOptions::default())?;
        let options = ClusterOptions {
            listen: "127.0.0.1:0".parse().expect("an address"),
            advertise: None,
            lease: Duration::from_secs(2),
            hub: store.hub_id(),
            version: "test".to_owned(),
            dir: None,
        };
        Engine::start(EngineParts {
            store: Box::new(store),
            rules: Rules { welcome_grant: credits("10"), ..Rules::default() },
            clock: hands,
            random: SeededRandom::new(seed),
            secret: HubSecret::from_bytes([7; 32]),
            markets: markets(),
            cluster: Some(options),
        })
    });
    let node = Hub::started(started.await.expect("it does not panic"), clock);
    node.until(|engine| engine.has_joined()).await;
    node
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_over_postgresql_have_one_history_and_hand_over() {
    let name = "run::tests::cluster::nodes_over_postgresql_have_one_history_and_hand_over";
    let Some(database) = TestDatabase::create(name) else { return };
    let url = database.url();
    let mut nodes = Vec::new();
    for seed in 1..=3 {
        nodes.push(start_real_node(&url, seed).await);
    }
    let ada = nodes[0].enrol(enrol("ada", "ada", &[])).await;
    let bob = nodes[1].enrol(enrol("bob", "bob", &[("sum", "1")])).await;
    for round in 0..2 {
        for (index, node) in nodes.iter().enumerate() {
            node.run(send(ada, bob, index)).await.expect("it is sent");
        }
        let mut snapshots = Vec::new();
        for node in &nodes {
            node.engine.fresh().await.expect("the log can be read");
            snapshots.push(node.engine.with_world(|world| snapshot(world, START)));
        }
        assert!(snapshots.iter().all(|one| *one == snapshots[0]), "round {round}");
        if round == 0 {
            let writer = nodes.iter().position(|node| node.engine.is_writer()).expect("a writer");
            nodes[writer].engine.resign().await;
            nodes[writer].until(|engine| !engine.is_writer()).await;
        }
    }
    let head = nodes[2].engine.with_world(|world| world.inbox(bob).head);
    assert_eq!(head, 6);
    for node in nodes {
        node.stop().await;
    }
    let again = start_real_node(&url, 9).await;
    assert_eq!(again.engine.with_world(|world| world.inbox(bob).head), 6);
    again.stop().await;
}
