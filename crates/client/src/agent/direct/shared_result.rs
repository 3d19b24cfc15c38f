//! The result of a running task, shared by all that wait for it.

use std::sync::Arc;

use tokio::sync::watch;

/// The future result of a task. Clones share it.
#[derive(Debug)]
pub(crate) struct SharedResult<T>(Arc<watch::Sender<State<T>>>);

#[derive(Debug)]
struct State<T> {
    value: Option<T>,
    /// A caller was promised that the result will be sent to it.
    promised: bool,
}

impl<T> Clone for SharedResult<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T: Clone> SharedResult<T> {
    pub(crate) fn new() -> Self {
        Self(Arc::new(watch::Sender::new(State { value: None, promised: false })))
    }

    /// The result, if the task has finished.
    pub(crate) fn get(&self) -> Option<T> {
        self.0.borrow().value.clone()
    }

    /// Waits for the result.
    pub(crate) async fn wait(&self) -> T {
        let mut stage = self.0.subscribe();
        loop {
            if let Some(over) = stage.borrow_and_update().value.clone() {
                return over;
            }
            // `self` holds the sender, so the channel cannot be closed.
            let _ = stage.changed().await;
        }
    }

    /// The result, if there is one. Otherwise records the promise to send it later.
    pub(crate) fn get_or_promise(&self) -> Option<T> {
        let mut over = None;
        self.0.send_if_modified(|stage| {
            over.clone_from(&stage.value);
            stage.promised = stage.value.is_none();
            false
        });
        over
    }

    /// Sets the result and returns whether a caller was promised it. The first result counts:
    /// `None` if there was one already.
    pub(crate) fn complete(&self, outcome: T) -> Option<bool> {
        let mut first = None;
        self.0.send_if_modified(|stage| {
            if stage.value.is_some() {
                return false;
            }
            stage.value = Some(outcome);
            first = Some(stage.promised);
            true
        });
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_word_counts_and_everybody_hears_it() {
        let work = SharedResult::new();
        let waiting = tokio::spawn({
            let work = work.clone();
            async move { work.wait().await }
        });
        assert_eq!(work.get(), None);
        assert_eq!(work.complete(1), Some(false));
        assert_eq!(work.complete(2), None);
        assert_eq!((waiting.await.expect("it ends"), work.wait().await), (1, 1));
        assert_eq!(work.get_or_promise(), Some(1));
    }

    #[test]
    fn who_was_promised_is_to_be_told() {
        let work = SharedResult::new();
        assert_eq!(work.get_or_promise(), None);
        assert_eq!(work.complete(1), Some(true));
    }
}
