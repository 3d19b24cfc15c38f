//! A limit on the calls one host gets in a minute, so that the hub cannot be made to flood a host
//! by pointing many agents at it.
//!
//! Pure apart from its counts: time is an argument. A call over the limit waits; it does not count
//! as a failure of the host.

use std::collections::HashMap;
use std::num::NonZeroU32;

use parking_lot::Mutex;
use rialto_core::time::{Millis, Timestamp};

const MINUTE_US: i64 = 60_000_000;
/// Hosts counted one by one; beyond that, the new ones share one count.
const HOSTS_MAX: usize = 65_536;
const SHARED: &str = "";

/// The hosts that were called within the last minute.
pub(super) struct HostRateLimit {
    /// What a call costs of a host's minute, in microseconds; `None` if there is no limit.
    cost_us: Option<i64>,
    /// Until when each host's minute is used up, if calls were spread evenly.
    used_until_us: Mutex<HashMap<String, i64>>,
}

impl HostRateLimit {
    pub(super) fn new(per_minute: Option<NonZeroU32>) -> Self {
        let cost_us = per_minute.map(|calls| MINUTE_US / i64::from(calls.get()));
        Self { cost_us, used_until_us: Mutex::default() }
    }

    /// Takes one call to a host, or returns the time until the next one is free.
    pub(super) fn try_acquire(&self, host: &str, now: Timestamp) -> Result<(), Millis> {
        let Some(cost_us) = self.cost_us else { return Ok(()) };
        let now_us = now.0.saturating_mul(1_000);
        let mut hosts = self.used_until_us.lock();
        if hosts.len() >= HOSTS_MAX {
            hosts.retain(|_, until| *until > now_us);
        }
        let known = hosts.len() < HOSTS_MAX || hosts.contains_key(host);
        let host = if known { host } else { SHARED };
        let used = hosts.get(host).copied().unwrap_or(now_us).max(now_us);
        let used = used.saturating_add(cost_us);
        let over_us = used - now_us - MINUTE_US;
        if over_us > 0 {
            return Err(Millis(over_us / 1_000 + 1));
        }
        match hosts.get_mut(host) {
            Some(until) => *until = used,
            None => drop(hosts.insert(host.to_owned(), used)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_754_000_000_000);

    fn pace(per_minute: u32) -> HostRateLimit {
        HostRateLimit::new(NonZeroU32::new(per_minute))
    }

    #[test]
    fn one_host_gets_so_many_calls_a_minute_and_others_are_not_held_up() {
        let pace = pace(3);
        for _ in 0..3 {
            assert_eq!(pace.try_acquire("a.example", NOW), Ok(()));
        }
        assert_eq!(pace.try_acquire("a.example", NOW), Err(Millis(20_001)));
        assert_eq!(pace.try_acquire("b.example", NOW), Ok(()));
        let later = NOW.plus(Millis::seconds(20));
        assert_eq!(pace.try_acquire("a.example", later), Ok(()));
        assert!(pace.try_acquire("a.example", later).is_err());
        let much_later = NOW.plus(Millis::hours(1));
        for _ in 0..3 {
            assert_eq!(
                pace.try_acquire("a.example", much_later),
                Ok(()),
                "a minute's calls, no more"
            );
        }
        assert!(pace.try_acquire("a.example", much_later).is_err());
    }

    #[test]
    fn no_limit_is_no_limit_and_remembers_nobody() {
        let pace = pace(0);
        for _ in 0..10_000 {
            assert_eq!(pace.try_acquire("a.example", NOW), Ok(()));
        }
        assert!(pace.used_until_us.lock().is_empty());
    }

    #[test]
    fn invented_hosts_fill_no_memory_and_hurt_no_known_one() {
        let pace = pace(1);
        for n in 0..HOSTS_MAX + 100 {
            let _ = pace.try_acquire(&format!("{n}.example"), NOW);
        }
        assert!(pace.used_until_us.lock().len() <= HOSTS_MAX + 1);
        assert!(pace.try_acquire("late.example", NOW).is_err(), "later hosts share one count");
        let later = NOW.plus(Millis::minutes(1));
        assert_eq!(pace.try_acquire("0.example", later), Ok(()));
        assert_eq!(pace.used_until_us.lock().len(), 1, "a host without recent calls is forgotten");
    }
}
