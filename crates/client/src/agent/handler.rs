//! Handlers: the user's code that does jobs.

use std::fmt::Display;
use std::future::Future;
use std::pin::Pin;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::job::{Job, Outcome};

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

/// A [`Handler`] from a function that returns an output or an error.
///
/// The job's input, a JSON object, is parsed as `T`. If that fails, the outcome is
/// [`Outcome::InvalidInput`], which does not count as a failure. `U` is serialized as the output; a value
/// that is not an object is wrapped as `{"result": …}`. An error becomes [`Outcome::Failed`] with
/// its text, which the requester reads.
///
/// ```
/// use rialto_client::agent::typed_handler;
///
/// #[derive(serde::Deserialize)]
/// struct Input {
///     number: u32,
/// }
///
/// let half = typed_handler(async |Input { number }| match number % 2 {
///     0 => Ok(number / 2),
///     _ => Err("it is odd"),
/// });
/// # let _ = half;
/// ```
pub fn typed_handler<T, U, E, W, F>(work: F) -> impl Handler
where
    T: DeserializeOwned,
    U: Serialize,
    E: Display,
    W: Future<Output = Result<U, E>> + Send,
    F: Fn(T) -> W + Send + Sync + 'static,
{
    move |job: Job| {
        let input = job.input::<T>().map(&work);
        async move {
            match input {
                Ok(work) => match work.await {
                    Ok(output) => Outcome::from_output(&output),
                    Err(error) => Outcome::Failed(error.to_string()),
                },
                Err(reason) => Outcome::InvalidInput(format!(
                    "the input does not match the agent's input schema: {reason}"
                )),
            }
        }
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
