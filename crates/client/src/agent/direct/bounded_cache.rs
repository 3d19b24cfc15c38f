//! A cache with limits on number, size and age. Running entries are never evicted; of the others
//! the oldest is evicted first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use rialto_core::time::{Millis, Timestamp};

/// Maximum number of entries.
const THINGS_MAX: usize = 10_000;
/// Maximum size of all entries in bytes.
const BYTES_MAX: usize = 64 << 20;
/// How long a finished entry is kept.
pub(crate) const LIFE: Millis = Millis::minutes(24 * 60);

/// Entries by key.
#[derive(Debug)]
pub(crate) struct Shelf<K, V> {
    things: HashMap<K, Thing<V>>,
    oldest_first: VecDeque<K>,
    bytes: usize,
}

#[derive(Debug)]
struct Thing<V> {
    value: V,
    since: Timestamp,
    /// The entry's size; unknown while it runs.
    bytes: Option<usize>,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { things: HashMap::new(), oldest_first: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Shelf<K, V> {
    /// The value stored under a key.
    pub(crate) fn get(&mut self, name: &K, now: Timestamp) -> Option<V> {
        self.put_away(now);
        self.things.get(name).map(|thing| thing.value.clone())
    }

    /// Inserts a running entry.
    pub(crate) fn begin(&mut self, name: K, value: V, now: Timestamp) {
        self.forget(&name);
        self.things.insert(name.clone(), Thing { value, since: now, bytes: None });
        self.oldest_first.push_back(name);
        self.put_away(now);
    }

    /// Marks an entry as finished and sets its size.
    pub(crate) fn end(&mut self, name: &K, bytes: usize, now: Timestamp) {
        if let Some(thing) = self.things.get_mut(name)
            && thing.bytes.is_none()
        {
            thing.bytes = Some(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.put_away(now);
    }

    /// Inserts a finished entry.
    pub(crate) fn keep(&mut self, name: K, value: V, bytes: usize, now: Timestamp) {
        self.begin(name.clone(), value, now);
        self.end(&name, bytes, now);
    }

    /// Removes an entry.
    pub(crate) fn forget(&mut self, name: &K) {
        if let Some(thing) = self.things.remove(name) {
            self.bytes = self.bytes.saturating_sub(thing.bytes.unwrap_or(0));
            self.oldest_first.retain(|other| other != name);
        }
    }

    fn put_away(&mut self, now: Timestamp) {
        // Few entries run at the same time, so this loop skips few.
        let mut at = 0;
        while let Some(name) = self.oldest_first.get(at) {
            let Some(thing) = self.things.get(name) else { break };
            let full = self.things.len() > THINGS_MAX || self.bytes > BYTES_MAX;
            let old = now.since(thing.since) >= LIFE;
            if !full && !old {
                break;
            }
            match thing.bytes {
                None => at += 1,
                Some(bytes) => {
                    self.bytes = self.bytes.saturating_sub(bytes);
                    if let Some(name) = self.oldest_first.remove(at) {
                        self.things.remove(&name);
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    #[test]
    fn the_oldest_goes_first_and_what_is_under_way_stays() {
        let mut shelf = Shelf::default();
        shelf.begin(0, "under way", NOW);
        for n in 1..=THINGS_MAX {
            shelf.keep(n, "over", 1, NOW);
        }
        assert_eq!((shelf.get(&0, NOW), shelf.get(&1, NOW)), (Some("under way"), None));
        assert_eq!(shelf.get(&2, NOW), Some("over"));
        shelf.end(&0, 1, NOW);
        shelf.keep(THINGS_MAX + 1, "over", 1, NOW);
        assert_eq!(shelf.get(&0, NOW), None);
        assert_eq!(shelf.things.len(), THINGS_MAX);
        assert_eq!((shelf.oldest_first.len(), shelf.bytes), (THINGS_MAX, THINGS_MAX));
    }

    #[test]
    fn big_things_leave_room_for_fewer() {
        let mut shelf = Shelf::default();
        for n in 0..3 {
            shelf.keep(n, n, BYTES_MAX / 2, NOW);
        }
        assert_eq!([0, 1, 2].map(|n| shelf.get(&n, NOW)), [None, Some(1), Some(2)]);
    }

    #[test]
    fn a_day_is_enough() {
        let mut shelf = Shelf::default();
        shelf.keep("a", 1, 1, NOW);
        assert_eq!(shelf.get(&"a", Timestamp(NOW.0 + LIFE.0 - 1)), Some(1));
        assert_eq!(shelf.get(&"a", NOW.plus(LIFE)), None);
        assert_eq!(shelf.bytes, 0);
    }
}
