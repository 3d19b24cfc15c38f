//! Connection slots: a limit in total and per address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::gauge::Gauge;

use super::peer::Peer;

/// All slots of one hub.
#[derive(Debug)]
pub struct ConnectionSlots {
    max: usize,
    max_per_peer: usize,
    counts: Mutex<SlotCounts>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct SlotCounts {
    total: usize,
    by_peer: HashMap<Peer, usize>,
}

/// One slot, released on drop.
#[derive(Debug)]
pub struct ConnectionSlot {
    slots: Arc<ConnectionSlots>,
    peer: Peer,
}

impl ConnectionSlots {
    /// `gauge` always shows how many slots are taken.
    pub fn new(max: usize, max_per_peer: usize, gauge: Gauge) -> Arc<Self> {
        Arc::new(Self { max, max_per_peer, counts: Mutex::default(), gauge })
    }

    /// Takes a slot; `None` when there is none left for this address.
    pub fn try_acquire(self: &Arc<Self>, peer: Peer) -> Option<ConnectionSlot> {
        let mut taken = self.lock_counts();
        if taken.total >= self.max {
            return None;
        }
        let of_peer = taken.by_peer.entry(peer).or_default();
        if *of_peer >= self.max_per_peer {
            return None;
        }
        *of_peer += 1;
        taken.total += 1;
        self.gauge.inc();
        Some(ConnectionSlot { slots: Arc::clone(self), peer })
    }

    fn lock_counts(&self) -> MutexGuard<'_, SlotCounts> {
        // No code panics while it holds the lock, so a poisoned count is still right.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock_counts();
        taken.total -= 1;
        if let Some(of_peer) = taken.by_peer.get_mut(&self.peer) {
            *of_peer -= 1;
            if *of_peer == 0 {
                taken.by_peer.remove(&self.peer);
            }
        }
        self.slots.gauge.dec();
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::from(SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 1)))
    }

    #[test]
    fn one_peer_cannot_take_the_places_of_others() {
        let slots = ConnectionSlots::new(3, 2, Gauge::default());
        let (first, second) = (slots.try_acquire(peer(1)), slots.try_acquire(peer(1)));
        assert!(first.is_some() && second.is_some());
        assert!(slots.try_acquire(peer(1)).is_none());
        let third = slots.try_acquire(peer(2));
        assert!(third.is_some());
        assert!(slots.try_acquire(peer(3)).is_none());
        assert_eq!(slots.gauge.get(), 3);
        drop(first);
        assert!(slots.try_acquire(peer(3)).is_some());
    }

    #[test]
    fn peers_that_left_are_forgotten() {
        let slots = ConnectionSlots::new(1, 1, Gauge::default());
        for last in 0..100 {
            assert!(slots.try_acquire(peer(last)).is_some());
        }
        assert!(slots.try_acquire(peer(1)).is_some());
        assert!(slots.lock_counts().by_peer.is_empty());
        assert_eq!(slots.gauge.get(), 0);
    }
}
