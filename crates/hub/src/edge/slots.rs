//! Connection slots: a limit in total and per address.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::metrics::gauge::Gauge;

use super::peer::Peer;

/// All slots of one hub.
#[derive(Debug)]
pub struct Slots {
    max: usize,
    max_per_peer: usize,
    taken: Mutex<Taken>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Taken {
    total: usize,
    by_peer: HashMap<Peer, usize>,
}

/// One slot, released on drop.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    peer: Peer,
}

impl Slots {
    /// `gauge` always shows how many slots are taken.
    pub fn new(max: usize, max_per_peer: usize, gauge: Gauge) -> Arc<Self> {
        Arc::new(Self { max, max_per_peer, taken: Mutex::default(), gauge })
    }

    /// Takes a slot; `None` when there is none left for this address.
    pub fn take(self: &Arc<Self>, peer: Peer) -> Option<Slot> {
        let mut taken = self.taken();
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
        Some(Slot { slots: Arc::clone(self), peer })
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // No code panics while it holds the lock, so a poisoned count is still right.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.taken();
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
        let slots = Slots::new(3, 2, Gauge::default());
        let (first, second) = (slots.take(peer(1)), slots.take(peer(1)));
        assert!(first.is_some() && second.is_some());
        assert!(slots.take(peer(1)).is_none());
        let third = slots.take(peer(2));
        assert!(third.is_some());
        assert!(slots.take(peer(3)).is_none());
        assert_eq!(slots.gauge.get(), 3);
        drop(first);
        assert!(slots.take(peer(3)).is_some());
    }

    #[test]
    fn peers_that_left_are_forgotten() {
        let slots = Slots::new(1, 1, Gauge::default());
        for last in 0..100 {
            assert!(slots.take(peer(last)).is_some());
        }
        assert!(slots.take(peer(1)).is_some());
        assert!(slots.taken().by_peer.is_empty());
        assert_eq!(slots.gauge.get(), 0);
    }
}
