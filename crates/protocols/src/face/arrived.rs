//! What an endpoint's answer to a message says about whether it arrived.

use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{Arrived, Verdict};

/// By the status alone; what is answered besides is nobody's business.
pub fn by_status(answer: &Result<Answer, SendError>) -> Verdict {
    let arrived = match answer {
        Ok(answer) if (200..300).contains(&answer.status) => Arrived::Yes { reply: None },
        Ok(answer) if answer.status == 410 => Arrived::Gone,
        Ok(answer) => Arrived::No(format!("the endpoint answered HTTP {}", answer.status)),
        Err(SendError::TimedOut) => Arrived::No("the endpoint did not answer".to_owned()),
        Err(SendError::Broken(_)) => Arrived::No("the answer could not be read".to_owned()),
        // One text for both, so that nobody can probe what the hub's resolver sees.
        Err(SendError::Blocked(_) | SendError::Unreachable(_)) => {
            Arrived::No("the endpoint could not connect".to_owned())
        }
    };
    Verdict { arrived, commands: Vec::new() }
}

/// Whether a status says that the request was not taken on: refused, sent elsewhere, or not let through
/// by a gateway. It says nothing about the work. A 500 is the worker's own failure.
pub fn is_refusal(status: u16) -> bool {
    matches!(status, 300..=499 | 502..=504)
}
