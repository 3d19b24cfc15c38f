//! The lines an agent's program writes about its jobs.

use rialto_client::agent::Outcome;
use rialto_client::agent::program::{ProgramLine, ProgramReport, parse_line};
use rialto_protocols::kit::ijson;

/// Checks the parser of lines.
pub fn program(bytes: &[u8]) {
    let named = parse_line(bytes, None);
    let said = parse_line(bytes, Some("j"));
    assert!(named.is_none() || named == said, "a line that names its job is about that one");
    let outcome = match said {
        Some((_, ProgramLine::Outcome(outcome))) => outcome,
        Some((_, ProgramLine::Report(ProgramReport::Part { content, .. }))) => {
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&content).is_ok());
            return;
        }
        Some(_) | None => return,
    };
    match outcome {
        Outcome::Done(output) => {
            assert!(output.starts_with('{'), "{output} is not an object");
            assert!(serde_json::from_str::<serde::de::IgnoredAny>(&output).is_ok());
            // The hub may still reject it for reasons of strict JSON.
            let _ = ijson::read(output.as_bytes());
        }
        Outcome::Failed(why)
        | Outcome::Declined(why)
        | Outcome::InvalidInput(why)
        | Outcome::Refused(why) => {
            assert!(why.chars().count() <= 1_000, "a reason of {} bytes", why.len());
        }
    }
}
