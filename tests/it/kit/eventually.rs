//! Waiting for what comes by itself.

use std::time::Duration;

/// Long enough for a disk that others keep busy.
const DEADLINE: Duration = Duration::from_secs(60);
/// Between two looks, so that whoever is waited for gets the processor.
const PAUSE: Duration = Duration::from_millis(2);

/// Asks again and again until the answer is yes, and gives up in the end.
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
        assert!(done.is_ok(), "never came true at {caller}");
    }
}
