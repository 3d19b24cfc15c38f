//! All URLs against a hub, field by field, and what the traps saw.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;

use super::dns::{Dns, Meaning};
use super::fields::{Bench, CALLED, Field, KEPT};
use super::namespace::refused_connects;
use super::rebinding::{PUBLIC, PUBLIC_SIX, ip};
use super::traps::Traps;
use super::{literals, rebinding, redirects};
use crate::kit::eventually;

/// Ports of services that must not be reachable from outside.
const PORTS: [u16; 8] = [443, 80, 8080, 8443, 22, 2375, 6379, 9200];
/// An address that the operator listed, so that plain http is allowed.
const LISTED: &str = "9.9.9.9";
/// Of the URLs that are only stored, every so many is tried.
const KEPT_STEP: usize = 8;
/// Concurrent requests.
const AT_ONCE: usize = 16;

/// The number of tried and of accepted URLs.
pub struct Onslaught {
    traps: Traps,
    bench: Bench,
    tried: usize,
    taken: usize,
}

impl Onslaught {
    /// Inside the namespace, where every address is the test's own.
    pub async fn everywhere() {
        // An unknown name resolves to a private network.
        let otherwise = Meaning { turns: vec![vec![ip("10.0.0.1")]], canonical: None };
        let dns = Dns::start(otherwise).await;
        let traps = Traps::set(&PORTS).await;
        let reachable = Self::reachable(&traps).await;
        let failed_before = refused_connects();

        let control = Self { traps, bench: Bench::set("").await, tried: 0, taken: 0 };
        control.controls(&dns).await;
        // A new hub, so that retries of the last one's failed deliveries are not seen.
        let strict = control.moved_to("").await;
        let (strict, literals) = strict.literals(literals::all(&PORTS)).await;
        let (strict, names) = strict.names(&dns).await;
        let listed = strict.moved_to(&format!("{LISTED}/32")).await;
        let (listed, redirected) = listed.redirects().await;
        assert_eq!(refused_connects(), failed_before, "the hub called a port without a listener");
        println!(
            "ssrf: {literals} URLs and {names} names through {} fields, {redirected} redirects: \
             {} requests, {} taken; {} questions to DNS; {reachable} forbidden addresses at {} \
             ports reachable, 0 connections there",
            CALLED.len() + KEPT.len(),
            listed.tried,
            listed.taken,
            dns.questions(),
            PORTS.len(),
        );
    }

    /// Outside, with what loopback allows.
    pub async fn on_loopback() {
        let traps = Traps::set(&[0]).await;
        let urls = literals::of_this_machine(&traps.ports);
        let bench = Bench::set("").await;
        let own = Self { traps, bench, tried: 0, taken: 0 };
        let (own, count) = own.literals(urls).await;
        println!("ssrf: {count} URLs of this machine, {} requests, 0 connections", own.tried);
    }

    /// The same with another hub, which may call these networks besides the public ones.
    async fn moved_to(self, allow: &str) -> Self {
        let Self { traps, bench, tried, taken } = self;
        bench.hub.0.stop().await;
        traps.take().await;
        Self { traps, bench: Bench::set(allow).await, tried, taken }
    }

    /// How many of the forbidden addresses are reachable at all: an unreachable trap would prove
    /// nothing.
    async fn reachable(traps: &Traps) -> usize {
        let mut unreachable = Vec::new();
        for address in literals::closed() {
            let target = SocketAddr::from((address, PORTS[0]));
            let tried = tokio::net::TcpStream::connect(target);
            match tokio::time::timeout(Duration::from_secs(2), tried).await {
                Ok(Ok(_)) => {}
                _ => unreachable.push(address),
            }
        }
        let all = literals::closed().len();
        let seen: usize = traps.take().await.values().sum();
        let reached = all - unreachable.len();
        assert_eq!(seen, reached, "the traps see every connection");
        // Multicast and broadcast addresses, and link-local ones without a zone, cannot be
        // connected to.
        let never = |address: &IpAddr| match address.to_canonical() {
            IpAddr::V4(ip) => ip.is_multicast() || ip.is_broadcast(),
            IpAddr::V6(ip) => ip.is_multicast() || ip.is_unicast_link_local(),
        };
        unreachable.retain(|address| !never(address));
        assert!(unreachable.is_empty(), "no trap is reachable at {unreachable:?}");
        reached
    }

