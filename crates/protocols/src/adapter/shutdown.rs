//! Shutdown signal: long-running responses end when the hub stops, or when its node does not have the
//! newest state any more. Then the client goes on at another node.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use tokio::sync::watch;

use super::HubContext;

/// Whether responses must end.
#[derive(Clone, Default)]
pub struct Shutdown {
    /// Whether the hub is stopping, if the program that runs it reports that.
    stopping: Option<watch::Receiver<bool>>,
    /// Whether the node is current; `None` at a hub of one node.
    current: Option<watch::Receiver<bool>>,
}

impl Shutdown {
    pub fn new(stopping: watch::Receiver<bool>) -> Self {
        Self { stopping: Some(stopping), current: None }
    }

    /// Also ends responses when a node ceases to be current.
    pub fn or_stale(self, current: Option<watch::Receiver<bool>>) -> Self {
        Self { current, ..self }
    }

    /// A dropped sender counts as a request.
    pub fn is_requested(&self) -> bool {
        let is = |signal: &Option<watch::Receiver<bool>>, end: bool| {
            let signal = signal.as_ref();
            signal.is_some_and(|signal| *signal.borrow() == end || signal.has_changed().is_err())
        };
        is(&self.stopping, true) || is(&self.current, false)
    }

    /// Waits for the request.
    pub async fn wait(&mut self) {
        let Self { stopping, current } = self;
        tokio::select! {
            () = wait_for(stopping, true) => {}
            () = wait_for(current, false) => {}
        }
    }
}

async fn wait_for(signal: &mut Option<watch::Receiver<bool>>, end: bool) {
    match signal {
        Some(signal) => drop(signal.wait_for(|value| *value == end).await),
        None => std::future::pending().await,
    }
}

impl<S: Sync> FromRequestParts<S> for Shutdown
where
    HubContext: FromRef<S>,
{
    type Rejection = Infallible;

    async fn from_request_parts(_: &mut Parts, state: &S) -> Result<Self, Infallible> {
        Ok(HubContext::from_ref(state).shutdown.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn responses_end_when_the_hub_stops_or_the_node_is_not_current() {
        let (stop, stopping) = watch::channel(false);
        let (current, is_current) = watch::channel(true);
        let signal = Shutdown::new(stopping).or_stale(Some(is_current));
        assert!(!signal.is_requested());
        current.send_replace(false);
        assert!(signal.is_requested());
        signal.clone().wait().await;
        current.send_replace(true);
        assert!(!signal.is_requested(), "a response that begins now goes on");
        stop.send_replace(true);
        assert!(signal.is_requested());
        signal.clone().wait().await;
    }
}
