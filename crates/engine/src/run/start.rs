//! Starting: builds the world, the lane and the handle from a store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};
use rialto_core::id::{EntryId, EventId, JobId, NoticeId, OutcomeId, PostingId, TransferId};
use rialto_core::ledger::Hash;
use rialto_core::market::Market;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};
use tokio::sync::{mpsc, watch};

use super::lane::Lane;
use super::live_inboxes::Live;
use super::reader_pool::Readers;
use super::timers::{Timers, keep_time};
use super::notifier::Wake;
use super::{Engine, Inner, QUEUE};
use crate::clock::Clock;
use crate::random::Ids;
use crate::metrics::Numbers;
use crate::secret::HubSecret;
use crate::store::{Key, Row, Store, StoreError};

/// Connections that read beside the lane.
const READERS: usize = 4;

/// What an engine is made of.
pub struct Setup {
    pub store: Box<dyn Store>,
    pub rules: Rules,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub secret: HubSecret,
    /// The protocol that publishes market records, if one is enabled.
    pub market: Option<Arc<Market>>,
}

/// A running engine and its thread.
pub struct Started {
    pub engine: Engine,
    pub lane: JoinHandle<()>,
}

impl Engine {
    /// Reads the store and starts the lane. Needs a tokio runtime for its timer.
    pub fn start(setup: Setup) -> Result<Started, StoreError> {
        let (engine, lane, due) = assemble(setup)?;
        let lane = std::thread::Builder::new()
            .name("lane".to_owned())
            .spawn(move || run(lane))
            .map_err(|error| StoreError::Broken(error.to_string()))?;
        tokio::spawn(keep_time(engine.lane.downgrade(), Arc::downgrade(&engine.inner), due));
        Ok(Started { engine, lane })
    }
}

/// The handle, its lane, and when that lane must be woken.
type Parts = (Engine, Lane, watch::Receiver<Option<Timestamp>>);

/// Reads the store without starting anything.
pub(crate) fn assemble(setup: Setup) -> Result<Parts, StoreError> {
    let Setup { mut store, rules, clock, ids, secret, market } = setup;
    let mut world = World::new(rules);
    world.market = market;
    world.apply(&store.rebuild()?);
    books_agree(&world, &mut *store)?;
    nothing_is_cut_off(&world, &mut *store)?;
    // A wall clock that was set back must not repeat times that are already stored.
    clock.lift(world.next.at);
    world.sweep(clock.now());
    let readers: Result<Vec<_>, _> = (0..READERS).map(|_| store.reader()).collect();
    let inner = Arc::new(Inner {
        world: RwLock::new(world.clone()),
        readers: Readers::new(readers?),
        wake: Wake::new(EventId(world.next.event.0.saturating_sub(1))),
        live: Live::default(),
        watchers: Default::default(),
        marks: Mutex::default(),
        presented: Mutex::default(),
        signs: Mutex::default(),
        untidy: AtomicBool::new(false),
        clock,
        ids,
        secret,
        broken: watch::Sender::new(None),
        stopping: AtomicBool::new(false),
        numbers: Numbers::new(store.sync_times()),
        commands: AtomicU64::new(0),
        rows_changed: AtomicU64::new(0),
    });
    let timers = Timers::default();
    let (sender, queue) = mpsc::channel(QUEUE);
    let (next_due, due) = watch::channel(timers.next(&world));
    let lane = Lane { world, store, queue, inner: inner.clone(), next_due, timers };
    Ok((Engine { inner, lane: sender }, lane, due))
}

/// Each rule catches its own panics. A panic elsewhere in the lane is a bug and stops the hub.
fn run(lane: Lane) {
    let inner = lane.inner.clone();
    if catch_unwind(AssertUnwindSafe(|| lane.work())).is_err() {
        inner.give_up(&StoreError::Broken("the lane panicked".to_owned()));
    }
}

/// The two ledger checks that cost nothing: the end of the hash chain, and that the balances sum to
/// zero. `audit` does the rest.
fn books_agree(world: &World, store: &mut dyn Store) -> Result<(), StoreError> {
    let newest = EntryId(world.next.entry.0.saturating_sub(1));
    let head = match store.load(Key::Entry(newest))? {
        Some(Row::Entry(entry)) => entry.hash,
        _ if newest == EntryId(0) => Hash::default(),
        _ => return Err(StoreError::Corrupt(format!("ledger entry {newest} is missing"))),
    };
    if head != world.next.chain {
        return Err(StoreError::Corrupt(format!(
            "ledger entry {newest} does not match the hash chain"
        )));
    }
    let pockets = world.owners().flat_map(|owner| [owner.available, owner.held]);
    let sum: i128 = pockets.map(|credits| i128::from(credits.micros())).sum();
    if sum != 0 {
        return Err(StoreError::Corrupt(format!("the sum of all balances is {sum}, expected 0")));
    }
    Ok(())
}

/// Rows outside the world are looked up on demand, and a row that is not found counts as never
/// written. So at least the newest row of each table must exist.
fn nothing_is_cut_off(world: &World, store: &mut dyn Store) -> Result<(), StoreError> {
    let next = &world.next;
    let newest = [
        (next.job.0, Key::Job(JobId(next.job.0.saturating_sub(1)))),
        (next.transfer.0, Key::Transfer(TransferId(next.transfer.0.saturating_sub(1)))),
        (next.notice.0, Key::Notice(NoticeId(next.notice.0.saturating_sub(1)))),
        (next.outcome.0, Key::Outcome(OutcomeId(next.outcome.0.saturating_sub(1)))),
        (next.posting.0, Key::Posting(PostingId(next.posting.0.saturating_sub(1)))),
    ];
    for (_, key) in newest.into_iter().filter(|(next, _)| *next > 1) {
        if store.load(key)?.is_none() {
            return Err(StoreError::Corrupt(format!("{key:?} is missing")));
        }
    }
    Ok(())
}
