//! Rate limits per caller for registrations, writes and reads (C11).

use std::hash::{BuildHasher, Hash, RandomState};
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use governor::clock::{Clock, DefaultClock};
use governor::middleware::NoOpMiddleware;
use governor::{Quota, RateLimiter};
use parking_lot::{Mutex, RwLock};
use rialto_protocols::adapter::{EdgeError, RateClass};

use super::peer::Peer;
use super::rate_store::BoundedRateStore;
use super::read_rate::{ReadCost, ReadRate};
use crate::config;

/// Number of checks after which idle callers are removed.
pub(super) const SWEEP_EVERY: u32 = 1024;

/// How many agents may share an address and each sign up to their limit. Checking a signature costs
/// CPU even if it is invalid, so it is counted against the address.
const SIGNERS_PER_ADDRESS: NonZeroU32 = NonZeroU32::new(10).expect("ten is not zero");

/// The key for the counter of all callers together.
const ALL_CALLERS: u64 = 0;

/// All rate limits of one hub. They can be changed while it runs.
pub struct RateLimits<C: Clock = DefaultClock> {
    rates: RwLock<Arc<RateSet<C>>>,
    /// The limits of the whole hub, and how many nodes share them.
    whole: Mutex<(PerMinute, NonZeroU32)>,
    clock: C,
    /// Randomly seeded, so that a caller cannot choose which bucket it shares. Keys are not stored,
    /// not even as plain hashes.
    hash: RandomState,
}

struct RateSet<C: Clock> {
    registrations: Option<RateCounter<C>>,
    /// Addresses are cheap, so registrations from all of them are also counted together.
    registrations_total: Option<RateCounter<C>>,
    writes: Option<RateCounter<C>>,
    reads: Option<ReadRate<C>>,
    /// Signed requests of one address before the signer is known.
    signed: Option<RateCounter<C>>,
    wrong_keys: Option<RateCounter<C>>,
    per_minute: PerMinute,
}

/// Limits per minute; `None` is unlimited.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct PerMinute {
    registrations: Option<NonZeroU32>,
    registrations_total: Option<NonZeroU32>,
    writes: Option<NonZeroU32>,
    read_bytes: Option<NonZeroU32>,
    wrong_keys: Option<NonZeroU32>,
}

/// A caller whose credential was checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// An agent, by its number.
    Agent(u64),
    Operator,
}

/// The identity a caller is counted under: the principal of its credential, so that neither another
/// spelling of a header nor a new key makes it another caller. Without a valid credential it is the
/// address.
#[derive(Clone, Copy, Debug)]
pub struct CallerIdentity {
    pub principal: Option<Principal>,
    pub peer: Peer,
}

struct RateCounter<C: Clock> {
    limiter: RateLimiter<u64, BoundedRateStore, C, NoOpMiddleware<C::Instant>>,
    checks: AtomicU32,
}

impl From<&config::Limits> for PerMinute {
    fn from(limits: &config::Limits) -> Self {
        Self {
            registrations: limits.registrations_per_minute.max(),
            registrations_total: limits.registrations_per_minute_total.max(),
            writes: limits.writes_per_minute.max(),
            read_bytes: limits.read_bytes_per_minute.max(),
            wrong_keys: limits.wrong_keys_per_minute.max(),
        }
    }
}

impl RateLimits {
    pub fn new(limits: &config::Limits) -> Self {
        Self::with_clock(limits.into(), DefaultClock::default())
    }

    /// Replaces the limits. The counters are reset, unless nothing changed.
    pub fn update(&self, limits: &config::Limits) {
        self.update_to(limits.into());
    }
}

impl PerMinute {
    /// What one of several nodes permits, which is at least one where there is a limit.
    fn shared_between(self, nodes: NonZeroU32) -> Self {
        let share = |limit: Option<NonZeroU32>| {
            limit.map(|limit| NonZeroU32::new(limit.get() / nodes).unwrap_or(NonZeroU32::MIN))
        };
        Self {
            registrations: share(self.registrations),
            registrations_total: share(self.registrations_total),
            writes: share(self.writes),
            read_bytes: share(self.read_bytes),
            wrong_keys: share(self.wrong_keys),
        }
    }
}

impl<C: Clock + Clone> RateLimits<C> {
    fn with_clock(per_minute: PerMinute, clock: C) -> Self {
        let rates = RwLock::new(Arc::new(RateSet::new(per_minute, &clock)));
        let whole = Mutex::new((per_minute, NonZeroU32::MIN));
        Self { rates, whole, clock, hash: RandomState::new() }
    }

