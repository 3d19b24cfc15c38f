//! Errors that stop an agent.

use std::io;
use std::path::PathBuf;

use crate::call::CallError;

/// Why an agent cannot start or cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// A call to the hub failed permanently.
    #[error(transparent)]
    Call(CallError),
    /// A state file cannot be written. No job was started without its record.
    #[error("cannot write {}: {error}", path.display())]
    StateFile {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// The given key file cannot be used.
    #[error("cannot read {}: {error}", path.display())]
    KeyFile {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        error: io::Error,
    },
    /// Another program runs the same agent; both would do the same jobs.
    #[error("another program already runs the agent in {}; use another state directory", directory.display())]
    AlreadyRunning {
        /// Its state directory.
        directory: PathBuf,
    },
    /// Another program works for the same agent elsewhere.
    #[error("another program uses this agent's key; stop it, or register another agent")]
    OtherInstance,
    /// The agent was removed from the hub while it worked.
    #[error("the agent was unregistered from its hub; start it again to register it")]
    Removed,
    /// Neither a hub nor a listener is set.
    #[error("the agent has neither a hub nor a listener; set one with `hub` or `listener`")]
    NoHubOrListener,
}

/// Error codes of the hub that a worker handles.
pub(super) const OTHER_INSTANCE: &str = "other_instance";
const UNREGISTERED: &str = "unregistered";

impl From<CallError> for AgentError {
    fn from(error: CallError) -> Self {
        match &error {
            CallError::Refused { code, retryable: false, .. } if code == OTHER_INSTANCE => {
                Self::OtherInstance
            }
            CallError::Refused { code, .. } if code == UNREGISTERED => Self::Removed,
            _ => Self::Call(error),
        }
    }
}
