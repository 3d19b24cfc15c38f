//! One node: the real engine with a manual lane, and the fold of the log that its worlds must equal.

use std::collections::BTreeMap;
use std::sync::Arc;

use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use rialto_engine::clock::Clock;
use rialto_engine::cluster::frame::Hop;
use rialto_engine::cluster::memory::{AppendFault, MemoryCluster};
use rialto_engine::cluster::mistake::Mistake;
use rialto_engine::cluster::{Lease, Look, LookQuery, NodeId, NodeReport, SharedLog};
use rialto_engine::secret::HubSecret;
use rialto_engine::store::{Store, StoreError};
use rialto_engine::testkit::{ManualClock, SeededRandom};
use rialto_engine::{DecidedCommand, Engine, EngineParts, InboxSubscription, ManualLane};

use super::history::{History, RequestId};
use super::network::Network;
use super::reference::Reference;
use crate::model::markets;
use crate::view;

/// Every this many times, whole worlds are compared, and otherwise the rows that have changed.
const WHOLE: u64 = 16;

/// A batch that a node has decided and tries to append.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub number: u64,
    pub epoch: u64,
    pub at: Timestamp,
    /// `None` for the first batch of an epoch.
    pub commands: Option<Vec<DecidedCommand>>,
}

/// How an attempt ended, as far as its node knows.
#[derive(Debug)]
pub enum AppendEnd {
    /// It is in the log, or may be, or never will be.
    Logged,
    /// The node answered without a record, from the state of this place.
    Unrecorded(u64, Attempt),
}

/// A batch that another thread appends.
struct HeldAppend {
    attempt: Attempt,
    /// What the thread has done with it, once it was let go on.
    released: Option<ReleaseResult>,
}

#[derive(Clone, Copy, Default)]
struct ReleaseResult {
    /// The database had no space.
    was_full: bool,
    /// It has no record, and no other node had written.
    is_confirmed: bool,
}

/// What a node found in the log.
pub struct LookResult {
    /// The number of the newest batch.
    pub head: u64,
    pub lease: Lease,
    /// How the append ended that the node was waiting for, if it waited for one.
    pub end: AppendEnd,
}

/// A node of the cluster.
pub struct Node {
    pub id: NodeId,
    pub engine: Engine,
    pub clock: Arc<ManualClock>,
    pub hop: Arc<dyn Hop>,
    /// The lease that this node has taken to begin to write. One whose first batch is in doubt is
    /// never used again: an epoch begins once.
    pub lease: Option<Lease>,
    /// The lease with which it writes, or wrote last.
    leading: Option<Lease>,
    /// The lease as of its last look.
    pub seen_lease: Lease,
    /// It does nothing, and goes on later as if no time had passed.
    pub is_paused: bool,
    pub is_cut: bool,
    pub inboxes: BTreeMap<AgentId, InboxSubscription>,
    database: MemoryCluster,
    lane: ManualLane,
    log: Box<dyn SharedLog>,
    /// Requests that the lane has not taken yet.
    queued: Vec<RequestId>,
    held: Option<HeldAppend>,
    /// The fold of the log up to the place of this node.
    fold: World,
    folded: u64,
    /// Whether its worlds may have changed since they were compared.
    is_touched: bool,
    /// Whether all of its worlds may have changed, and not only what its batches say.
    is_unknown: bool,
    /// The place up to which the working world was compared.
    compared: u64,
    was_writer: bool,
    checks: u64,
    /// The time up to which both worlds have taken agents off the list of those online, if known.
    presence_at: Option<Timestamp>,
}

/// What a node is started with.
pub struct NodeParts<'a> {
    pub database: &'a MemoryCluster,
    pub network: &'a Network,
    pub reference: &'a Reference,
    pub rules: Rules,
    pub seed: u64,
    pub wall: Timestamp,
    pub mistake: Option<Mistake>,
}

