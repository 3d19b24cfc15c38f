//! What an operator may change.

use rialto_core::time::Millis;

use super::PROCESS;
use super::process::Processes;
use super::topics::{Bridged, Topics};
use crate::kit::ans104::Id;

/// The protocol's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The ids the market answers to.
    pub processes: Processes,
    /// What agents may register for.
    pub topics: Topics,
    /// Which capabilities of other protocols have a topic here.
    pub bridged: Bridged,
    /// Whether a task nobody fits waits instead of being refused (R36).
    pub queue_unmatched: bool,
    /// Whether fees and rewards move credits (R80).
    pub payments: bool,
    /// How long a task may stay unfinished (R62).
    pub task_ttl: Millis,
    /// How long an assigned agent may be silent (R62).
    pub lease: Millis,
    /// How long offers are taken (2.7).
    pub auction_window: Millis,
}

impl Default for Settings {
    fn default() -> Self {
        let spec = Id::read(PROCESS).expect("the id is part of the program and tested");
        Self {
            processes: Processes { spec, deployed: None },
            topics: Topics::default(),
            bridged: Bridged::default(),
            queue_unmatched: false,
            payments: true,
            task_ttl: Millis::hours(7 * 24),
            lease: Millis::hours(24),
            auction_window: Millis::seconds(2),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_process_is_the_books() {
        assert_eq!(Settings::default().processes.spec.to_string(), PROCESS);
    }
}
