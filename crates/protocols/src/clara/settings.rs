//! The settings that an operator may change.

use rialto_core::time::Millis;
use rialto_engine::secret::HubSecret;

use super::{BridgedTopics, Processes, Topics};
use crate::kit::ans104::ItemId;

/// The protocol's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The process ids that the market answers to.
    pub processes: Processes,
    /// The topics that agents may register for.
    pub topics: Topics,
    /// Which skills of other protocols have a topic here.
    pub bridged: BridgedTopics,
    /// Whether a task without a suitable agent is queued instead of refused (R36).
    pub queue_unmatched: bool,
    /// Whether fees and rewards move credits (R80).
    pub payments: bool,
    /// How long a task may remain unfinished (R62).
    pub task_ttl: Millis,
    /// How long an assigned agent may take to respond (R62).
    pub lease: Millis,
    /// How long an auction accepts offers (2.7).
    pub auction_window: Millis,
}

impl Settings {
    /// The default settings of a hub. The process id is derived from the hub's secret, so it is
    /// unique to the hub and stays the same across restarts.
    pub fn of(secret: &HubSecret) -> Self {
        let spec = ItemId(secret.derive("rialto clara process v1", "hub"));
        Self {
            processes: Processes { spec, deployed: None },
            topics: Topics::default(),
            bridged: BridgedTopics::default(),
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
    use crate::clara::{Dialect, PROCESS};

    fn process(secret: u8) -> Processes {
        Settings::of(&HubSecret::from_bytes([secret; 32])).processes
    }

    #[test]
    fn every_hub_has_a_process_id_of_its_own_and_keeps_it() {
        assert_eq!(process(1), process(1));
        assert_ne!(process(1), process(2));
        assert_ne!(process(1).spec.to_string(), PROCESS);
    }

    #[test]
    fn the_published_process_id_is_understood_and_moves_no_money() {
        let published = ItemId::read(PROCESS).expect("an id");
        let usual = process(1);
        assert_eq!(usual.dialect(published), Some(Dialect::Spec));
        assert!(usual.may_move_money(usual.spec) && !usual.may_move_money(published));
        // Unless the operator assigned the published process to this hub.
        let chosen = Processes { spec: published, deployed: None };
        assert!(chosen.may_move_money(published));
        assert_eq!(chosen.dialect(usual.spec), None);
    }
}
