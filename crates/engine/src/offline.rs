//! Runs commands on the store of a stopped hub, for what an operator cannot do on a running one.

use std::path::Path;

use rialto_core::changes::{Batch, Changes, ExpiredRows};
use rialto_core::command::Command;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};

use crate::cluster::{LookQuery, NodeId};
use crate::store::postgres::admin::DatabaseAdmin;
use crate::store::postgres::{PostgresOptions, PostgresStore};
use crate::store::sqlite::{DB_FILE, SqliteStore};
use crate::store::{Store, StoreError};

/// Runs one command on a data directory that is not in use, and returns the resulting world. Only
/// for commands that need no settings.
pub fn run_command(dir: &Path, command: Command, now: Timestamp) -> Result<World, StoreError> {
    if !dir.join(DB_FILE).exists() {
        return Err(StoreError::Missing(dir.display().to_string()));
    }
    let mut store = SqliteStore::open(dir)?;
    let mut world = World::new(Rules::default());
    store.load_world(&mut world)?;
    let (changes, _) = decide(&world, command, now)?;
    store.commit(&changes, &ExpiredRows::default())?;
    world.apply(&changes);
    Ok(world)
}

/// Runs one command on a database without running nodes, as a writer of its own epoch: a node that
/// was only paused cannot append after it.
pub fn run_command_in_database(
    url: &str,
    command: Command,
    now: Timestamp,
) -> Result<World, StoreError> {
    let mut database = DatabaseAdmin::open(url)?;
    if !database.live_nodes()?.is_empty() {
        return Err(StoreError::InUse(database.name()));
    }
    let mut store = PostgresStore::open(url, PostgresOptions::default())?;
    let mut world = World::new(Rules::default());
    store.load_world(&mut world)?;
    let (changes, now) = decide(&world, command, now)?;
    let mut shared = store.open_shared_log()?.ok_or_else(|| {
        StoreError::Failed("the store is not one that several nodes share".to_owned())
    })?;
    let place = store.place();
    let look = shared.look(LookQuery { after: place, with_batches: false })?;
    let node = getrandom::u64().map_err(|error| StoreError::Failed(error.to_string()))?;
    let node = NodeId((node >> 1).max(1));
    let lease = shared.take_lease(&look.lease, node, "")?;
    let lease = lease.ok_or_else(|| StoreError::InUse(database.name()))?;
    let mut batch = Batch::new(changes.clone(), ExpiredRows::default());
    batch.for_nodes.at = now;
    let log = store.log();
    log.lock().continue_at(place, lease.epoch, world.next);
    let place = log.lock().append(&batch)?;
    store.set_writing(true);
    store.publish(Some(place), &changes, &batch.expired);
    // Writes the tables.
    drop(store);
    shared.release_lease(&lease)?;
    world.apply(&changes);
    Ok(world)
}

/// Decides a command, and returns its changes and its time.
fn decide(
    world: &World,
    command: Command,
    now: Timestamp,
) -> Result<(Changes, Timestamp), StoreError> {
    // A clock that was set back must not repeat times that are already stored.
    let now = now.max(world.next.at);
    let (changes, _) = rialto_core::decide(world, command, now)
        .map_err(|refusal| StoreError::Failed(refusal.to_string()))?;
    Ok((changes, now))
}
