//! Reads from an endpoint's HTTP answer whether a message was delivered.

use rialto_engine::delivery::egress::{HttpResponse, SendError};
use rialto_engine::delivery::{AttemptResult, AttemptStatus};

/// Decides by the status alone. The body is ignored.
pub fn from_status(answer: &Result<HttpResponse, SendError>) -> AttemptResult {
    let arrived = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => {
            AttemptStatus::Delivered { reply: None }
        }
        Ok(answer) if answer.status == 410 => AttemptStatus::EndpointGone,
        Ok(answer) => {
            AttemptStatus::Failed(format!("the endpoint answered HTTP {}", answer.status))
        }
        Err(SendError::TimedOut) => AttemptStatus::Failed("the endpoint did not answer".to_owned()),
        Err(SendError::InvalidResponse(_)) => {
            AttemptStatus::Failed("the answer could not be read".to_owned())
        }
        // One text for both errors, so that callers cannot probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            AttemptStatus::Failed("could not connect to the endpoint".to_owned())
        }
    };
    AttemptResult { status: arrived, report: None }
}

/// Whether a status means that the request was not accepted: refused, redirected, or blocked by a
/// gateway. It says nothing about the work. A 500 is the worker's own failure.
pub fn is_refusal_status(status: u16) -> bool {
    matches!(status, 300..=499 | 502..=504)
}
