//! Who does the work.

use std::future::Future;
use std::pin::Pin;

use super::job::Job;
use super::outcome::Outcome;

/// Does jobs. Any function from a [`Job`] to a future [`Outcome`] is one.
///
/// A job may be asked for again after a crash, with the same id and turn: a handler that can tell
/// should then answer with what it made the first time. When a job is called off, or its time is
/// over, the future is dropped where it waits.
pub trait Handler: Send + Sync + 'static {
    /// Does one job.
    fn work(&self, job: Job) -> impl Future<Output = Outcome> + Send;

    /// The agent ends: whatever stays between jobs is ended, too.
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

/// Any handler behind one type.
pub(super) trait AnyHandler: Send + Sync {
    fn begin(&self, job: Job) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>>;
    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;
}

impl<H: Handler> AnyHandler for H {
    fn begin(&self, job: Job) -> Pin<Box<dyn Future<Output = Outcome> + Send + '_>> {
        Box::pin(self.work(job))
    }

    fn end(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.close())
    }
}
