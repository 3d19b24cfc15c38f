//! Functions of one's own types as handlers.

use std::fmt::Display;
use std::future::Future;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::handler::Handler;
use super::job::Job;
use super::outcome::Outcome;

/// A function from an input to an output, or why there is none, as a [`Handler`].
///
/// The job's input, which is a JSON object, is read as `T`: what cannot be is [`Outcome::Unfit`], and
/// nobody is blamed for it. `U` is written as the output; what is no object is put into one as `result`. An error is
/// [`Outcome::Failed`] with its text, which the requester reads.
///
/// ```
/// use rialto_client::agent::typed;
///
/// #[derive(serde::Deserialize)]
/// struct Input {
///     number: u32,
/// }
///
/// let half = typed(async |Input { number }| match number % 2 {
///     0 => Ok(number / 2),
///     _ => Err("it is odd"),
/// });
/// # let _ = half;
/// ```
pub fn typed<T, U, E, W, F>(work: F) -> impl Handler
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
                    Ok(output) => Outcome::done(&output),
                    Err(why) => Outcome::Failed(why.to_string()),
                },
                Err(why) => Outcome::Unfit(format!(
                    "the input does not match the agent's input schema: {reason}"
                )),
            }
        }
    }
}
