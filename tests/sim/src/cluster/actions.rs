//! What happens in a step: requests, work of the lanes, frames, coordination and faults.

use rialto_core::agent::Agent;
use rialto_core::command::Command;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::cluster::memory::AppendFault;
use rialto_engine::cluster::{Lease, NodeId};

use super::Cluster;
use super::node::{AppendEnd, LookResult, Node};
use crate::ask::Ask;
use crate::cast::somebody;
use crate::dice::Dice;
use crate::life::{DAWN, shortened};
use crate::orders;

/// A life is shorter than idempotency keys are kept, so that one key has one answer.
const LIFE_MAX: Millis = Millis::hours(20);

impl Cluster {
    /// Time passes, at each node a little differently.
    pub(super) fn pass_time(&mut self, dice: &mut Dice) {
        let span = match dice.roll(100) {
            0..12 => Millis(dice.within_seconds(4)),
            12 => {
                let next = self.reference.world().next_timer_at();
                let span = next.map_or(0, |at| at.since(self.now).0 + dice.of([-1, 0, 1]));
                Millis(span.clamp(0, 7_200_000))
            }
            13 => Millis(dice.within_seconds(120)),
            _ => return,
        };
        if self.now.since(DAWN) < LIFE_MAX {
            self.advance(dice, span);
        }
    }

    fn advance(&mut self, dice: &mut Dice, span: Millis) {
        self.now = self.now.plus(span);
        self.database.set_time(self.now);
        for node in self.nodes.iter().flatten() {
            let skew = dice.of([0, 0, 0, -1, 1]) * dice.within_seconds(1).min(span.0);
            node.clock.advance(Millis(span.0 + skew));
        }
    }

    /// Clients send commands to some nodes.
    pub(super) fn requests(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(4) {
            let slot = dice.roll(self.nodes.len() as u64) as usize;
            let Some(now) = self.nodes[slot].as_ref().map(Node::now) else { continue };
            let again = self.history.repeatable(|count| dice.roll(4 * (count + 1))).cloned();
            let scene = &self.reference.model.scene;
            let ask = match again {
                Some(ask) => Some(ask.again(dice)),
                None => orders::next(dice, scene, now.max(scene.now)),
            };
            let Some(ask) = ask else { continue };
            // The same request at two nodes at once.
            if dice.chance(4) && ask.is_repeatable() {
                let other = dice.roll(self.nodes.len() as u64) as usize;
                self.send(other, ask.clone().again(dice));
            }
            self.send(slot, ask);
        }
    }

    /// A client sends a request to a node, if that is there.
    pub(super) fn send(&mut self, slot: usize, ask: Ask) {
        let head = self.database.head().number;
        let Some(node) = &mut self.nodes[slot] else { return };
        let said = self.told.is_some().then(|| shortened(&ask.0));
        let request = self.history.send(&node.engine, node.id, ask, head);
        node.queue(request);
        self.tell(|| format!("request {request} at {slot}: {}", said.unwrap_or_default()));
    }

    /// A lane does some of its work.
    pub(super) fn work(&mut self, dice: &mut Dice, slot: usize) {
        let Some(node) = self.nodes[slot].as_mut().filter(|node| !node.is_paused) else { return };
        if node.is_appending() {
            return self.work_while_appending(dice, slot);
        }
        node.decide(&mut self.history);
        if !node.has_open_batch() || dice.chance(10) {
            return;
        }
        if dice.chance(25) && node.begin_append(&mut self.reference) {
            self.log.census.count("~beside the lane");
            return self.tell(|| format!("{slot} gives a batch to its log thread"));
        }
        let fault = fault(dice);
        self.append(slot, fault);
    }

    fn work_while_appending(&mut self, dice: &mut Dice, slot: usize) {
        let Some(node) = &mut self.nodes[slot] else { return };
        match dice.roll(3) {
            0 => {
                node.decide(&mut self.history);
                self.log.census.count("~on top of another");
            }
            1 => {
                let fault = fault(dice);
                node.release_append(fault);
                self.tell(|| format!("the log thread of {slot} appends: {fault:?}"));
            }
            _ => {
                let end = node.finish_append();
                self.tell(|| format!("{slot} learns of its append: {end:?}"));
                self.ended(end);
            }
        }
    }

    /// A node appends what it has decided.
    fn append(&mut self, slot: usize, fault: Option<AppendFault>) {
        let Some(node) = &mut self.nodes[slot] else { return };
        let end = node.append(&mut self.reference, fault);
        if fault.is_some() {
            self.log.census.count("~append failed");
        }
        self.tell(|| match &end {
            AppendEnd::Logged => format!("{slot} appends: {fault:?}"),
            AppendEnd::Unrecorded(place, _) => {
                format!("{slot} answers without a record at {place}")
            }
        });
        self.ended(end);
    }

    /// A node decides and appends all that it has.
    pub(super) fn run_batch(&mut self, slot: usize, fault: Option<AppendFault>) {
        let Some(node) = &mut self.nodes[slot] else { return };
        if node.is_appending() {
            let end = node.finish_append();
            self.ended(end);
        }
        let Some(node) = &mut self.nodes[slot] else { return };
        node.decide(&mut self.history);
        self.append(slot, fault);
    }

