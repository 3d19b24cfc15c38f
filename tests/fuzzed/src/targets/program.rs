//! The lines a program of an agent writes about its jobs.

use rialto_client::agent::Outcome;
use rialto_client::agent::program::told;
use rialto_protocols::kit::ijson;

/// Checks the reader of lines.
pub fn program(bytes: &[u8]) {
    let Some((_, outcome)) = told(bytes) else { return };
    match outcome {
        Outcome::Done(output) => {
            assert!(output.starts_with('{'), "{output} is no object");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&output).is_ok());
            // Only what strict JSON refuses for its own reasons may still fail at the hub.
            let _ = ijson::read(output.as_bytes());
        }
        Outcome::Failed(why) | Outcome::Declined(why) | Outcome::Unfit(why) => {
            assert!(why.chars().count() <= 1_000, "a reason of {} bytes", why.len());
        }
    }
}
