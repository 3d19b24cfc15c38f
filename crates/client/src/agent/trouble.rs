//! Why an agent does not run.

use std::io;
use std::path::PathBuf;

use crate::call::CallError;

/// Why an agent does not run, or does not go on.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A call to its hub failed for good.
    #[error(transparent)]
    Call(CallError),
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
    /// Another program works for the same agent, elsewhere.
    #[error(
        "another program works for this agent with the same key; stop it, or register another agent"
    )]
    Elsewhere,
    /// The agent was taken off the hub's lists while it worked.
    #[error("the agent was removed from its hub; run it again to bring it back")]
    Removed,
    /// There is nobody to work for.
    #[error("the agent has neither a hub nor a listener; name one with at_hub or direct")]
    Nowhere,
}

/// The hub's codes for what a worker has to know.
pub(super) const OTHER_INSTANCE: &str = "other_instance";
const UNREGISTERED: &str = "unregistered";

impl From<CallError> for AgentError {
    fn from(error: CallError) -> Self {
        match &error {
            CallError::Refused { code, retryable: false, .. } if code == OTHER_INSTANCE => {
                Self::Elsewhere
            }
            CallError::Refused { code, .. } if code == UNREGISTERED => Self::Removed,
            _ => Self::Call(error),
        }
    }
}
