//! A limit on simultaneous calls to one host, so that the hub cannot be used as an amplifier and a
//! slow receiver delays only its own deliveries.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
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
    busy: Mutex<HashMap<String, HostEntry>>,
}

/// The permit for one call; dropping it admits the next one.
pub(super) struct HostPermit<'a> {
    hosts: &'a HostLimits,
    name: String,
    permit: Option<OwnedSemaphorePermit>,
}

impl HostLimits {
    pub(super) fn new(per_host: usize) -> Self {
        Self { per_host: per_host.min(Semaphore::MAX_PERMITS), busy: Mutex::default() }
    }

    /// Waits for a permit, but not longer than `patience`.
    pub(super) async fn acquire(
        &self,
        name: &str,
        wait_limit: Duration,
    ) -> Result<HostPermit<'_>, HostBusyError> {
        let slots = self.register(name)?;
        // From here on dropping this releases the entry, even while we wait.
        let mut slot = HostPermit { hosts: self, name: name.to_owned(), permit: None };
        let permit = timeout(wait_limit, slots.acquire_owned()).await;
        slot.permit = Some(permit.map_err(|_| HostBusyError)?.map_err(|_| HostBusyError)?);
        Ok(slot)
    }

    fn register(&self, name: &str) -> Result<Arc<Semaphore>, HostBusyError> {
        let mut busy = self.busy.lock();
        if let Some(host) = busy.get_mut(name) {
            if host.calls >= CALLS_PER_HOST_MAX.max(self.per_host) {
                return Err(HostBusyError);
            }
            host.calls += 1;
            return Ok(Arc::clone(&host.slots));
        }
        if busy.len() >= HOSTS_MAX {
            return Err(HostBusyError);
        }
        let slots = Arc::new(Semaphore::new(self.per_host));
        busy.insert(name.to_owned(), HostEntry { slots: Arc::clone(&slots), calls: 1 });
        Ok(slots)
    }
}

impl Drop for HostPermit<'_> {
    fn drop(&mut self) {
        drop(self.permit.take());
        let mut busy = self.hosts.busy.lock();
        if let Some(host) = busy.get_mut(&self.name) {
            host.calls -= 1;
            if host.calls == 0 {
                busy.remove(&self.name);
            }
        }
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
            hosts.register("a.example").expect("the queue has space");
            waiting.push(HostPermit { hosts: &hosts, name: "a.example".to_owned(), permit: None });
        }
        assert_eq!(hosts.acquire("a.example", LONG).await.err(), Some(HostBusyError));
        drop(waiting);
        assert!(hosts.acquire("a.example", AT_ONCE).await.is_ok());
    }
}
