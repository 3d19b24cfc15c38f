//! How far a reader has got: in its own inbox, and in what is told to everybody.

use std::fmt;

use crate::kit::last_event_id::position;

/// Where a reader has got to. An event's id is one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// In its inbox.
    pub position: u64,
    /// In the history of the hub.
    pub line: u64,
}

impl Place {
    /// Reads an event's id.
    pub fn read(text: &str) -> Option<Self> {
        let (inbox, line) = text.split_once('-')?;
        Some(Self { position: position(inbox)?, line: position(line)? })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.position, self.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_two_numbers() {
        let place = Place { position: 7, line: 42 };
        assert_eq!(Place::read("7-42"), Some(place));
        assert_eq!(place.to_string(), "7-42");
        for wrong in ["", "7", "7-", "-42", "7-42-1", "+7-42", "a-b", "99999999999999999999-1"] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }
}
