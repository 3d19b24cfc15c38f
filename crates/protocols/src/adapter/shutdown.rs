//! Shutdown signal: long-running responses end when the hub stops.

use std::convert::Infallible;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use tokio::sync::watch;

/// Whether the hub is stopping, if the program that runs it reports that.
#[derive(Clone, Default)]
pub struct Shutdown(Option<watch::Receiver<bool>>);

impl Shutdown {
    pub fn new(told: watch::Receiver<bool>) -> Self {
        Self(Some(told))
    }

    /// A dropped sender counts as a shutdown request.
    pub fn is_requested(&self) -> bool {
        let told = self.0.as_ref();
        told.is_some_and(|told| *told.borrow() || told.has_changed().is_err())
    }

    /// Waits for the shutdown request.
    pub async fn wait(&mut self) {
        match &mut self.0 {
            Some(told) => drop(told.wait_for(|stop| *stop).await),
            None => std::future::pending().await,
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Shutdown {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self(parts.extensions.get().cloned()))
    }
}
