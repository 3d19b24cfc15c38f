//! The lines an agent's program writes about its jobs.

use rialto_client::agent::Outcome;
use rialto_client::agent::program::parse_line;
use rialto_protocols::kit::ijson;

/// Checks the parser of lines.
pub fn program(bytes: &[u8]) {
    let Some((_, outcome)) = parse_line(bytes) else { return };
    match outcome {
        Outcome::Done(output) => {
            assert!(output.starts_with('{'), "{output} is not an object");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&output).is_ok());
            // The hub may still reject it for reasons of strict JSON.
            let _ = ijson::read(output.as_bytes());
        }
        Outcome::Failed(why) | Outcome::Declined(why) | Outcome::InvalidInput(why) => {
            assert!(why.chars().count() <= 1_000, "a reason of {} bytes", why.len());
        }
    }
}
