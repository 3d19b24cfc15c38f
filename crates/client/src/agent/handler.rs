//! Handlers: the user's code that does jobs.

use std::future::Future;
use std::pin::Pin;

use super::job::Job;
use super::outcome::Outcome;

/// Does jobs. Any function from a [`Job`] to a future [`Outcome`] is a handler.
///
/// After a crash the same job may arrive again, with the same id and epoch. A handler that
/// recognises it should then return its first result. When a job is cancelled or its time limit is
/// over, the future is dropped.
pub trait Handler: Send + Sync + 'static {
    /// Does one job.
    fn work(&self, job: Job) -> impl Future<Output = Outcome> + Send;

    /// Called when the agent stops. Ends everything that lives longer than one job.
    fn close(&self) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

impl<F, W> Handler for F
where
    F: Fn(Job) -> W + Send + Sync + 'static,
    W: Future<Output = Outcome> + Send,
{
    fn work(&self, job: Job) -> impl Future<Output = Outcome> + Send {
        self(job)
    }
}

/// Type-erased handler.
pub(super) trait DynHandler: Send + Sync {
    fn begin(&self, job: Job) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>>;
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<H: Handler> DynHandler for H {
    fn begin(&self, job: Job) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(self.work(job))
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.close())
    }
}