impl Node {
    /// Starts a node from the database.
    pub fn start(parts: NodeParts<'_>) -> Self {
        let NodeParts { database, network, reference, rules, seed, wall, mistake } = parts;
        let (store, clock) = (database.store(), ManualClock::at(wall));
        let log = store.open_shared_log().expect("it is in memory").expect("it is shared");
        let setup = EngineParts {
            store: Box::new(store),
            rules,
            clock: clock.clone(),
            random: SeededRandom::new(seed),
            secret: HubSecret::from_bytes([7; 32]),
            markets: markets(),
            cluster: None,
        };
        let mut joined = None;
        let started = ManualLane::start_node(setup, |node, events| {
            let hop = network.add(node, events);
            joined = Some((node, hop.clone()));
            hop
        });
        let (engine, lane) = started.expect("the log can be read");
        let (id, hop) = joined.expect("a node has connections");
        if let Some(mistake) = mistake {
            lane.plant(mistake);
        }
        let mut node = Self {
            id,
            engine,
            clock,
            hop,
            lease: None,
            leading: None,
            seen_lease: Lease::default(),
            is_paused: false,
            is_cut: false,
            inboxes: BTreeMap::new(),
            database: database.clone(),
            lane,
            log,
            queued: Vec::new(),
            held: None,
            fold: reference.world().clone(),
            folded: reference.head(),
            is_touched: true,
            is_unknown: true,
            compared: reference.head(),
            was_writer: false,
            checks: 0,
            presence_at: None,
        };
        node.report();
        node.presence_at = Some(node.lane.now());
        node
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub fn place(&self) -> u64 {
        self.lane.place().number
    }

    /// The epoch of the newest batch that it has applied.
    pub fn epoch(&self) -> u64 {
        self.engine.cluster_status().map_or(0, |status| status.epoch)
    }

    pub fn is_writer(&self) -> bool {
        self.engine.is_writer()
    }

    /// Whether another thread has a batch of this node.
    pub fn is_appending(&self) -> bool {
        self.held.is_some()
    }

    pub fn has_open_batch(&self) -> bool {
        self.lane.open_batch().is_some()
    }

    fn report(&mut self) {
        let report = NodeReport { node: self.id, ..NodeReport::default() };
        self.log.report(&report).expect("a new node is not cut off");
    }

    /// A request is on its way to the lane.
    pub fn queue(&mut self, request: RequestId) {
        self.queued.push(request);
    }

    /// Takes everything that has arrived: a writer decides it, a follower passes it on.
    pub fn decide(&mut self, history: &mut History) {
        self.is_touched = true;
        self.lane.handle_events();
        let before = self.lane.newest_number();
        self.lane.decide_batch();
        let taken = std::mem::take(&mut self.queued);
        assert_eq!(self.lane.newest_number() - before, taken.len() as u64, "all are taken, once");
        for (request, number) in taken.into_iter().zip(before + 1..) {
            history.number(self.id, number, request);
        }
        if !self.is_writer() {
            self.presence_at = Some(self.lane.now());
        }
    }

    /// What is about to be appended.
    fn attempt(&self, reference: &mut Reference) -> Option<Attempt> {
        let (commands, at) = (self.lane.open_batch()?, self.lane.open_batch_at()?);
        let commands = Some(commands.to_vec());
        let attempt = Attempt { number: self.place() + 1, epoch: self.epoch(), at, commands };
        reference.expect(attempt.clone());
        Some(attempt)
    }

    /// Appends the open batch.
    pub fn append(&mut self, reference: &mut Reference, fault: Option<AppendFault>) -> AppendEnd {
        let Some(attempt) = self.attempt(reference) else { return AppendEnd::Logged };
        self.is_touched = true;
        fault.into_iter().for_each(|fault| self.database.arm(fault));
        self.lane.append_batch();
        let was_full = !self.database.disarm() && fault == Some(AppendFault::Full);
        self.is_unknown |= was_full;
        let is_published = self.is_writer() && !was_full;
        self.presence_at = Some(self.now()).filter(|now| attempt.at == *now && is_published);
        self.ended(attempt, ReleaseResult { was_full, is_confirmed: false })
    }

    /// Gives the open batch to another thread, which waits. False if the lane would not do that.
    pub fn begin_append(&mut self, reference: &mut Reference) -> bool {
        let has_reply = |one: &&DecidedCommand| one.asked_by.is_some();
        let replies = self.lane.open_batch().map_or(0, |all| all.iter().filter(has_reply).count());
        if replies < 2 || self.held.is_some() {
            return false;
        }
        let Some(attempt) = self.attempt(reference) else { return false };
        self.database.hold_append(self.id);
        self.lane.begin_append().expect("a thread can be started");
        assert!(self.lane.is_appending(), "a batch with several replies is for the log thread");
        self.held = Some(HeldAppend { attempt, released: None });
        true
    }

    /// Lets the thread append. The lane learns of it later.
    pub fn release_append(&mut self, fault: Option<AppendFault>) {
        let Some(held) = self.held.as_mut().filter(|held| held.released.is_none()) else { return };
        let place = self.lane.place();
        let is_head = self.database.head() == place;
        fault.into_iter().for_each(|fault| self.database.arm(fault));
        self.database.release_append(self.id);
        let has_fault = !self.database.disarm() && fault.is_some();
        let is_unwritten = self.database.head() == place;
        held.released = Some(ReleaseResult {
            was_full: has_fault && fault == Some(AppendFault::Full),
            is_confirmed: is_head && is_unwritten && !has_fault && !self.is_cut,
        });
    }

    /// The lane learns how the append ended.
    pub fn finish_append(&mut self) -> AppendEnd {
        self.release_append(None);
        let Some(HeldAppend { attempt, released }) = self.held.take() else {
            return AppendEnd::Logged;
        };
        (self.is_touched, self.presence_at) = (true, None);
        self.lane.finish_append();
        let released = released.unwrap_or_default();
        self.is_unknown |= released.was_full;
        self.ended(attempt, released)
    }

    fn ended(&self, attempt: Attempt, released: ReleaseResult) -> AppendEnd {
        let ReleaseResult { was_full, is_confirmed } = released;
        let goes_on = self.is_writer() && self.epoch() == attempt.epoch;
        let has_no_place = goes_on && self.place() + 1 == attempt.number;
        match is_confirmed || has_no_place && !was_full {
            true => AppendEnd::Unrecorded(attempt.number - 1, attempt),
            false => AppendEnd::Logged,
        }
    }

    /// Looks at the log as the coordinator does. `None` if the database cannot be reached.
    pub fn look(&mut self) -> Option<LookResult> {
        let after = self.lane.place();
        let query = LookQuery { after, with_batches: !self.is_writer() };
        let mut look = self.try_look(query)?;
        let (lease, mut head) = (look.lease.clone(), look.head.number);
        self.seen_lease = lease.clone();
        let mut held = None;
        // Its own batch is no news, also if the lane has not learnt of it yet.
        if self.is_writer() && head > after.number && look.head_epoch != self.epoch() {
            look = self.try_look(LookQuery { after, with_batches: true })?;
            head = look.head.number;
            self.release_append(None);
            held = self.held.take();
        }
        if !look.batches.is_empty() {
            self.is_touched = true;
            self.lane.apply_batches(look.batches);
            self.presence_at = Some(self.lane.now());
        }
        if self.lease.as_ref().is_some_and(|mine| mine.epoch != lease.epoch) {
            self.lease = None;
        }
        let end = held.map_or(AppendEnd::Logged, |HeldAppend { attempt, released }| {
            self.ended(attempt, released.unwrap_or_default())
        });
        Some(LookResult { head, lease, end })
    }

    fn try_look(&mut self, query: LookQuery) -> Option<Look> {
        match self.log.look(query) {
            Ok(look) => Some(look),
            Err(StoreError::Unreachable(_)) => None,
            Err(error) => panic!("the log cannot be followed: {error}"),
        }
    }

    /// Takes the lease, if it is as this node has just seen it.
    pub fn take_lease(&mut self, seen: &Lease) -> bool {
        self.lease = self.log.take_lease(seen, self.id, "").ok().flatten();
        self.lease.is_some()
    }

    /// Appends the first batch of its epoch. False if it does not write now.
    pub fn lead(&mut self, reference: &mut Reference, fault: Option<AppendFault>) -> bool {
        let Some(lease) = self.lease.take() else { return false };
        let (number, at) = (self.place() + 1, self.now());
        reference.expect(Attempt { number, epoch: lease.epoch, at, commands: None });
        (self.is_touched, self.presence_at) = (true, None);
        fault.into_iter().for_each(|fault| self.database.arm(fault));
        let led = self.lane.lead(&lease);
        self.database.disarm();
        let is_leading = led.is_ok();
        match led {
            Ok(()) => self.leading = Some(lease),
            // Another node has written in this place, so this one has not.
            Err(StoreError::Taken { .. }) => self.lease = Some(lease),
            Err(_) => {}
        }
        is_leading
    }

    /// Shows that this writer is alive.
    pub fn beat(&mut self) {
        if let Some(lease) = &self.leading {
            let _ = self.log.beat(lease);
        }
    }

    /// Lets another node write, with what it has decided or without.
    pub fn resign(&mut self, reference: &mut Reference) -> AppendEnd {
        let attempt = self.attempt(reference);
        (self.is_touched, self.presence_at) = (true, None);
        self.lane.resign();
        if let Some(lease) = self.leading.take() {
            let _ = self.log.release_lease(&lease);
        }
        let is_head = self.database.head().number == self.place();
        match attempt.filter(|attempt| attempt.number == self.place() + 1) {
            Some(attempt) if is_head && !self.is_cut => {
                AppendEnd::Unrecorded(self.place(), attempt)
            }
            _ => AppendEnd::Logged,
        }
    }

    /// Tells the writer what was seen and presented here.
    pub fn note(&self) {
        self.hop.note(self.lane.take_notes());
    }

    pub fn set_cut(&mut self, is_cut: bool) {
        self.is_cut = is_cut;
        self.database.set_cut(self.id, is_cut);
    }

    /// Panics unless both worlds are the fold of the log up to the place of this node.
    pub fn check(&mut self, reference: &Reference) {
        let place = self.place();
        if !self.is_touched && place == self.folded {
            return;
        }
        self.is_touched = false;
        assert!(self.lane.goes_on(), "a lane has stopped");
        let shown = self.folded;
        for logged in reference.batches(shown, place) {
            for (agent, at) in &logged.batch.for_nodes.last_seen {
                self.fold.record_activity(*agent, *at);
            }
            self.fold.replay(&logged.batch.changes, &logged.batch.expired);
        }
        self.folded = place;
        let (now, presence_at) = (self.now(), self.presence_at.take());
        presence_at.into_iter().for_each(|at| self.fold.expire_online(at));
        self.checks += 1;
        let has_new_role = self.is_writer() != self.was_writer;
        self.was_writer ^= has_new_role;
        self.is_unknown |= has_new_role || self.checks.is_multiple_of(WHOLE);
        let (fold, is_whole) = (&self.fold, self.is_unknown);
        let is_equal = |world: &World, after: u64| {
            for logged in reference.batches(after, place) {
                view::has_the_changed_rows(world, fold, &logged.batch.changes);
            }
            if presence_at.is_some() {
                view::is_online_alike(world, fold);
            }
            if is_whole {
                view::has_the_rows(world, fold);
            }
            if is_whole && presence_at.is_some() {
                view::is_found_alike(world, fold, now);
            }
        };
        self.engine.with_world(|world| is_equal(world, shown));
        if self.lane.open_batch().is_none() && self.held.is_none() {
            is_equal(self.lane.working_world(), self.compared);
            (self.compared, self.is_unknown) = (place, false);
        }
    }
}

impl Drop for Node {
    /// The thread that appends ends with its node.
    fn drop(&mut self) {
        self.release_append(None);
    }
}
