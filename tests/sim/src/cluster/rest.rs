//! The end of a life: everything is repaired, every client gets its answer, every job ends, and all
//! nodes come to the same.

use rialto_core::time::{Millis, Timestamp};

use super::Cluster;
use super::network::Direction;
use super::node::Node;
use crate::dice::Dice;

/// More rounds than it takes until every client has its answer.
const ROUNDS_MAX: usize = 40;
/// More timers than any hub has left when no agent acts any more.
const MOMENTS_MAX: usize = 20_000;

impl Cluster {
    /// All nodes run and are connected, and one writes. Every client gets an answer.
    pub(super) fn heal(&mut self) {
        for slot in 0..self.nodes.len() {
            if self.nodes[slot].is_none() {
                self.start(slot);
            }
            if let Some(node) = self.node(slot) {
                node.is_paused = false;
                node.set_cut(false);
            }
            self.run_batch(slot, None);
        }
        self.database.land_late();
        self.check();
        let writer = (self.seed % self.nodes.len() as u64) as usize;
        self.elect(writer);
        self.check();
        let said = self.told.as_ref().map(Vec::len);
        for _ in 0..ROUNDS_MAX {
            self.exchange(writer);
            // All rounds are the same.
            self.told.iter_mut().zip(said).for_each(|(told, said)| told.truncate(said));
            if self.history.waiting().is_empty() && self.reads.is_done() {
                return;
            }
        }
        let waiting: Vec<_> = self.history.waiting();
        let waiting: Vec<_> = waiting.into_iter().map(|id| self.history.describe(id)).collect();
        panic!("nothing is wrong, and no answer comes: {waiting:#?}");
    }

    /// Everything that is on its way arrives, and the writer answers.
    fn exchange(&mut self, writer: usize) {
        let dice = &mut Dice::new(1);
        for slot in 0..self.nodes.len() {
            let Some((_, lease)) = self.look_now(slot) else { continue };
            let Some(node) = &self.nodes[slot] else { continue };
            let connected = self.network.connection(node.id);
            if slot != writer && connected != Some((lease.epoch, true)) {
                assert!(self.network.connect(node.id, &lease), "the writer takes connections");
            }
            self.run_batch(slot, None);
        }
        for (follower, _) in self.network.waiting(|_| true) {
            for direction in [Direction::ToFollower, Direction::ToWriter] {
                while self.network.deliver(dice, follower, direction).is_some() {}
            }
        }
        self.run_batch(writer, None);
        self.check();
    }

    /// No client acts any more: every job ends by itself, on every node.
    pub(super) fn come_to_rest(&mut self) {
        let writer = self.nodes.iter().position(|node| node.as_ref().is_some_and(Node::is_writer));
        let writer = writer.expect("one node writes");
        // After a full database, timers wait a little, by the clock of their node.
        let clocks = self.nodes.iter().flatten().map(Node::now);
        let latest = clocks.fold(self.now, Timestamp::max);
        self.set_time(latest.plus(Millis::seconds(2)));
        for _ in 0..MOMENTS_MAX {
            let Some(at) = self.reference.world().next_timer_at() else { break };
            self.set_time(at);
            self.run_batch(writer, None);
            for slot in 0..self.nodes.len() {
                self.look(slot);
            }
            self.check();
        }
        for slot in 0..self.nodes.len() {
            self.look(slot);
        }
        self.check();
        let world = self.reference.world();
        assert_eq!(world.live_jobs().count(), 0, "a job never ends");
        let held: i64 = world.owners().map(|owner| owner.held.micros()).sum();
        assert_eq!(held, 0, "credits are held without a job");
        let head = self.database.head().number;
        for node in self.nodes.iter().flatten() {
            assert_eq!(node.place(), head, "a node is behind, and nothing is wrong");
        }
    }
}
