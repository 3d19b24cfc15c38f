//! A lock per run directory, held while checking for an earlier run and starting a new one: the
//! same job may be requested twice at the same moment.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex as Lock, PoisonError, Weak};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// The directories that are locked or waited for.
static LOCKS: Lock<BTreeMap<PathBuf, Weak<Mutex<()>>>> = Lock::new(BTreeMap::new());

/// Waits for the lock of a directory within this process; the guard holds it.
pub(super) async fn lock_directory(directory: &Path) -> OwnedMutexGuard<()> {
    let door = lock_for(directory);
    door.lock_owned().await
}

fn lock_for(directory: &Path) -> Arc<Mutex<()>> {
    let mut doors = LOCKS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(door) = doors.get(directory).and_then(Weak::upgrade) {
        return door;
    }
    doors.retain(|_, door| door.strong_count() > 0);
    let door = Arc::default();
    doors.insert(directory.to_owned(), Arc::downgrade(&door));
    door
}
