//! The lane of a node among several: it decides commands while this node writes, and otherwise
//! applies what the writer committed and passes commands on.
//!
//! All that others report (batches of the log, replies, commands of other nodes) reaches the lane as
//! events, in order, and is handled by its one thread.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::SyncSender;

use rialto_core::changes::{Batch, Changes, Counters, ForNodes, ForwardedReceipt};
use rialto_core::envelope::Envelope;
use rialto_core::time::{Millis, Timestamp};

use super::lane::{Lane, OpenBatch, Recipient, apply_last_seen};
use super::pending::PendingCommands;
use super::reply::{self, LaneResult, ReplySender};
use super::timers::Timers;
use super::{Failure, LaneReply};
use crate::cluster::frame::{Ask, Hop, Reply, ReplyResult};
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::mistake::Mistake;
use crate::cluster::state::{Applied, ClusterState, Role};
use crate::cluster::{Lease, NodeId};
use crate::store::StoreError;
use crate::store::log::{LoggedBatch, Place};

/// What was seen and presented is recorded at the latest after this time. A fail-over loses no more.
const NOTES_DELAY: Millis = Millis::seconds(5);

/// What happened outside the lane.
pub enum LaneEvent {
    /// Batches that follow what this node has, from the log.
    Batches(Vec<LoggedBatch>),
    /// This node has the lease, and every batch before it. The result says whether it writes now.
    Lead {
        lease: Lease,
        done: SyncSender<Result<(), StoreError>>,
    },
    /// Another node shall write.
    Resign {
        done: SyncSender<()>,
    },
    /// There is a connection to the writer of this epoch.
    Connected {
        epoch: u64,
    },
    Replied {
        epoch: u64,
        reply: Reply,
    },
    Asked {
        epoch: u64,
        node: NodeId,
        ask: Ask,
    },
}

/// A command of another node that the writer knows.
enum KnownAsk {
    /// Its batch is not committed yet, and whether its receipt will be in the log.
    Deciding { has_receipt: bool },
    /// Its reply. That of one with an effect is `Committed`: the answer is in the log.
    Replied { place: u64, result: ReplyResult },
}

/// This node among the others.
pub struct Member {
    state: Arc<ClusterState>,
    hop: Arc<dyn Hop>,
    /// The newest batch in both worlds, and the epoch of its writer.
    place: Place,
    epoch: u64,
    role: Role,
    /// The epoch of the connection to the writer.
    connected: u64,
    pending: PendingCommands,
    /// Commands of other nodes in this epoch, so that one sent again is decided once.
    asks: HashMap<NodeId, BTreeMap<u64, KnownAsk>>,
    notes_taken_at: Timestamp,
}

impl Member {
    /// A follower at a place.
    pub fn new(state: Arc<ClusterState>, hop: Arc<dyn Hop>, place: Place, epoch: u64) -> Self {
        let member = Self {
            state,
            hop,
            place,
            epoch,
            role: Role::Follower,
            connected: 0,
            pending: PendingCommands::default(),
            asks: HashMap::new(),
            notes_taken_at: Timestamp::default(),
        };
        member.show();
        member
    }

    /// Whether the batch that begins now records what was seen and presented.
    pub fn takes_notes(&mut self, now: Timestamp) -> bool {
        let is_urgent = self.state.has_urgent_notes.swap(false, Ordering::AcqRel);
        let takes = is_urgent || now.since(self.notes_taken_at) >= NOTES_DELAY;
        if takes {
            self.notes_taken_at = now;
        }
        takes
    }

    /// Shows other threads what this node has applied.
    fn show(&self) {
        *self.state.place.lock() = self.place;
        let applied = Applied { number: self.place.number, epoch: self.epoch, role: self.role };
        self.state.applied.send_replace(applied);
    }

    /// Sends replies to other nodes, and returns those for callers of this one.
    pub fn route_replies(
        &mut self,
        replies: Vec<(Recipient, LaneResult)>,
    ) -> Vec<(ReplySender, LaneResult)> {
        let mut callers = Vec::with_capacity(replies.len());
        for (recipient, result) in replies {
            match recipient {
                Recipient::Caller(reply) => callers.push((reply, result)),
                Recipient::Pending(number) => callers.extend(self.pending.end(number, result)),
                Recipient::Node(node, number) => {
                    let (place, is_ok) = (self.place.number, result.is_ok());
                    let result = reply_result(result);
                    // A command that is sent twice has one reply. If one that was refused were
                    // decided again, it could have an effect, and both replies could arrive.
                    if let Some(known) = self.asks.entry(node).or_default().get_mut(&number) {
                        let is_in_log = matches!(known, KnownAsk::Deciding { has_receipt: true });
                        let result = match is_in_log && is_ok {
                            true => ReplyResult::Committed,
                            false => result.clone(),
                        };
                        *known = KnownAsk::Replied { place, result };
                    }
                    self.hop.reply(node, self.epoch, Reply { number, place, result });
                }
            }
        }
        callers
    }

