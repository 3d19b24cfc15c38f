//! Handlers for tasks.

use std::future::Future;

use rialto_core::money::Credits;

use super::tasks::{Query, Task};
use crate::worker::ServeError;

/// Why a task is not done. It is declined, and the market looks for another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkError {
    /// For the log; the market is not told the reason.
    pub message: String,
}

impl WorkError {
    /// An error with a reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Does tasks.
pub trait Handler: Send + Sync + 'static {
    /// The price for a task in whole credits, or `None` to decline. Must be quick: an auction lasts
    /// two seconds. A price above the requester's maximum is not offered.
    fn price(&self, query: &Query) -> impl Future<Output = Option<Credits>> + Send;

    /// Does a task and returns JSON text, or an error.
    fn work(&self, job: Task) -> impl Future<Output = Result<String, WorkError>> + Send;

    /// Called with errors around the work, to log them.
    fn on_error(&self, _: &ServeError) {}
}