    /// Divides the limits between the nodes of a hub, each of which counts for itself. The counters
    /// are reset when the number of nodes changes.
    pub fn share_between(&self, nodes: usize) {
        let nodes = u32::try_from(nodes).ok().and_then(NonZeroU32::new).unwrap_or(NonZeroU32::MIN);
        self.change(|(_, shares)| *shares = nodes);
    }

    fn update_to(&self, per_minute: PerMinute) {
        self.change(|(whole, _)| *whole = per_minute);
    }

    fn change(&self, change: impl FnOnce(&mut (PerMinute, NonZeroU32))) {
        let mut whole = self.whole.lock();
        change(&mut whole);
        let per_minute = whole.0.shared_between(whole.1);
        if self.rates().per_minute != per_minute {
            *self.rates.write() = Arc::new(RateSet::new(per_minute, &self.clock));
        }
    }
}

impl<C: Clock + Clone> RateSet<C> {
    fn new(per_minute: PerMinute, clock: &C) -> Self {
        let rate = |per_minute: NonZeroU32| RateCounter::new(per_minute, clock.clone());
        Self {
            registrations: per_minute.registrations.map(rate),
            registrations_total: per_minute.registrations_total.map(rate),
            writes: per_minute.writes.map(rate),
            reads: per_minute.read_bytes.map(|bytes| ReadRate::new(bytes, clock.clone())),
            signed: per_minute.writes.map(|one| rate(one.saturating_mul(SIGNERS_PER_ADDRESS))),
            wrong_keys: per_minute.wrong_keys.map(rate),
            per_minute,
        }
    }
}

impl<C: Clock> RateLimits<C> {
    fn rates(&self) -> Arc<RateSet<C>> {
        self.rates.read().clone()
    }

    /// Counts a request, or refuses it. A read is counted once its response is ready; see
    /// `charge_read`.
    pub fn check(&self, kind: RateClass, caller: CallerIdentity) -> Result<(), EdgeError> {
        let rates = self.rates();
        let rate = match kind {
            RateClass::Read => return self.check_read(&rates, caller),
            RateClass::Register => return self.check_registration(&rates, caller.peer),
            RateClass::Write => &rates.writes,
            RateClass::Signed => return self.check_signature(caller.peer),
        };
        rate.as_ref().map_or(Ok(()), |rate| rate.check(self.key_of(caller)))
    }

    /// Counts a read.
    pub fn charge_read(&self, caller: CallerIdentity, cost: ReadCost) {
        if let Some(reads) = &self.rates().reads {
            reads.charge(self.key_of(caller), cost);
        }
    }

    fn key_of(&self, caller: CallerIdentity) -> u64 {
        match caller.principal {
            Some(principal) => self.hash.hash_one(principal),
            None => self.hash.hash_one(caller.peer),
        }
    }

    fn check_read(&self, rates: &RateSet<C>, caller: CallerIdentity) -> Result<(), EdgeError> {
        let Some(reads) = &rates.reads else { return Ok(()) };
        reads.check(self.key_of(caller)).map_err(|millis| EdgeError::TooManyRequests {
            retry_after_seconds: millis.div_ceil(1_000).max(1),
        })
    }

    /// The address is checked first, so that excess requests of one address do not use up the
    /// shared limit.
    fn check_registration(&self, rates: &RateSet<C>, peer: Peer) -> Result<(), EdgeError> {
        let (own, all) = (rates.registrations.as_ref(), rates.registrations_total.as_ref());
        own.map_or(Ok(()), |rate| rate.check(self.hash.hash_one(peer)))?;
        all.map_or(Ok(()), |rate| rate.check(ALL_CALLERS))
    }

    /// Counts a registration that did not come through `/register`.
    pub fn check_registration_from(&self, from: SocketAddr) -> Result<(), EdgeError> {
        self.check_registration(&self.rates(), Peer::from(from))
    }

    /// Counts a signature check against the address.
    pub fn check_signature(&self, peer: Peer) -> Result<(), EdgeError> {
        let rates = self.rates();
        rates.signed.as_ref().map_or(Ok(()), |rate| rate.check(self.hash.hash_one(peer)))
    }

    /// Counts an invalid key; past the limit it returns an error.
    pub fn check_wrong_key(&self, peer: Peer) -> Result<(), EdgeError> {
        let rates = self.rates();
        rates.wrong_keys.as_ref().map_or(Ok(()), |rate| rate.check(self.hash.hash_one(peer)))
    }

