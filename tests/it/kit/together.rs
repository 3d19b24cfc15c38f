//! Concurrent calls.

use std::future::poll_fn;
use std::task::Poll;

/// Runs all futures concurrently and returns their results in order.
pub async fn together<T>(all: impl IntoIterator<Item = impl Future<Output = T>>) -> Vec<T> {
    let mut running: Vec<_> = all.into_iter().map(|one| (Some(Box::pin(one)), None)).collect();
    poll_fn(|context| {
        for (slot, done) in &mut running {
            let Some(one) = slot else { continue };
            if let Poll::Ready(value) = one.as_mut().poll(context) {
                *done = Some(value);
                *slot = None;
            }
        }
        if running.iter().all(|(slot, _)| slot.is_none()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    running.into_iter().filter_map(|(_, done)| done).collect()
}
