//! The key of the request that a task works for.
//!
//! What one request may spend depends on its key, in every protocol. So the key is not passed from
//! handler to handler, where one could forget it: the edge sets it for the whole request, and the
//! engine adds it to each command. A task that a request spawns has it only if it is spawned here.

use std::future::Future;

use rialto_core::agent::key_limits::KeyUse;
use tokio::task::JoinHandle;

tokio::task_local! {
    static CURRENT: Option<KeyUse>;
}

/// The key of the current request. `None` for the hub's own work, and for a caller without the key
/// of an agent.
pub fn current() -> Option<KeyUse> {
    CURRENT.try_with(|key| *key).unwrap_or_default()
}

/// Does the work of a request with this key.
pub async fn scope<F: Future>(key: Option<KeyUse>, work: F) -> F::Output {
    CURRENT.scope(key, work).await
}

/// Does a part of the work of a request with this key.
pub fn sync_scope<R>(key: KeyUse, work: impl FnOnce() -> R) -> R {
    CURRENT.sync_scope(Some(key), work)
}

/// Does work of a request under the hub's default limits, which bind a key without limits of its
/// own.
pub async fn with_default_limits<F: Future>(work: F) -> F::Output {
    let key = current().map(|key| KeyUse { by_default: true, ..key });
    CURRENT.scope(key, work).await
}

/// Spawns work of a request that goes on when its caller hangs up.
pub fn spawn<F>(work: F) -> JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    tokio::spawn(CURRENT.scope(current(), work))
}
