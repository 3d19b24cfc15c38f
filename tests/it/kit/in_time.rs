//! Waiting for what has to come.

use std::time::Duration;

/// Longer than anything takes on a machine that others keep busy.
const DEADLINE: Duration = Duration::from_secs(120);

/// What is waited for, unless it takes so long that it will never come.
#[track_caller]
pub fn in_time<T>(waited: impl Future<Output = T>) -> impl Future<Output = T> {
    let caller = std::panic::Location::caller();
    async move {
        let came = tokio::time::timeout(DEADLINE, waited).await;
        came.unwrap_or_else(|_| panic!("waited in vain at {caller}"))
    }
}