    /// The node of a recipient, and that node's number for the command.
    #[cfg(any(test, feature = "testkit"))]
    pub fn asked_by(&self, recipient: &Recipient) -> Option<(NodeId, u64)> {
        match recipient {
            Recipient::Caller(_) => None,
            Recipient::Pending(number) => Some((self.state.node, *number)),
            Recipient::Node(node, number) => Some((*node, *number)),
        }
    }

    /// Sends all commands without an answer to the writer, if there is a connection to it.
    fn ask_again(&mut self) {
        if self.is_connected() {
            self.pending.asks().into_iter().for_each(|ask| self.hop.ask(self.epoch, ask));
        }
    }

    /// Sends the commands that ask for their answer again.
    fn ask_unsent(&mut self) {
        if self.is_connected() {
            self.pending.unsent_asks().into_iter().for_each(|ask| self.hop.ask(self.epoch, ask));
        }
    }

    /// Whether there is a connection to the writer whose first batch is applied here.
    fn is_connected(&self) -> bool {
        self.role == Role::Follower && self.connected == self.epoch
    }
}

pub(super) fn reply_result(result: LaneResult) -> ReplyResult {
    match result {
        Ok(LaneReply::Fresh(answer)) => ReplyResult::Answer(answer),
        Ok(LaneReply::Replayed(receipt)) => ReplyResult::Replayed(receipt),
        Ok(LaneReply::Committed(_)) => ReplyResult::Committed,
        Err(Failure::Refused(refusal)) => ReplyResult::Refused(refusal),
        Err(Failure::StoreFull) => ReplyResult::Full,
        Err(Failure::Unavailable) => ReplyResult::Overloaded,
        Err(Failure::StillRunning) => ReplyResult::StillRunning,
        Err(Failure::Fault) => ReplyResult::Fault,
    }
}

impl Lane {
    /// Whether this node only follows.
    pub(super) fn is_follower(&self) -> bool {
        self.member.as_ref().is_some_and(|member| member.role == Role::Follower)
    }

    /// The newest batch in both worlds of a node.
    #[cfg(any(test, feature = "testkit"))]
    pub(super) fn place(&self) -> Place {
        self.member.as_ref().map(|member| member.place).unwrap_or_default()
    }

    /// This node's number for the newest command of its callers.
    #[cfg(any(test, feature = "testkit"))]
    pub(super) fn newest_number(&self) -> u64 {
        self.member.as_ref().map_or(0, |member| member.pending.newest())
    }

    /// Handles what happened outside the lane.
    pub(super) fn handle_events(&mut self) {
        if self.member.is_none() {
            return;
        }
        let events = std::mem::take(&mut *self.inner.lane_events.lock());
        for event in events {
            self.handle_event(event);
        }
    }

    fn handle_event(&mut self, event: LaneEvent) {
        match event {
            LaneEvent::Batches(batches) => self.apply_batches(batches),
            LaneEvent::Lead { lease, done } => {
                let _ = done.try_send(self.lead(&lease));
            }
            LaneEvent::Resign { done } => {
                self.resign();
                let _ = done.try_send(());
            }
            LaneEvent::Connected { epoch } => self.connect(epoch),
            LaneEvent::Replied { epoch, reply } => self.take_reply(epoch, reply),
            LaneEvent::Asked { epoch, node, ask } => self.take_ask(epoch, node, ask),
        }
    }

    /// Takes a command of this node.
    pub(super) fn take_command(&mut self, envelope: Envelope, reply: ReplySender) {
        let Some(member) = &mut self.member else { return };
        if member.role == Role::Writer {
            let number = member.pending.add(envelope.clone(), reply);
            return self.decide_for(envelope, Recipient::Pending(number));
        }
        if member.pending.is_full() {
            return reply::deliver([(reply, Err(Failure::Unavailable))]);
        }
        let number = member.pending.add(envelope, reply);
        if member.connected == member.epoch
            && let Some(ask) = member.pending.ask(number)
        {
            member.hop.ask(member.epoch, ask);
        }
    }

