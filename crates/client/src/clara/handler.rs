//! Who does the work.

use std::future::Future;

use rialto_core::money::Credits;

use super::record::{Asked, Job};
use super::serve::Mishap;

/// Why a task is not done; it is declined, and the market looks for somebody else.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// For whoever reads the log: the market is told no reasons.
    pub message: String,
}

impl Broken {
    /// With a reason.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into() }
    }
}

/// A worker.
pub trait Handler: Send + Sync + 'static {
    /// For how many whole credits it would do a task; `None` for not at all. Must be quick: an
    /// auction lasts two seconds. What is more than the requester pays is not offered.
    fn price(&self, asked: &Asked) -> impl Future<Output = Option<Credits>> + Send;

    /// Does a task: JSON text, or why not.
    fn work(&self, job: Job) -> impl Future<Output = Result<String, Broken>> + Send;

    /// Is told what went wrong around its work, to log it.
    fn mishap(&self, _: &Mishap) {}
}
