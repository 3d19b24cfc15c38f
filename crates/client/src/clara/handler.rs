//! Handlers for tasks.

use std::future::Future;

use rialto_core::money::Credits;

use super::record::{Asked, Job};
use super::serve::Mishap;

/// Why a task is not done. It is declined, and the market looks for another agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// For the log; the market is not told the reason.
    pub message: String,
}

impl Broken {
    /// An error with a reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// Does tasks.
pub trait Handler: Send + Sync + 'static {
    /// The price for a task in whole credits, or `None` to decline. Must be quick: an auction lasts
    /// two seconds. A price above the requester's maximum is not offered.
    fn price(&self, asked: &Asked) -> impl Future<Output = Option<Credits>> + Send;

    /// Does a task and returns JSON text, or an error.
    fn work(&self, job: Job) -> impl Future<Output = Result<String, Broken>> + Send;

    /// Called with errors around the work, to log them.
    fn mishap(&self, _: &Mishap) {}
}