    /// Allowed addresses are called through every field: by address, by name, and by both kinds.
    async fn controls(&self, dns: &Dns) {
        let public = vec![vec![ip(PUBLIC)]];
        dns.teach("good.example", Meaning { turns: public, canonical: None });
        for host in [PUBLIC.to_owned(), format!("[{PUBLIC_SIX}]"), "good.example".to_owned()] {
            for field in CALLED {
                let status = self.bench.give(field, &format!("https://{host}/in")).await;
                assert!(status < 300, "{field:?} of {host}: {status}");
                self.settled().await;
                let seen = self.traps.take().await;
                let expected = if host.contains(':') { PUBLIC_SIX } else { PUBLIC };
                let places: Vec<&IpAddr> = seen.keys().collect();
                assert_eq!(
                    places,
                    [&ip(expected)],
                    "{field:?} of {host} must be called only there"
                );
            }
        }
    }

    /// Every URL through every called field, and some through those that only store it.
    async fn literals(self, urls: Vec<String>) -> (Self, usize) {
        let through = |fields: &'static [Field], step| {
            let urls = urls.iter().step_by(step).map(String::as_str);
            urls.flat_map(move |url| fields.iter().map(move |field| (*field, url)))
        };
        let pairs = through(&CALLED, 1).chain(through(&KEPT, KEPT_STEP));
        let count = urls.len();
        let this = self.all(pairs.collect()).await;
        this.caught(&[]).await;
        (this, count)
    }

    /// Every name through the registry, which also has a test call, and through one more field.
    async fn names(self, dns: &Dns) -> (Self, usize) {
        let names = rebinding::teach(dns);
        let urls: Vec<String> = names.iter().map(|name| format!("https://{name}/in")).collect();
        let others = CALLED.iter().chain(&KEPT).cycle().copied();
        let both = urls.iter().zip(others);
        let pairs = both.flat_map(|(url, field)| [(Field::ApiEndpoint, url), (field, url)]);
        let this = self.all(pairs.map(|(field, url)| (field, url.as_str())).collect()).await;
        // Names that are valid at first are called at first.
        let seen = this.caught(&[PUBLIC]).await;
        let turning = names.iter().filter(|name| name.starts_with("later")).count();
        assert!(seen[&ip(PUBLIC)] >= turning, "{seen:?} of {turning}");
        this.again().await;
        this.caught(&[PUBLIC]).await;
        (this, names.len())
    }

    /// Retries every failed delivery, which resolves its name again.
    async fn again(&self) {
        let hub = &self.bench.hub;
        let waiting: Vec<u64> =
            hub.engine.with_world(|world| world.deliveries().map(|push| push.notice.0).collect());
        assert!(!waiting.is_empty(), "no delivery succeeded, so some are pending");
        for notice in waiting {
            let path = format!("/v1/operator/pushes/{notice}/retry");
            hub.call("POST", &path, Some(&hub.operator), None).await;
        }
        self.settled().await;
    }

    async fn redirects(self) -> (Self, usize) {
        let urls: Vec<String> =
            redirects::paths().iter().map(|path| format!("http://{LISTED}{path}")).collect();
        let pairs = urls.iter().zip(CALLED.iter().cycle().copied());
        let pairs = pairs.map(|(url, field)| (field, url.as_str())).collect();
        let this = self.all(pairs).await;
        let seen = this.caught(&[LISTED]).await;
        assert!(seen[&ip(LISTED)] >= urls.len(), "each of {} was called: {seen:?}", urls.len());
        let count = urls.len();
        (this, count)
    }

    async fn all(mut self, pairs: Vec<(Field, &str)>) -> Self {
        let bench = &self.bench;
        let tried = pairs.len();
        let given = stream::iter(pairs).map(|(field, url)| bench.give(field, url));
        let answers: Vec<u16> = given.buffer_unordered(AT_ONCE).collect().await;
        let odd: Vec<&u16> = answers.iter().filter(|status| **status >= 500).collect();
        assert!(odd.is_empty(), "the hub had internal errors: {odd:?}");
        self.tried += tried;
        self.taken += answers.iter().filter(|status| **status < 300).count();
        self.settled().await;
        self
    }

    /// Waits until every pending delivery was attempted.
    async fn settled(&self) {
        let engine = &self.bench.hub.engine;
        // A running delivery is due until its result is recorded.
        eventually(async || {
            engine.with_world(|world| world.deliveries_due(engine.now()).next().is_none())
        })
        .await;
    }

    /// Checks that only these addresses were connected to.
    async fn caught(&self, permitted: &[&str]) -> BTreeMap<IpAddr, usize> {
        let seen = self.traps.take().await;
        let permitted: Vec<IpAddr> = permitted.iter().map(|text| ip(text)).collect();
        let wrong: Vec<_> = seen.iter().filter(|(place, _)| !permitted.contains(place)).collect();
        assert!(wrong.is_empty(), "the hub connected to {wrong:?}");
        seen
    }
}
