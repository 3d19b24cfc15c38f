//! Runs commands on the store of a stopped hub, for what an operator cannot do on a running one.

use std::path::Path;

use rialto_core::changes::ExpiredRows;
use rialto_core::command::Command;
use rialto_core::time::Timestamp;
use rialto_core::world::{Rules, World};

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
    // A clock that was set back must not repeat times that are already stored.
    let now = now.max(world.next.at);
    let (changes, _) = rialto_core::decide(&world, command, now)
        .map_err(|refusal| StoreError::Failed(refusal.to_string()))?;
    store.commit(&changes, &ExpiredRows::default())?;
    world.apply(&changes);
    Ok(world)
}