    /// Takes a command of another node, once.
    fn take_ask(&mut self, epoch: u64, node: NodeId, ask: Ask) {
        let Some(member) = &mut self.member else { return };
        if member.role != Role::Writer || member.epoch != epoch {
            return;
        }
        let Ask { number, low, envelope } = ask;
        let known = member.asks.entry(node).or_default();
        *known = known.split_off(&low);
        #[cfg(any(test, feature = "testkit"))]
        if member.state.has_mistake(Mistake::NoDedupe) {
            known.remove(&number);
        }
        match known.get(&number) {
            Some(KnownAsk::Deciding { .. }) => {}
            Some(KnownAsk::Replied { place, result }) => {
                let (place, result) = (*place, result.clone());
                member.hop.reply(node, epoch, Reply { number, place, result });
            }
            None => {
                known.insert(number, KnownAsk::Deciding { has_receipt: false });
                self.decide_for(envelope, Recipient::Node(node, number));
            }
        }
    }

    /// What the log has to say of a command with an effect, so that its node can tell that it is
    /// committed.
    pub(super) fn receipt_for(
        &mut self,
        recipient: &Recipient,
        changes: &Changes,
        done: &LaneResult,
    ) -> Option<ForwardedReceipt> {
        let member = self.member.as_mut()?;
        let Ok(LaneReply::Fresh(answer)) = done else { return None };
        if changes.row_count() == 0 {
            return None;
        }
        let (node, number) = match recipient {
            Recipient::Caller(_) => return None,
            Recipient::Pending(number) => (member.state.node, *number),
            Recipient::Node(node, number) => {
                let known = KnownAsk::Deciding { has_receipt: true };
                member.asks.entry(*node).or_default().insert(*number, known);
                (*node, *number)
            }
        };
        Some(ForwardedReceipt { node: node.0, number, receipt: answer.receipt() })
    }

    /// The writer replied to a command of this node.
    fn take_reply(&mut self, epoch: u64, reply: Reply) {
        let Some(member) = &mut self.member else { return };
        // A late reply of an earlier writer says nothing any more.
        if member.role == Role::Writer || member.epoch != epoch {
            return;
        }
        member.pending.hold_reply(reply.number, reply.place, reply.result);
        let replies = member.pending.take_replies(member.place.number);
        #[cfg(any(test, feature = "testkit"))]
        if member.state.has_mistake(Mistake::ReplyBeforeBatch) {
            reply::deliver(member.pending.take_replies(u64::MAX));
        }
        member.ask_unsent();
        reply::deliver(replies);
    }

    /// A connection to the writer of this epoch is open. Replies on an earlier one are lost.
    fn connect(&mut self, epoch: u64) {
        let Some(member) = &mut self.member else { return };
        member.connected = epoch;
        #[cfg(any(test, feature = "testkit"))]
        if epoch > member.epoch && member.state.has_mistake(Mistake::AskBeforeFirstBatch) {
            member.pending.asks().into_iter().for_each(|ask| member.hop.ask(epoch, ask));
        }
        if epoch == member.epoch && member.role == Role::Follower {
            let replies = member.pending.take_committed();
            member.ask_again();
            reply::deliver(replies);
        }
    }

    /// Applies batches of another writer to both worlds.
    pub(super) fn apply_batches(&mut self, batches: Vec<LoggedBatch>) {
        let is_new = |lane: &Self, logged: &LoggedBatch| {
            lane.member.as_ref().is_some_and(|member| logged.place.number > member.place.number)
        };
        if !batches.iter().any(|logged| is_new(self, logged)) {
            return;
        }
        // Another node has written where this one would: what it decided is void.
        while self.is_appending() {
            self.finish_append();
        }
        if !self.is_follower() {
            self.step_down(Vec::new());
        }
        for logged in batches {
            if is_new(self, &logged) {
                self.apply_logged(logged);
            }
        }
        self.publish_next_due(self.inner.clock.now());
    }

    /// The time. A node that has not joined the others yet has only that of the log: its own clock
    /// may be ahead.
    pub(super) fn now(&self) -> Timestamp {
        let has_time = |member: &Member| member.state.has_joined.load(Ordering::Acquire);
        match self.member.as_ref().is_none_or(has_time) {
            true => self.inner.clock.now(),
            false => self.world.next.at,
        }
    }

    fn apply_logged(&mut self, logged: LoggedBatch) {
        let LoggedBatch { place, epoch, batch } = logged;
        let Batch { changes, expired, for_nodes: ForNodes { at, last_seen, receipts } } = batch;
        self.inner.clock.advance_to(at);
        let now = self.now().max(at);
        self.store.publish(Some(place), &changes, &expired);
        apply_last_seen(&mut self.world, &last_seen, now);
        self.world.replay(&changes, &expired);
        self.world.expire_online(now);
        {
            let mut world = self.inner.world.write();
            apply_last_seen(&mut world, &last_seen, now);
            world.replay(&changes, &expired);
            world.expire_online(now);
            self.inner.live_inboxes.publish(&changes.notices);
        }
        let Some(member) = &mut self.member else { return };
        let is_new_epoch = epoch != member.epoch;
        (member.place, member.epoch) = (place, epoch);
        for ForwardedReceipt { node, number, receipt } in receipts {
            if NodeId(node) == member.state.node {
                member.pending.commit(number, receipt);
            }
        }
        member.show();
        let mut replies = member.pending.take_replies(place.number);
        member.ask_unsent();
        if is_new_epoch {
            // The first batch of a writer: what earlier ones have not committed by now, they never
            // will.
            replies.extend(member.pending.take_committed());
            member.ask_again();
        }
        reply::deliver(replies);
        self.inner.watchers.publish(&changes);
        self.inner.notifier.notify(&changes);
    }

