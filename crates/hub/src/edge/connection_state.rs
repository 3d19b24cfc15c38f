//! The phase of a connection, shared between its socket, its bodies and the idle timer.
//!
//! Every change increments a counter. All changes except `mark_body_unread` are made by the
//! connection's own task, so the atomics need no ordering.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What a connection is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPhase {
    /// A request's head is arriving, or the first one has not begun.
    Head,
    /// A request is being answered.
    Responding,
    /// Waiting for the next request.
    Idle,
    /// The response is sent; further input is discarded.
    Closing,
}

/// The largest request head. Keys, cursors and trace headers need a tenth of it.
pub const HEAD_BYTES_MAX: usize = 32 << 10;

const PHASE: u32 = 0b011;
const STALLED: u32 = 0b100;
const STEP: u32 = 0b1000;

/// The state at one moment and a count of the changes so far: two snapshots are equal only if
/// nothing changed in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateSnapshot(u32);

/// Shared by all parts of one connection.
#[derive(Debug, Default)]
pub struct ConnectionState {
    snapshot: AtomicU32,
    /// The raw bytes of the head that is arriving, and what came with it.
    head: Mutex<Vec<u8>>,
    unread: AtomicBool,
    stopping: AtomicBool,
}

impl StateSnapshot {
    pub fn phase(self) -> ConnectionPhase {
        match self.0 & PHASE {
            0 => ConnectionPhase::Head,
            1 => ConnectionPhase::Responding,
            2 => ConnectionPhase::Idle,
            _ => ConnectionPhase::Closing,
        }
    }

    /// Whether the peer reads nothing although output is pending.
    pub fn is_stalled(self) -> bool {
        self.0 & STALLED != 0
    }
}

impl ConnectionState {
    pub fn snapshot(&self) -> StateSnapshot {
        StateSnapshot(self.snapshot.load(Relaxed))
    }

    pub fn enter_phase(&self, phase: ConnectionPhase) {
        self.change(PHASE, phase as u32);
        if phase == ConnectionPhase::Responding {
            self.unread.store(false, Relaxed);
        }
    }

    pub fn mark_stalled(&self) {
        if !self.snapshot().is_stalled() {
            self.change(STALLED, STALLED);
        }
    }

    pub fn mark_flowing(&self) {
        if self.snapshot().is_stalled() {
            self.change(STALLED, 0);
        }
    }

    /// Appends to the head that is arriving; bytes beyond the limit are dropped.
    pub fn append_head(&self, bytes: &[u8]) {
        let mut head = self.head.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEAD_BYTES_MAX.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(bytes.get(..room).unwrap_or_default());
    }

    /// Whether part of a head has arrived that is not yet a request.
    pub fn has_partial_head(&self) -> bool {
        !self.head.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// The head that has just become a request. The buffer is freed, because most connections are
    /// idle most of the time and should not use memory.
    pub fn take_head(&self) -> Vec<u8> {
        std::mem::take(&mut *self.head.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The request's body was dropped before its end.
    pub fn mark_body_unread(&self) {
        self.unread.store(true, Relaxed);
    }

    /// The rest of that body was read after all.
    pub fn mark_body_read(&self) {
        self.unread.store(false, Relaxed);
    }

    /// Whether the rest of that body may still arrive.
    pub fn has_unread_body(&self) -> bool {
        self.unread.load(Relaxed)
    }

    pub fn begin_stop(&self) {
        self.stopping.store(true, Relaxed);
    }

    pub fn is_stopping(&self) -> bool {
        self.stopping.load(Relaxed)
    }

    fn change(&self, mask: u32, bits: u32) {
        let StateSnapshot(was) = self.snapshot();
        self.snapshot.store(((was & !mask) | bits).wrapping_add(STEP), Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_seen_even_if_it_led_back() {
        let connection_state = ConnectionState::default();
        connection_state.enter_phase(ConnectionPhase::Idle);
        let before = connection_state.snapshot();
        connection_state.enter_phase(ConnectionPhase::Responding);
        connection_state.enter_phase(ConnectionPhase::Idle);
        assert_eq!(connection_state.snapshot().phase(), ConnectionPhase::Idle);
        assert_ne!(connection_state.snapshot(), before);
    }

    #[test]
    fn a_head_is_kept_until_it_is_taken_and_never_more_of_it_than_fits() {
        let connection_state = ConnectionState::default();
        connection_state.append_head(b"GET");
        connection_state.append_head(b" /");
        assert!(connection_state.has_partial_head());
        assert_eq!(connection_state.take_head(), b"GET /");
        assert!(!connection_state.has_partial_head());
        connection_state.append_head(&[b'x'; HEAD_BYTES_MAX - 1]);
        connection_state.append_head(b"yz");
        let head = connection_state.take_head();
        assert_eq!((head.len(), head.last()), (HEAD_BYTES_MAX, Some(&b'y')));
    }

    #[test]
    fn a_stall_lasts_until_something_flows_whatever_the_phase() {
        let connection_state = ConnectionState::default();
        connection_state.enter_phase(ConnectionPhase::Responding);
        connection_state.mark_stalled();
        let stalled = connection_state.snapshot();
        connection_state.mark_stalled();
        assert_eq!(connection_state.snapshot(), stalled);
        connection_state.enter_phase(ConnectionPhase::Idle);
        assert!(connection_state.snapshot().is_stalled());
        connection_state.mark_flowing();
        assert!(!connection_state.snapshot().is_stalled());
        assert_eq!(connection_state.snapshot().phase(), ConnectionPhase::Idle);
    }
}
