//! What a connection is doing, told by those who see it to the one who keeps the time.
//!
//! Every change is a beat. All beats but `leave_unread` are made by the connection's own task, so
//! reading and writing them needs no order.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};

/// What a connection is busy with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// A request's head is arriving, or the first one has not begun.
    Head,
    /// A request is being answered.
    Busy,
    /// The next request has not begun.
    Waiting,
    /// All is said, and what still arrives is thrown away.
    Leaving,
}

const PHASE: u32 = 0b011;
const STALLED: u32 = 0b100;
const STEP: u32 = 0b1000;

/// The state at one moment, and a count of the changes up to it: two beats are equal only if
/// nothing happened in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat(u32);

/// Shared by all parts of one connection.
#[derive(Debug, Default)]
pub struct Pulse {
    beat: AtomicU32,
    ambiguous: AtomicBool,
    unread: AtomicBool,
    stopping: AtomicBool,
}

impl Beat {
    pub fn phase(self) -> Phase {
        match self.0 & PHASE {
            0 => Phase::Head,
            1 => Phase::Busy,
            2 => Phase::Waiting,
            _ => Phase::Leaving,
        }
    }

    /// Whether the peer takes nothing of what we have for it.
    pub fn is_stalled(self) -> bool {
        self.0 & STALLED != 0
    }
}

impl Pulse {
    pub fn beat(&self) -> Beat {
        Beat(self.beat.load(Relaxed))
    }

    pub fn enter(&self, phase: Phase) {
        self.change(PHASE, phase as u32);
        if phase == Phase::Busy {
            self.unread.store(false, Relaxed);
        }
    }

    pub fn stall(&self) {
        if !self.beat().is_stalled() {
            self.change(STALLED, STALLED);
        }
    }

    pub fn flow(&self) {
        if self.beat().is_stalled() {
            self.change(STALLED, 0);
        }
    }

    /// The head that is arriving tells its body's length in two ways.
    pub fn doubt(&self) {
        self.ambiguous.store(true, Relaxed);
    }

    /// Whether the head that just arrived was doubted; asking forgets it.
    pub fn take_doubt(&self) -> bool {
        self.ambiguous.swap(false, Relaxed)
    }

    /// The request's body was dropped before its end.
    pub fn leave_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// Whether the rest of that body may still arrive.
    pub fn is_unread(&self) -> bool {
        self.unread.load(Relaxed)
    }

    pub fn stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    fn change(&self, mask: u32, bits: u32) {
        let Beat(was) = self.beat();
        self.beat.store(((was & !mask) | bits).wrapping_add(STEP), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen_even_if_it_led_back() {
        let pulse = Pulse::default();
        pulse.enter(Phase::Waiting);
        let before = pulse.beat();
        pulse.enter(Phase::Busy);
        pulse.enter(Phase::Waiting);
        assert_eq!(pulse.beat().phase(), Phase::Waiting);
        assert_ne!(pulse.beat(), before);
    }

    #[test]
    fn a_stall_lasts_until_something_flows_whatever_the_phase() {
        let pulse = Pulse::default();
        pulse.enter(Phase::Busy);
        pulse.stall();
        let stalled = pulse.beat();
        pulse.stall();
        assert_eq!(pulse.beat(), stalled);
        pulse.enter(Phase::Waiting);
        assert!(pulse.beat().is_stalled());
        pulse.flow();
        assert!(!pulse.beat().is_stalled());
        assert_eq!(pulse.beat().phase(), Phase::Waiting);
    }
}
