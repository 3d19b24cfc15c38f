//! Runs CPU-heavy work on the blocking pool, a few tasks at a time.

use tokio::sync::Semaphore;

/// The most schemas compiled or checked at the same time; more wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// Runs the work on the blocking pool; `None` if it panicked.
pub async fn run_blocking_limited<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let _turn = AT_ONCE.acquire().await.ok()?;
    tokio::task::spawn_blocking(work).await.ok()
}
