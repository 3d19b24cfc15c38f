//! Who does the work: asked whether it will, then for the work.

use std::future::{Future, ready};

use rialto_core::time::Timestamp;
use rialto_protocols::openclaw::message::{Failed, Rejection, Request};
use rialto_protocols::openclaw::state::ErrorType;
use uuid::Uuid;

use super::event::Incoming;

/// Work that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// What the work is called.
    pub collaboration_id: Uuid,
    /// What is wanted, and by whom.
    pub request: Request,
}

/// Whether a request will be served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It will.
    Accept {
        /// When it is likely to be done.
        estimated_completion: Option<Timestamp>,
    },
    /// It will not.
    Reject(Rejection),
    /// Perhaps, later.
    Defer {
        /// When it is looked at again.
        until: Timestamp,
    },
}

/// Why there is no output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// In one word, such as `SOURCE_UNAVAILABLE`.
    pub code: String,
    /// For people. The other party reads it: nothing secret belongs here.
    pub message: String,
    /// Whether it passes.
    pub error_type: ErrorType,
}

/// What went wrong around a collaboration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mishap {
    /// The collaboration, if it is about one.
    pub collaboration_id: Option<Uuid>,
    /// What could not be done.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

/// A worker.
pub trait Handler: Send + Sync + 'static {
    /// Does a job: JSON text of an object, or why not. It is dropped where it waits when the job is
    /// called off.
    fn work(&self, job: Job) -> impl Future<Output = Result<String, Broken>> + Send;

    /// Says whether a request will be served. Only agents that answer for themselves are asked, and
    /// have nine seconds; all others have the hub accept for them.
    fn decide(&self, _: &Request) -> impl Future<Output = Verdict> + Send {
        ready(Verdict::Accept { estimated_completion: None })
    }

    /// Says whether work may be done that somebody must agree to. `None` leaves that to somebody
    /// else, such as an operator, who knows the work by its collaboration id.
    fn approve(&self, _: &Incoming) -> impl Future<Output = Option<bool>> + Send {
        ready(None)
    }

    /// Is told what went wrong around its work, to log it.
    fn mishap(&self, _: &Mishap) {}
}

impl Broken {
    /// What goes wrong every time.
    pub fn for_good(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, error_type: ErrorType::Permanent }
    }

    /// What may go well the next time.
    pub fn for_now(code: impl Into<String>, message: impl Into<String>) -> Self {
        let (code, message) = (code.into(), message.into());
        Self { code, message, error_type: ErrorType::Transient }
    }
}

impl From<Broken> for Failed {
    fn from(Broken { code, message, error_type }: Broken) -> Self {
        Self {
            code,
            message,
            error_type: Some(error_type),
            details: None,
            retryable: error_type.retryable(),
            retry_after_seconds: None,
        }
    }
}
