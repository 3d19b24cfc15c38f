//! Reads from an endpoint's HTTP answer whether a message was delivered.

use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{Arrived, Verdict};

/// Decides by the status alone. The body is ignored.
pub fn by_status(answer: &Result<Answer, SendError>) -> Verdict {
    let arrived = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Arrived::Yes { reply: None },
        Ok(answer) if answer.status == 410 => Arrived::Gone,
        Ok(answer) => Arrived::No(format!("the endpoint answered HTTP {}", answer.status)),
        Err(SendError::TimedOut) => Arrived::No("the endpoint did not answer".to_owned()),
        Err(SendError::Broken(_)) => Arrived::No("the answer could not be read".to_owned()),
        // One text for both errors, so that callers cannot probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            Arrived::No("could not connect to the endpoint".to_owned())
        }
    };
    Verdict { arrived, commands: Vec::new() }
}

/// Whether a status means that the request was not accepted: refused, redirected, or blocked by a
/// gateway. It says nothing about the work. A 500 is the worker's own failure.
pub fn is_refusal(status: u16) -> bool {
    matches!(status, 300..=499 | 502..=504)
}
