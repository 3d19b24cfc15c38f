//! Storage of the rate limits: one number per caller, for a bounded number of callers.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use governor::nanos::Nanos;
use governor::state::StateStore;
use governor::state::keyed::ShrinkableKeyedStateStore;

/// Callers with their own entry; about two megabytes in all.
const CALLERS_MAX: usize = 1 << 16;
/// Further callers share this many entries. A client that invents a million credentials slows down
/// only new callers that share its entry, and no caller that already has its own.
const SHARED_BUCKETS: u64 = 1 << 10;

/// Numbers by caller.
#[derive(Debug, Default)]
pub struct BoundedRateStore(Mutex<HashMap<u64, Nanos>>);

impl BoundedRateStore {
    fn callers(&self) -> MutexGuard<'_, HashMap<u64, Nanos>> {
        // A number is replaced as a whole, so a poisoned lock is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StateStore for BoundedRateStore {
    type Key = u64;

    fn measure_and_replace<T, F, E>(&self, key: &u64, measure: F) -> Result<T, E>
    where
        F: Fn(Option<Nanos>) -> Result<(T, Nanos), E>,
    {
        let mut callers = self.callers();
        let full = callers.len() >= CALLERS_MAX && !callers.contains_key(key);
        let key = if full { key % SHARED_BUCKETS } else { *key };
        let (outcome, new) = measure(callers.get(&key).copied())?;
        callers.insert(key, new);
        Ok(outcome)
    }
}

impl ShrinkableKeyedStateStore<u64> for BoundedRateStore {
    fn retain_recent(&self, drop_below: Nanos) {
        let mut callers = self.callers();
        callers.retain(|_, at| *at > drop_below);
        if callers.capacity() > callers.len() * 4 {
            callers.shrink_to_fit();
        }
    }

    fn len(&self) -> usize {
        self.callers().len()
    }

    fn is_empty(&self) -> bool {
        self.callers().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(tally: &BoundedRateStore, key: u64) -> Result<(), ()> {
        tally.measure_and_replace(&key, |before| match before {
            None => Ok(((), Nanos::new(1))),
            Some(_) => Err(()),
        })
    }

    #[test]
    fn invented_callers_fill_no_memory_and_hurt_no_known_one() {
        let tally = BoundedRateStore::default();
        assert_eq!(take(&tally, u64::MAX), Ok(()));
        for key in 1_000_000..1_200_000 {
            let _ = take(&tally, key);
        }
        assert!(tally.len() <= CALLERS_MAX + SHARED_BUCKETS as usize, "{}", tally.len());
        assert_eq!(take(&tally, u64::MAX), Err(()));
        assert_eq!(take(&tally, 2_000_000), Err(()), "callers beyond the limit share an entry");
        tally.retain_recent(Nanos::new(1));
        assert!(tally.is_empty());
    }
}
