//! Handlers from functions over your own types.

use std::fmt::Display;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handler::Handler;
use super::job::Job;
use super::outcome::Outcome;

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
        let begun = job.input::<T>().map(&work);
        async move {
            match begun {
                Ok(work) => match work.await {
                    Ok(output) => Outcome::from_output(&output),
                    Err(why) => Outcome::Failed(why.to_string()),
                },
                Err(reason) => Outcome::InvalidInput(format!(
                    "the input does not match the agent's input schema: {reason}"
                )),
            }
        }
    }
}