    /// Counts a write of a signer that is known from the signed content.
    pub fn check_signer(&self, who: impl Hash) -> Result<(), EdgeError> {
        let rates = self.rates();
        rates.writes.as_ref().map_or(Ok(()), |rate| rate.check(self.hash.hash_one(who)))
    }
}

impl<C: Clock> RateCounter<C> {
    fn new(per_minute: NonZeroU32, clock: C) -> Self {
        let limiter =
            RateLimiter::new(Quota::per_minute(per_minute), BoundedRateStore::default(), clock);
        Self { limiter, checks: AtomicU32::new(0) }
    }

    fn check(&self, caller: u64) -> Result<(), EdgeError> {
        if self.checks.fetch_add(1, Relaxed) % SWEEP_EVERY == SWEEP_EVERY - 1 {
            self.limiter.retain_recent();
        }
        self.limiter.check_key(&caller).map_err(|until| {
            let wait = until.wait_time_from(self.limiter.clock().now());
            // Rounded up: a caller that waits this long must not be refused again.
            let retry_after_seconds = wait.as_millis().div_ceil(1000).max(1) as u64;
            EdgeError::TooManyRequests { retry_after_seconds }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::time::Duration;

    use governor::clock::FakeRelativeClock;

    use super::*;

    fn peer(last: u8) -> Peer {
        Peer::from(SocketAddr::from((Ipv4Addr::new(192, 0, 2, last), 1)))
    }

    fn anyone(last: u8) -> CallerIdentity {
        CallerIdentity { principal: None, peer: peer(last) }
    }

    fn agent(id: u64, last: u8) -> CallerIdentity {
        CallerIdentity { principal: Some(Principal::Agent(id)), peer: peer(last) }
    }

    fn limits(
        registrations: u32,
        writes: u32,
    ) -> (RateLimits<FakeRelativeClock>, FakeRelativeClock) {
        let (registrations, writes) = (NonZeroU32::new(registrations), NonZeroU32::new(writes));
        with(PerMinute { registrations, writes, ..PerMinute::default() })
    }

    fn with(per_minute: PerMinute) -> (RateLimits<FakeRelativeClock>, FakeRelativeClock) {
        let clock = FakeRelativeClock::default();
        (RateLimits::with_clock(per_minute, clock.clone()), clock)
    }

    const LATER: Result<(), EdgeError> =
        Err(EdgeError::TooManyRequests { retry_after_seconds: 30 });

    #[test]
    fn registrations_are_counted_by_peer_whatever_key_comes_with_them() {
        let (limits, clock) = limits(2, 0);
        assert_eq!(limits.check(RateClass::Register, anyone(1)), Ok(()));
        assert_eq!(limits.check(RateClass::Register, agent(1, 1)), Ok(()));
        assert_eq!(limits.check(RateClass::Register, agent(2, 1)), LATER);
        assert_eq!(limits.check(RateClass::Register, anyone(2)), Ok(()));
        clock.advance(Duration::from_secs(30));
        assert_eq!(limits.check(RateClass::Register, anyone(1)), Ok(()));
        assert_eq!(limits.check(RateClass::Register, anyone(1)), LATER);
    }

    #[test]
    fn registrations_of_all_peers_together_have_a_limit_of_their_own() {
        let (own, all) = (NonZeroU32::new(2), NonZeroU32::new(3));
        let rates =
            PerMinute { registrations: own, registrations_total: all, ..PerMinute::default() };
        let (limits, clock) = with(rates);
        let register = |last| limits.check(RateClass::Register, anyone(last));
        assert_eq!([register(1), register(1)], [Ok(()); 2]);
        for _ in 0..9 {
            assert_eq!(register(1), LATER, "the shared limit is not used up");
        }
        assert_eq!(register(2), Ok(()));
        let all_are_refused = Err(EdgeError::TooManyRequests { retry_after_seconds: 20 });
        assert_eq!([register(2), register(3)], [all_are_refused; 2]);
        clock.advance(Duration::from_secs(20));
        assert_eq!([register(3), register(4)], [Ok(()), all_are_refused]);
    }

    #[test]
    fn writes_are_counted_by_principal_and_without_one_by_peer() {
        let (limits, _) = limits(0, 2);
        let operator = CallerIdentity { principal: Some(Principal::Operator), peer: peer(1) };
        for caller in [agent(1, 1), agent(2, 1), operator, anyone(1)] {
            assert_eq!(limits.check(RateClass::Write, caller), Ok(()));
            assert_eq!(limits.check(RateClass::Write, caller), Ok(()));
            assert_eq!(limits.check(RateClass::Write, caller), LATER);
        }
        assert_eq!(limits.check(RateClass::Write, agent(1, 2)), LATER);
        assert_eq!(limits.check(RateClass::Read, agent(1, 1)), Ok(()));
    }

    #[test]
    fn what_an_agent_signs_and_what_it_writes_with_a_key_is_counted_together() {
        let (limits, _) = limits(0, 2);
        assert_eq!(limits.check(RateClass::Write, agent(1, 1)), Ok(()));
        assert_eq!(limits.check_signer(Principal::Agent(1)), Ok(()));
        assert_eq!(limits.check_signer(Principal::Agent(1)), LATER);
        assert_eq!(limits.check(RateClass::Write, agent(1, 1)), LATER);
    }

    #[test]
    fn wrong_keys_are_counted_by_peer_and_forgotten_with_time() {
        let (wrong_keys, none) = (NonZeroU32::new(2), PerMinute::default());
        let (limits, clock) = with(PerMinute { wrong_keys, ..none });
        assert_eq!(limits.check_wrong_key(peer(1)), Ok(()));
        assert_eq!(limits.check_wrong_key(peer(1)), Ok(()));
        assert_eq!(limits.check_wrong_key(peer(1)), LATER);
        assert_eq!(limits.check_wrong_key(peer(2)), Ok(()));
        assert_eq!(limits.check(RateClass::Write, agent(1, 1)), Ok(()));
        clock.advance(Duration::from_secs(30));
        assert_eq!(limits.check_wrong_key(peer(1)), Ok(()));
        assert_eq!(limits.check_wrong_key(peer(1)), LATER);
    }

    #[test]
    fn limits_set_anew_count_from_then_on_and_the_same_ones_forget_nothing() {
        let (limits, _) = limits(0, 1);
        let write = || limits.check(RateClass::Write, anyone(1));
        let same = PerMinute { writes: NonZeroU32::new(1), ..PerMinute::default() };
        let wait = Err(EdgeError::TooManyRequests { retry_after_seconds: 60 });
        assert_eq!([write(), write()], [Ok(()), wait]);
        limits.update_to(same);
        assert_eq!(write(), wait, "unchanged limits keep their counters");
        limits.update_to(PerMinute { writes: NonZeroU32::new(2), ..same });
        assert_eq!([write(), write(), write()], [Ok(()), Ok(()), LATER]);
        limits.update_to(PerMinute { writes: None, ..same });
        assert_eq!([write(); 3], [Ok(()); 3]);
    }

    #[test]
    fn nodes_share_the_limits_and_each_permits_something() {
        let (limits, clock) = limits(2, 6);
        let write = || limits.check(RateClass::Write, anyone(1)).is_ok();
        let register = || limits.check(RateClass::Register, anyone(1)).is_ok();
        limits.share_between(3);
        assert_eq!([write(), write(), write()], [true, true, false]);
        assert_eq!([register(), register()], [true, false], "two for three nodes are one each");
        assert_eq!(limits.check_wrong_key(peer(1)), Ok(()), "without a limit there is none");
        limits.share_between(3);
        assert!(!write(), "the same number of nodes keeps the counters");
        clock.advance(Duration::from_secs(60));
        limits.update_to(PerMinute { writes: NonZeroU32::new(3), ..PerMinute::default() });
        assert_eq!([write(), write()], [true, false], "new limits are shared, too");
        limits.share_between(0);
        assert_eq!([write(), write(), write(), write()], [true, true, true, false]);
    }

    #[test]
    fn no_limit_is_no_limit() {
        let (limits, _) = limits(0, 0);
        for _ in 0..10_000 {
            assert_eq!(limits.check(RateClass::Write, anyone(1)), Ok(()));
            assert_eq!(limits.check(RateClass::Register, anyone(1)), Ok(()));
            assert_eq!(limits.check_wrong_key(peer(1)), Ok(()));
        }
    }

    #[test]
    fn callers_that_were_quiet_are_forgotten() {
        let (limits, clock) = limits(2, 0);
        let rates = limits.rates();
        let rate = rates.registrations.as_ref().expect("there is a limit");
        for caller in 0..u64::from(SWEEP_EVERY) - 1 {
            assert_eq!(rate.check(caller), Ok(()));
        }
        clock.advance(Duration::from_secs(61));
        assert_eq!(rate.check(u64::MAX), Ok(()));
        assert_eq!(rate.limiter.len(), 1);
    }
}
