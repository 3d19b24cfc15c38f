//! The position of a stream reader: in its own inbox and in the hub's history.

use std::fmt;

use crate::kit::last_event_id::parse_position;

/// A reader's position. It is the id of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamPosition {
    /// The position in the inbox.
    pub position: u64,
    /// The line of the hub's history.
    pub line: u64,
}

impl StreamPosition {
    /// Reads an event's id.
    pub fn read(text: &str) -> Option<Self> {
        let (inbox, line) = text.split_once('-')?;
        Some(Self { position: parse_position(inbox)?, line: parse_position(line)? })
    }
}

impl fmt::Display for StreamPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_two_numbers() {
        let place = StreamPosition { position: 7, line: 42 };
        assert_eq!(StreamPosition::read("7-42"), Some(place));
        assert_eq!(place.to_string(), "7-42");
        for wrong in ["", "7", "7-", "-42", "7-42-1", "+7-42", "a-b", "99999999999999999999-1"] {
            assert_eq!(StreamPosition::read(wrong), None, "{wrong}");
        }
    }
}
