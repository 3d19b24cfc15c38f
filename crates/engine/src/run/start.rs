//! Starting: a store becomes a world, a lane and a handle.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use parking_lot::{Mutex, RwLock};
use rialto_core::world::{Rules, World};
use tokio::sync::{Semaphore, mpsc, watch};

use super::lane::{Lane, keep_time};
use super::wake::Wake;
use super::{Engine, Inner, QUEUE};
use crate::clock::Clock;
use crate::ids::Ids;
use crate::secret::HubSecret;
use crate::store::{Store, StoreError};

/// Connections that read beside the lane.
const READERS: usize = 4;

/// What an engine is made of.
pub struct Setup {
    pub store: Box<dyn Store>,
    pub rules: Rules,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn Ids>,
    pub secret: HubSecret,
}

/// A running engine and its thread.
pub struct Started {
    pub engine: Engine,
    pub lane: JoinHandle<()>,
}

impl Engine {
    /// Reads the store and starts the lane. Needs a tokio runtime for its timer.
    pub fn start(setup: Setup) -> Result<Started, StoreError> {
        let Setup { mut store, rules, clock, ids, secret } = setup;
        let mut world = World::new(rules);
        world.apply(&store.rebuild()?);
        world.sweep(clock.now());
        let (lane, queue) = mpsc::channel(QUEUE);
        let (next_due, due) = watch::channel(world.next_timer().into_iter().chain(world.next_offline()).min());
        let readers: Result<Vec<_>, _> = (0..READERS).map(|_| store.reader()).collect();
        let inner = Arc::new(Inner {
            lane,
            world: RwLock::new(world.clone()),
            readers: Mutex::new(readers?),
            reading: Semaphore::new(READERS),
            wake: Wake::default(),
            signs: Mutex::default(),
            clock,
            ids,
            secret,
            broken: watch::Sender::new(None),
            stopping: AtomicBool::new(false),
        });
        let thread = {
            let lane = Lane { world, store, queue, inner: inner.clone(), next_due };
            std::thread::Builder::new().name("lane".to_owned()).spawn(move || lane.work())
        };
        let lane = thread.map_err(|error| StoreError::Broken(error.to_string()))?;
        tokio::spawn(keep_time(Arc::downgrade(&inner), due));
        Ok(Started { engine: Engine { inner }, lane })
    }
}
