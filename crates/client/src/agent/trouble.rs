//! Why an agent does not run.

use std::io;
use std::path::PathBuf;

use crate::call::CallError;

/// Why an agent does not run, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A call to its hub failed for good.
    #[error(transparent)]
    Call(#[from] CallError),
    /// What the agent has to remember cannot be kept. Nothing was begun that is not remembered.
    #[error("cannot write {}: {error}", path.display())]
    State {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The key file that was named cannot be used.
    #[error("cannot read {}: {error}", path.display())]
    Key {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another program runs the same agent: two of them would do the same jobs.
    #[error("the agent in {} runs already; give this one a directory of its own", directory.display())]
    Taken {
        /// Its directory.
        directory: PathBuf,
    },
    /// There is nobody to work for.
    #[error("the agent has neither a hub nor a listener; name one with at_hub or direct")]
    Nowhere,
}
