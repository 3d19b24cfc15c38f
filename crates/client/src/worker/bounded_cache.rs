//! A cache with limits on number, size and age. Running entries are never evicted; of the others
//! the oldest is evicted first.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

use rialto_core::time::{Millis, Timestamp};

/// Maximum number of entries.
const ENTRIES_MAX: usize = 10_000;
/// Maximum size of all entries in bytes.
const BYTES_MAX: usize = 64 << 20;
/// How long a finished entry is kept.
pub(crate) const RETENTION: Millis = Millis::minutes(24 * 60);

/// Entries by key.
#[derive(Debug)]
pub(crate) struct BoundedCache<K, V> {
    entries: HashMap<K, CacheEntry<V>>,
    oldest_first: VecDeque<K>,
    bytes: usize,
}

#[derive(Debug)]
struct CacheEntry<V> {
    value: V,
    since: Timestamp,
    /// The entry's size; unknown while it runs.
    bytes: Option<usize>,
}

impl<K, V> Default for BoundedCache<K, V> {
    fn default() -> Self {
        Self { entries: HashMap::new(), oldest_first: VecDeque::new(), bytes: 0 }
    }
}

impl<K: Clone + Eq + Hash, V: Clone> BoundedCache<K, V> {
    /// The value stored under a key.
    pub(crate) fn get(&mut self, key: &K, now: Timestamp) -> Option<V> {
        self.evict(now);
        self.entries.get(key).map(|entry| entry.value.clone())
    }

    /// Inserts a running entry.
    pub(crate) fn insert_running(&mut self, key: K, value: V, now: Timestamp) {
        self.remove(&key);
        self.entries.insert(key.clone(), CacheEntry { value, since: now, bytes: None });
        self.oldest_first.push_back(key);
        self.evict(now);
    }

    /// Marks an entry as finished and sets its size.
    pub(crate) fn finish(&mut self, key: &K, bytes: usize, now: Timestamp) {
        if let Some(entry) = self.entries.get_mut(key)
            && entry.bytes.is_none()
        {
            entry.bytes = Some(bytes);
            self.bytes = self.bytes.saturating_add(bytes);
        }
        self.evict(now);
    }

    /// Inserts a finished entry.
    pub(crate) fn insert_finished(&mut self, key: K, value: V, bytes: usize, now: Timestamp) {
        self.insert_running(key.clone(), value, now);
        self.finish(&key, bytes, now);
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, key: &K) {
        if let Some(entry) = self.entries.remove(key) {
            self.bytes = self.bytes.saturating_sub(entry.bytes.unwrap_or(0));
            self.oldest_first.retain(|other| other != key);
        }
    }

    fn evict(&mut self, now: Timestamp) {
        // Few entries run at the same time, so this loop skips few.
        let mut at = 0;
        while let Some(key) = self.oldest_first.get(at) {
            let Some(entry) = self.entries.get(key) else { break };
            let full = self.entries.len() > ENTRIES_MAX || self.bytes > BYTES_MAX;
            let old = now.since(entry.since) >= RETENTION;
            if !full && !old {
                break;
            }
            match entry.bytes {
                None => at += 1,
                Some(bytes) => {
                    self.bytes = self.bytes.saturating_sub(bytes);
                    if let Some(key) = self.oldest_first.remove(at) {
                        self.entries.remove(&key);
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
    fn the_oldest_entry_is_evicted_first_and_running_entries_stay() {
        let mut cache = BoundedCache::default();
        cache.insert_running(0, "running", NOW);
        for n in 1..=ENTRIES_MAX {
            cache.insert_finished(n, "finished", 1, NOW);
        }
        assert_eq!((cache.get(&0, NOW), cache.get(&1, NOW)), (Some("running"), None));
        assert_eq!(cache.get(&2, NOW), Some("finished"));
        cache.finish(&0, 1, NOW);
        cache.insert_finished(ENTRIES_MAX + 1, "finished", 1, NOW);
        assert_eq!(cache.get(&0, NOW), None);
        assert_eq!(cache.entries.len(), ENTRIES_MAX);
        assert_eq!((cache.oldest_first.len(), cache.bytes), (ENTRIES_MAX, ENTRIES_MAX));
    }

    #[test]
    fn big_entrys_leave_room_for_fewer() {
        let mut cache = BoundedCache::default();
        for n in 0..3 {
            cache.insert_finished(n, n, BYTES_MAX / 2, NOW);
        }
        assert_eq!([0, 1, 2].map(|n| cache.get(&n, NOW)), [None, Some(1), Some(2)]);
    }

    #[test]
    fn entries_are_kept_for_a_day() {
        let mut cache = BoundedCache::default();
        cache.insert_finished("a", 1, 1, NOW);
        assert_eq!(cache.get(&"a", Timestamp(NOW.0 + RETENTION.0 - 1)), Some(1));
        assert_eq!(cache.get(&"a", NOW.plus(RETENTION)), None);
        assert_eq!(cache.bytes, 0);
    }
}
