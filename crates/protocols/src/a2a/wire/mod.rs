//! Types as on the wire, in both versions. Reading is lenient where ProtoJSON is (R27); writing has
//! one form per version.

pub mod agent_card;
#[cfg(feature = "server")]
pub mod api_doc;
pub mod content;
pub mod error;
pub mod message;
pub mod params;
pub mod reader;
pub mod remote_card;
pub mod rpc;
pub mod task;

/// The two versions that are spoken. They name the same things differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    V1,
    V03,
}

impl Version {
    /// Reads `1.0`, `1.0.x`, `0.3` and `0.3.x`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.split('.');
        let version = match (numbers.next()?, numbers.next()?) {
            ("1", "0") => Self::V1,
            ("0", "3") => Self::V03,
            _ => return None,
        };
        let patch = numbers.next();
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        (patch.is_none_or(is_number) && numbers.next().is_none()).then_some(version)
    }
}
