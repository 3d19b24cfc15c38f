//! Shutdown signal: long-running responses end when the hub stops.

use std::convert::Infallible;

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use tokio::sync::watch;

use super::HubContext;

/// Whether the hub is stopping, if the program that runs it reports that.
#[derive(Clone, Default)]
pub struct Shutdown(Option<watch::Receiver<bool>>);

impl Shutdown {
    pub fn new(signal: watch::Receiver<bool>) -> Self {
        Self(Some(signal))
    }

    /// A dropped sender counts as a shutdown request.
    pub fn is_requested(&self) -> bool {
        let signal = self.0.as_ref();
        signal.is_some_and(|signal| *signal.borrow() || signal.has_changed().is_err())
    }

    /// Waits for the shutdown request.
    pub async fn wait(&mut self) {
        match &mut self.0 {
            Some(signal) => drop(signal.wait_for(|stop| *stop).await),
            None => std::future::pending().await,
        }
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
