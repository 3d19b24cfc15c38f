//! Polling for a condition that becomes true by itself.

use std::time::Duration;

/// Long enough for a busy disk.
const DEADLINE: Duration = Duration::from_secs(60);
/// The pause between two checks, so that the awaited task gets the processor.
const PAUSE: Duration = Duration::from_millis(2);

/// Checks a condition until it is true, and fails at the deadline.
#[track_caller]
pub fn eventually(mut asked: impl AsyncFnMut() -> bool) -> impl Future<Output = ()> {
    let caller = std::panic::Location::caller();
    async move {
        let wait = async {
            while !asked().await {
                tokio::time::sleep(PAUSE).await;
            }
        };
        let done = tokio::time::timeout(DEADLINE, wait).await;
        assert!(done.is_ok(), "the condition stayed false at {caller}");
    }
}