    /// Some frames arrive.
    pub(super) fn deliver(&mut self, dice: &mut Dice) {
        let nodes = &self.nodes;
        let runs = |id: NodeId| nodes.iter().flatten().any(|node| node.id == id && !node.is_paused);
        let waiting = self.network.waiting(runs);
        let Some((follower, direction)) = dice.pick(&waiting).copied() else { return };
        for _ in 0..=dice.roll(8) {
            if self.network.deliver(dice, follower, direction).is_none() {
                break;
            }
        }
        self.tell(|| format!("frames of {follower} arrive {direction:?}"));
    }

    /// A node looks at the log.
    pub(super) fn look(&mut self, slot: usize) {
        self.look_now(slot);
    }

    /// A node looks at the log, and returns its head and the lease.
    pub(super) fn look_now(&mut self, slot: usize) -> Option<(u64, Lease)> {
        let LookResult { head, lease, end } = self.running(slot)?.look()?;
        self.ended(end);
        let place = self.nodes[slot].as_ref().map(Node::place);
        self.tell(|| format!("{slot} looks, and is at {place:?} of {head}"));
        Some((head, lease))
    }

    /// A node does what its coordinator decides: it connects, takes the lease or leads.
    pub(super) fn coordinate(&mut self, dice: &mut Dice, slot: usize) {
        if self.nodes[slot].is_none() {
            if dice.chance(30) {
                self.start(slot);
                self.tell(|| format!("{slot} starts"));
            }
            return;
        }
        if self.nodes[slot].as_ref().is_some_and(|node| node.is_paused) && dice.chance(30) {
            return self.pause(slot);
        }
        let Some((_, lease)) = self.look_now(slot) else { return };
        let Some(node) = &mut self.nodes[slot] else { return };
        if node.is_writer() {
            return node.beat();
        }
        if node.lease.is_some() {
            // Another step may come between its last look and its first batch.
            if dice.chance(75) {
                let fault = fault(dice);
                self.lead(slot, fault);
            }
            return;
        }
        let id = node.id;
        let writer = self.has(lease.node).filter(|node| node.is_writer());
        let is_free = lease.node == NodeId(0) || lease.node == id || writer.is_none();
        let is_silent = writer.is_some_and(|node| node.is_paused || node.is_cut);
        if is_free && dice.chance(60) || is_silent && dice.chance(20) || dice.chance(2) {
            return self.take_lease(slot, &lease);
        }
        self.dial(dice, slot);
    }

    fn take_lease(&mut self, slot: usize, seen: &Lease) {
        let Some(node) = &mut self.nodes[slot] else { return };
        if node.take_lease(seen) {
            self.log.census.count("~lease taken");
            self.tell(|| format!("{slot} takes the lease after epoch {}", seen.epoch));
        }
    }

    /// A node that has the lease begins to write, if it has the whole log.
    fn lead(&mut self, slot: usize, fault: Option<AppendFault>) -> bool {
        let Some(node) = &mut self.nodes[slot] else { return false };
        let leads = node.lead(&mut self.reference, fault);
        if leads {
            self.log.census.count("~takeover");
        }
        self.tell(|| format!("{slot} begins to write: {leads}, {fault:?}"));
        leads
    }

    /// Connects a node to the writer that its last look has shown. In most cases only after the
    /// writer's first batch, as the coordinator does.
    pub(super) fn dial(&mut self, dice: &mut Dice, slot: usize) {
        let Some(node) = self.running(slot).filter(|node| !node.is_writer()) else { return };
        let (id, lease, knows_writer) =
            (node.id, node.seen_lease.clone(), node.epoch() == node.seen_lease.epoch);
        let is_connected =
            self.network.connection(id).is_some_and(|(epoch, _)| epoch == lease.epoch);
        if is_connected && !dice.chance(5) || !knows_writer && !dice.chance(40) {
            return;
        }
        let connected = self.network.connect(id, &lease);
        self.tell(|| format!("{slot} dials epoch {}: {connected}", lease.epoch));
    }

    /// A node takes the lease and leads, without any fault.
    pub(super) fn elect(&mut self, slot: usize) {
        for _ in 0..8 {
            let Some((_, lease)) = self.look_now(slot) else { continue };
            match self.nodes[slot].as_ref().filter(|node| node.is_writer()).map(Node::epoch) {
                Some(epoch) if epoch == lease.epoch => return,
                // Another node has taken the lease and has not begun to write.
                Some(_) => self.resign(slot),
                None => {}
            }
            if self.nodes[slot].as_ref().is_some_and(|node| node.lease.is_none()) {
                self.take_lease(slot, &lease);
            }
            if self.lead(slot, None) {
                return;
            }
        }
        panic!("a node that nothing hinders does not write");
    }

