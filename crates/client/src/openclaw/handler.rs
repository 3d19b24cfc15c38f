//! Handlers, which decide on a request and then do the work.

use std::future::{Future, ready};

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::wire::words::ErrorType;
use rialto_protocols::openclaw::wire::{Rejection, Request, ResultError};
use uuid::Uuid;

use super::event::IncomingRequest;
use crate::worker::ServeError;

/// An accepted request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The collaboration's id.
    pub collaboration_id: Uuid,
    /// The request.
    pub request: Request,
}

/// Whether a request is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Accepts it.
    Accept {
        /// When it will probably be done.
        estimated_completion: Option<Timestamp>,
    },
    /// Rejects it.
    Reject(Rejection),
    /// Defers it.
    Defer {
        /// When it is decided on again.
        until: Timestamp,
    },
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkError {
    /// An error code such as `SOURCE_UNAVAILABLE`.
    pub code: String,
    /// The error message. The other party reads it, so it must not contain secrets.
    pub message: String,
    /// Whether the error is permanent.
    pub error_type: ErrorType,
}

/// Does the work.
pub trait Handler: Send + Sync + 'static {
    /// Does a job and returns a JSON object as text, or an error. The future is dropped if the job
    /// is cancelled.
    fn work(&self, job: Job) -> impl Future<Output = Result<String, WorkError>> + Send;

    /// Decides on a request, within nine seconds. Only called for agents that respond manually; for
    /// all others the hub accepts.
    fn decide(&self, _: &Request) -> impl Future<Output = Decision> + Send {
        ready(Decision::Accept { estimated_completion: None })
    }

    /// Decides on work that needs approval. `None` leaves it to another party, such as an operator,
    /// who refers to the work by its collaboration id.
    fn approve(&self, _: &IncomingRequest) -> impl Future<Output = Option<bool>> + Send {
        ready(None)
    }

    /// Called with errors around the work, to log them.
    fn on_error(&self, _: &ServeError) {}
}

impl WorkError {
    /// An error that a retry would repeat.
    pub fn permanent(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, error_type: ErrorType::Permanent }
    }

    /// An error that a retry may avoid.
    pub fn transient(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, error_type: ErrorType::Transient }
    }
}

impl From<WorkError> for ResultError {
    fn from(WorkError { code, message, error_type }: WorkError) -> Self {
        Self {
            code,
            message,
            error_type: Some(error_type),
            details: None,
            retryable: error_type.is_retryable(),
            retry_after_seconds: None,
        }
    }
}
