//! Limits on calls to one host, at once and per minute, so that the hub cannot be used as an amplifier and a
//! slow receiver delays only its own deliveries.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rialto_core::time::{Millis, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// Hosts that may have calls at once.
const HOSTS_MAX: usize = 65_536;
/// Calls to one host, running and waiting together; more would only use memory.
const CALLS_PER_HOST_MAX: usize = 1_024;

/// No permit was free in time, or too many calls were waiting already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HostBusyError;

struct HostEntry {
    slots: Arc<Semaphore>,
    /// Calls that run or wait; at zero the entry is removed.
    calls: usize,
}

/// The hosts that are being called now, and no others.
pub(super) struct HostLimits {
    per_host: usize,
    busy: BusyHosts,
}

type BusyHosts = Arc<Mutex<HashMap<String, HostEntry>>>;

/// The permit for one call; dropping it admits the next one.
pub(super) struct HostPermit {
    busy: BusyHosts,
    name: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl HostLimits {
    pub(super) fn new(per_host: usize) -> Self {
        Self { per_host: per_host.min(Semaphore::MAX_PERMITS), busy: BusyHosts::default() }
    }

    /// Waits for a permit, but not longer than `wait_limit`.
    pub(super) async fn acquire(
        &self,
        name: &str,
        wait_limit: Duration,
    ) -> Result<HostPermit, HostBusyError> {
        let slots = Self::register(&mut self.busy.lock(), name, self.per_host)?;
        // From here on dropping this releases the entry, even while we wait.
        let mut slot = self.permit(name);
        let permit = timeout(wait_limit, slots.acquire_owned()).await;
        slot.permit = Some(permit.map_err(|_| HostBusyError)?.map_err(|_| HostBusyError)?);
        Ok(slot)
    }

    /// Takes a permit for a long call, unless it is the last free one: short calls need that.
    pub(super) fn try_reserve(&self, name: &str) -> Result<HostPermit, HostBusyError> {
        let mut busy = self.busy.lock();
        if free_slots(&busy, name, self.per_host) < 2 {
            return Err(HostBusyError);
        }
        let slots = Self::register(&mut busy, name, self.per_host)?;
        let taken = slots.try_acquire_owned();
        // Dropping a permit takes the lock.
        drop(busy);
        let mut slot = self.permit(name);
        slot.permit = Some(taken.map_err(|_| HostBusyError)?);
        Ok(slot)
    }

    /// Whether [`try_reserve`](Self::try_reserve) would succeed now.
    pub(super) fn has_spare_slot(&self, name: &str) -> bool {
        let busy = self.busy.lock();
        free_slots(&busy, name, self.per_host) >= 2
            && (busy.len() < HOSTS_MAX || busy.contains_key(name))
    }

    fn permit(&self, name: &str) -> HostPermit {
        HostPermit { busy: Arc::clone(&self.busy), name: name.to_owned(), permit: None }
    }

    fn register(
        busy: &mut HashMap<String, HostEntry>,
        name: &str,
        per_host: usize,
    ) -> Result<Arc<Semaphore>, HostBusyError> {
        if let Some(host) = busy.get_mut(name) {
            if host.calls >= CALLS_PER_HOST_MAX.max(per_host) {
                return Err(HostBusyError);
            }
            host.calls += 1;
            return Ok(Arc::clone(&host.slots));
        }
        if busy.len() >= HOSTS_MAX {
            return Err(HostBusyError);
        }
        let slots = Arc::new(Semaphore::new(per_host));
        busy.insert(name.to_owned(), HostEntry { slots: Arc::clone(&slots), calls: 1 });
        Ok(slots)
    }
}

fn free_slots(busy: &HashMap<String, HostEntry>, name: &str, per_host: usize) -> usize {
    busy.get(name).map_or(per_host, |host| host.slots.available_permits())
}

impl HostPermit {
    /// The host it is for.
    pub(super) fn host(&self) -> &str {
        &self.name
    }
}

impl Drop for HostPermit {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut busy = self.busy.lock();
        if let Some(host) = busy.get_mut(&self.name) {
            host.calls -= 1;
            if host.calls == 0 {
                busy.remove(&self.name);
            }
        }
    }
}

// A limit on the calls one host gets in a minute, so that the hub cannot be made to flood a host
// by pointing many agents at it.
//
// Pure apart from its counts: time is an argument. A call over the limit waits; it does not count
// as a failure of the host.

const MINUTE_US: i64 = 60_000_000;
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

    const AT_ONCE: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn one_host_gets_no_more_calls_than_its_cap_and_others_are_not_held_up() {
        let hosts = HostLimits::new(2);
        let first = hosts.acquire("a.example", AT_ONCE).await.expect("a slot is free");
        let _second = hosts.acquire("a.example", AT_ONCE).await.expect("a slot is free");
        assert_eq!(hosts.acquire("a.example", AT_ONCE).await.err(), Some(HostBusyError));
        assert!(hosts.acquire("b.example", AT_ONCE).await.is_ok());
        drop(first);
        assert!(hosts.acquire("a.example", AT_ONCE).await.is_ok());
    }

    #[tokio::test]
    async fn a_waiting_call_goes_on_when_a_slot_comes_free() {
        let hosts = HostLimits::new(1);
        let first = hosts.acquire("a.example", AT_ONCE).await.expect("a slot is free");
        let (second, ()) = tokio::join!(hosts.acquire("a.example", LONG), async { drop(first) });
        assert!(second.is_ok());
    }

    #[tokio::test]
    async fn an_idle_host_leaves_nothing_behind() {
        let hosts = HostLimits::new(1);
        let first = hosts.acquire("a.example", AT_ONCE).await.expect("a slot is free");
        assert!(hosts.acquire("a.example", AT_ONCE).await.is_err());
        assert!(timeout(AT_ONCE, hosts.acquire("a.example", LONG)).await.is_err());
        assert_eq!(hosts.busy.lock().len(), 1);
        drop(first);
        assert!(hosts.busy.lock().is_empty());
    }

    #[tokio::test]
    async fn callers_beyond_the_queue_are_turned_away_at_once() {
        let hosts = HostLimits::new(1);
        let mut waiting = Vec::new();
        for _ in 0..CALLS_PER_HOST_MAX {
            let queued = HostLimits::register(&mut hosts.busy.lock(), "a.example", 1);
            queued.expect("the queue has space");
            waiting.push(hosts.permit("a.example"));
        }
        assert_eq!(hosts.acquire("a.example", LONG).await.err(), Some(HostBusyError));
        drop(waiting);
        assert!(hosts.acquire("a.example", AT_ONCE).await.is_ok());
    }

    #[tokio::test]
    async fn long_calls_leave_the_last_slot_of_a_host_to_short_ones() {
        let hosts = HostLimits::new(2);
        assert!(hosts.has_spare_slot("a.example"));
        let long = hosts.try_reserve("a.example").expect("two slots are free");
        assert_eq!(long.host(), "a.example");
        assert!(!hosts.has_spare_slot("a.example"));
        assert_eq!(hosts.try_reserve("a.example").err(), Some(HostBusyError));
        assert!(hosts.has_spare_slot("b.example"));
        let short = hosts.acquire("a.example", AT_ONCE).await.expect("one slot is left");
        drop((long, short));
        assert!(hosts.busy.lock().is_empty());
        assert!(hosts.try_reserve("a.example").is_ok());
        assert!(HostLimits::new(1).try_reserve("a.example").is_err());
    }

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
    fn without_a_limit_no_caller_is_counted() {
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
