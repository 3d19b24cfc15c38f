//! A shelf: what is remembered, bounded in number, size and age. What is still under way is never
//! put away; of the rest the oldest goes first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use rialto_core::time::{Millis, Timestamp};

/// How many things are remembered.
const THINGS_MAX: usize = 10_000;
/// How many bytes all of them may have.
const BYTES_MAX: usize = 64 << 20;
/// For how long.
pub(crate) const LIFE: Millis = Millis::minutes(24 * 60);

/// Things by name.
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
    /// How much it weighs; unknown while it is under way.
    bytes: Option<usize>,
}

impl<K, V> Default for Shelf<K, V> {
    fn default() -> Self {
        Self { things: HashMap::new(), oldest_first: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> Shelf<K, V> {
    /// What has this name.
    pub(crate) fn get(&mut self, name: &K, now: Timestamp) -> Option<V> {
        self.put_away(now);
        self.things.get(name).map(|thing| thing.value.clone())
    }

    /// Remembers something that is under way.
    pub(crate) fn begin(&mut self, name: K, value: V, now: Timestamp) {
        self.forget(&name);
        self.things.insert(name.clone(), Thing { value, since: now, bytes: None });
        self.oldest_first.push_back(name);
        self.put_away(now);
    }

    /// It is over, and weighs so much.
    pub(crate) fn end(&mut self, name: &K, bytes: usize, now: Timestamp) {
        if let Some(thing) = self.things.get_mut(name)
            && thing.bytes.is_none()
        {
            thing.bytes = Some(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.put_away(now);
    }

    /// Remembers something that is over already.
    pub(crate) fn keep(&mut self, name: K, value: V, bytes: usize, now: Timestamp) {
        self.begin(name.clone(), value, now);
        self.end(&name, bytes, now);
    }

    /// Forgets it.
    pub(crate) fn forget(&mut self, name: &K) {
        if let Some(thing) = self.things.remove(name) {
            self.bytes = self.bytes.saturating_sub(thing.bytes.unwrap_or(0));
            self.oldest_first.retain(|other| other != name);
        }
    }

    fn put_away(&mut self, now: Timestamp) {
        // Few are under way at a time, so this looks at few that stay.
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
