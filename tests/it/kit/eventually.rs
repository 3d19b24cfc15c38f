//! Waiting for what comes by itself.

use std::time::Duration;

/// Asks again and again until the answer is yes, and gives up in the end.
#[track_caller]
pub fn eventually(mut asked: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let wait = async {
            while !asked().await {
                tokio::task::yield_now().await;
            }
        };
        let done = tokio::time::timeout(Duration::from_secs(20), wait).await;
        assert!(done.is_ok(), "never came true at {caller}");
    }
}
