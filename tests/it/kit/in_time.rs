//! Awaiting a future with a deadline.

use std::time::Duration;

/// Longer than anything takes on a busy machine.
const DEADLINE: Duration = Duration::from_secs(120);

/// Awaits the future, and fails at the deadline.
#[track_caller]
pub fn in_time<T>(waited: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let came = tokio::time::timeout(DEADLINE, waited).await;
        came.unwrap_or_else(|_| panic!("the future did not finish at {caller}"))
    }
}