    /// Becomes the writer: an empty batch of the new epoch settles what earlier writers committed.
    pub(super) fn lead(&mut self, lease: &Lease) -> Result<(), StoreError> {
        // An earlier request may have been carried out later than the coordinator waited. What was
        // decided since is void, and its commands are decided again.
        while self.is_appending() {
            self.finish_append();
        }
        if !self.is_follower() {
            self.step_down(Vec::new());
        }
        let Some(member) = &mut self.member else { return Ok(()) };
        let now = self.inner.clock.now();
        let mut first =
            Batch { for_nodes: ForNodes { at: now, ..ForNodes::default() }, ..Batch::default() };
        first.changes.next = Some(Counters { at: self.world.next.at.max(now), ..self.world.next });
        let log = self.store.log();
        let place = {
            let mut log = log.lock();
            log.continue_at(member.place, lease.epoch, self.world.next);
            log.append(&first)?
        };
        self.store.publish(Some(place), &first.changes, &first.expired);
        self.world.advance_time(now);
        self.inner.world.write().advance_time(now);
        self.store.set_writing(true);
        // From now on its own clock counts, and no other node's sets it back.
        member.state.has_joined.store(true, Ordering::Release);
        member.state.joined.send_replace(true);
        (member.place, member.epoch, member.role) = (place, lease.epoch, Role::Writer);
        member.asks.clear();
        member.state.takeovers.fetch_add(1, Ordering::Relaxed);
        member.hop.lead(lease.epoch);
        member.show();
        member.hop.announce(lease.epoch, place, now, None);
        tracing::info!(epoch = lease.epoch, batch = place.number, "this node writes now");
        reply::deliver(member.pending.take_committed());
        for number in member.pending.numbers() {
            let ask = self.member.as_ref().and_then(|member| member.pending.ask(number));
            if let Some(ask) = ask {
                self.decide_for(ask.envelope, Recipient::Pending(number));
            }
        }
        self.timers = Timers::default();
        self.open_batch();
        Ok(())
    }

    /// Commits what is decided, and leaves the rest to another writer.
    pub(super) fn resign(&mut self) {
        if self.is_follower() {
            return;
        }
        if self.is_appending() {
            self.finish_append();
        }
        if self.batch.is_some() && !self.is_follower() {
            self.append_batch();
            if self.is_appending() {
                self.finish_append();
            }
        }
        if !self.is_follower() {
            self.step_down(Vec::new());
        }
    }

    /// Follows from now on. What was decided and is not committed is void; its commands wait for
    /// the next writer.
    pub(super) fn step_down(&mut self, void: Vec<OpenBatch>) {
        let void: Vec<OpenBatch> = void.into_iter().chain(self.batch.take()).collect();
        self.is_stopped |= void.iter().any(|batch| batch.stop);
        self.keep_last_seen(&void);
        self.store.set_writing(false);
        if let Some(member) = &mut self.member {
            member.role = Role::Follower;
            member.asks.clear();
            member.show();
        }
        self.reset_world(&[]);
    }

    /// What was seen waits for the next batch, because the one that would have told the other nodes is
    /// void.
    pub(super) fn keep_last_seen(&self, void: &[OpenBatch]) {
        let mut waiting = self.inner.last_seen.lock();
        for (agent, at) in void.iter().flat_map(|batch| &batch.last_seen) {
            let newest = waiting.entry(*agent).or_insert(*at);
            *newest = (*newest).max(*at);
        }
    }

    /// Takes agents off the list of those online, as the writer does with every batch.
    pub(super) fn expire_presence(&mut self) {
        let now = self.now();
        self.world.expire_online(now);
        self.inner.world.write().expire_online(now);
        self.is_idle = true;
        self.publish_next_due(now);
    }

    /// A batch of this node is published.
    pub(super) fn record_published(&mut self, place: Option<Place>) {
        let (Some(member), Some(place)) = (&mut self.member, place) else { return };
        member.place = place;
        member.show();
        let now = self.inner.clock.now();
        member.hop.announce(member.epoch, place, now, self.store.log().lock().newest_record());
    }
}
