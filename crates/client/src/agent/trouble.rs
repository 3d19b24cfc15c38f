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
    /// A state file cannot be written. No job was started without its record.
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
    #[error("another program already runs the agent in {}; use another state directory", directory.display())]
    Taken {
        /// Its directory.
        directory: PathBuf,
    },
    /// Another program works for the same agent, elsewhere.
    #[error("another program uses this agent's key; stop it, or register another agent")]
    Elsewhere,
    /// The agent was taken off the hub's lists while it worked.
    #[error("the agent was unregistered from its hub; start it again to register it")]
    Removed,
    /// There is nobody to work for.
    #[error("the agent has neither a hub nor a listener; set one with `hub` or `listener`")]
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