    /// The results of deliveries, and acknowledgements.
    pub(super) fn push(&mut self, dice: &mut Dice, slot: usize) {
        let scene = &self.reference.model.scene;
        let now = scene.now.max(self.now);
        self.net.push(dice, &scene.world, now);
        let mut asks: Vec<Ask> = Vec::new();
        asks.extend(self.net.pushed(dice, scene, now).map(Ask::from));
        let agent = somebody(dice, scene);
        let head = scene.world.inbox(agent).head;
        if head > 0 {
            asks.push(Command::Ack { agent, up_to: 1 + dice.roll(head) }.into());
        }
        asks.into_iter().for_each(|ask| self.send(slot, ask));
    }

    /// An agent is seen at a node, or reads there, and the node tells the writer.
    pub(super) fn notice(&mut self, dice: &mut Dice, slot: usize) {
        let agent = somebody(dice, &self.reference.model.scene);
        let tells = dice.chance(60);
        let Some(node) = self.running(slot) else { return };
        let (is_plain, head) = node.engine.with_world(|world| {
            let is_plain = |agent: &Agent| agent.probation.is_none();
            let has_no_work = world.queued_jobs().next().is_none();
            let is_plain = has_no_work && world.agent(agent).is_some_and(|agent| is_plain(agent));
            (is_plain, world.inbox(agent).head)
        });
        // Otherwise the engine runs a command by itself.
        if is_plain {
            node.engine.record_seen(agent);
        }
        if head > 0 {
            node.engine.record_presented(agent, 1 + dice.roll(head));
        }
        if tells {
            node.note();
        }
        self.tell(|| format!("{agent} is seen at {slot}"));
    }

    /// Something goes wrong, or is repaired.
    pub(super) fn fault(&mut self, dice: &mut Dice, slot: usize) {
        let late = self.database.late_count() as u64;
        let writer = self.nodes.iter().position(|node| node.as_ref().is_some_and(Node::is_writer));
        let slot = writer.filter(|_| dice.chance(40)).unwrap_or(slot);
        let Some(node) = &mut self.nodes[slot] else { return };
        match dice.roll(16) {
            0 => self.kill(dice, slot),
            1..4 => self.pause(slot),
            4..7 => {
                let is_cut = !node.is_cut;
                node.set_cut(is_cut);
                self.log.census.count("~cut or restored");
                self.tell(|| format!("{slot} is cut from the database: {is_cut}"));
            }
            7..10 => {
                let id = node.id;
                self.network.sever(id);
                self.log.census.count("~connection lost");
                self.tell(|| format!("{slot} loses its connection"));
            }
            10 => self.resign(slot),
            11 => {
                node.clock.advance(Millis(dice.within_seconds(60)));
                self.tell(|| format!("the clock of {slot} jumps"));
            }
            12 => self.leave(dice),
            _ if late > 0 => {
                if dice.chance(30) {
                    self.database.lose_late(dice.roll(late) as usize);
                }
                let landed = self.database.land_late();
                self.log.census.add("~landed late", landed as u64);
                self.tell(|| format!("{landed} of {late} late batches arrive"));
            }
            _ => {}
        }
    }

    /// A node stops for a while, or goes on.
    fn pause(&mut self, slot: usize) {
        let Some(node) = &mut self.nodes[slot] else { return };
        node.is_paused = !node.is_paused;
        self.log.census.count("~paused or woken");
        let is_paused = node.is_paused;
        self.tell(|| format!("{slot} is paused: {is_paused}"));
    }

    /// A node is killed. A batch on its way may arrive, or not.
    fn kill(&mut self, dice: &mut Dice, slot: usize) {
        let Some(mut node) = self.nodes[slot].take() else { return };
        node.release_append(fault(dice));
        self.network.remove(node.id);
        self.reads.leave(node.id);
        self.log.census.count("~killed");
        self.tell(|| format!("{slot} is killed"));
    }

    fn resign(&mut self, slot: usize) {
        let Some(node) = self.running(slot).filter(|node| node.is_writer()) else { return };
        if node.is_appending() {
            let end = node.finish_append();
            self.ended(end);
        }
        let Some(node) = &mut self.nodes[slot] else { return };
        let end = node.resign(&mut self.reference);
        self.log.census.count("~resigned");
        self.tell(|| format!("{slot} resigns"));
        self.ended(end);
    }

    /// A client waits no longer.
    fn leave(&mut self, dice: &mut Dice) {
        if let Some(request) = dice.pick(&self.history.waiting()) {
            self.history.leave(*request);
            self.tell(|| format!("the client of request {request} leaves"));
        }
    }

    pub(super) fn set_time(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
        self.database.set_time(self.now);
        for node in self.nodes.iter().flatten() {
            node.clock.advance(Millis(self.now.since(node.now()).0.max(0)));
        }
    }
}

/// What happens to an append, in most cases nothing.
fn fault(dice: &mut Dice) -> Option<AppendFault> {
    match dice.roll(120) {
        0 => Some(AppendFault::Doubt { is_written: true }),
        1 => Some(AppendFault::Doubt { is_written: false }),
        2 => Some(AppendFault::Late),
        3 | 4 => Some(AppendFault::Full),
        _ => None,
    }
}
