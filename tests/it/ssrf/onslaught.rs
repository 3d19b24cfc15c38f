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
/// Addresses of the servers of cards, which are listed as well: elsewhere, and on loopback.
const CARDS: &str = "9.9.9.10";
const CARDS_HERE: &str = "127.9.9.9";
/// Of the URLs that are only stored, every so many is tried.
const KEPT_STEP: usize = 8;
/// Concurrent requests.
const AT_ONCE: usize = 16;

/// URLs that may be called: by address, by name, and by both kinds.
const CONTROLS: [&str; 3] =
    ["https://8.8.8.8/in", "https://[2606:4700::1111]/in", "https://good.example/in"];

/// Those of some URLs that an operator can name as key sets.
fn key_sets(urls: &[String]) -> Vec<String> {
    let is_setting = |url: &&String| {
        let parsed = reqwest::Url::parse(url).ok();
        parsed.is_some_and(|url| matches!(url.scheme(), "https" | "http") && url.has_host())
            && url.trim() == url.as_str()
            && !url.contains(',')
    };
    urls.iter().filter(is_setting).cloned().collect()
}

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

        let bench = Bench::set("", ip(CARDS), &CONTROLS.map(str::to_owned)).await;
        let control = Self { traps, bench, tried: 0, taken: 0 };
        control.controls(&dns).await;
        // A new hub, so that retries of the last one's failed deliveries are not seen.
        let (urls, names) = (literals::all(&PORTS), rebinding::teach(&dns));
        let named: Vec<String> = names.iter().map(|name| format!("https://{name}/in")).collect();
        let strict = control.moved_to("", &[&urls[..], &named].concat()).await;
        let (strict, literals) = strict.literals(urls).await;
        let strict = strict.names(&names, &named).await;
        let redirects: Vec<String> =
            redirects::paths().iter().map(|path| format!("http://{LISTED}{path}")).collect();
        let listed = strict.moved_to(&format!("{LISTED}/32"), &redirects).await;
        let listed = listed.redirects(&redirects).await;
        assert_eq!(refused_connects(), failed_before, "the hub called a port without a listener");
        println!(
            "ssrf: {literals} URLs and {} names through {} fields, {} redirects: {} requests, \
             {} taken; {} questions to DNS; {reachable} forbidden addresses at {} ports \
             reachable, 0 connections there",
            names.len(),
            CALLED.len() + KEPT.len(),
            redirects.len(),
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
        let bench = Bench::set("", ip(CARDS_HERE), &key_sets(&urls)).await;
        let own = Self { traps, bench, tried: 0, taken: 0 };
        let (own, count) = own.literals(urls).await;
        println!("ssrf: {count} URLs of this machine, {} requests, 0 connections", own.tried);
    }

    /// The same with another hub, which may call these networks besides the public ones, and which
    /// trusts key sets at these URLs.
    async fn moved_to(self, allow: &str, urls: &[String]) -> Self {
        let Self { traps, bench, tried, taken } = self;
        bench.end().await;
        traps.take().await;
        let bench = Bench::set(allow, ip(CARDS), &key_sets(urls)).await;
        Self { traps, bench, tried, taken }
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

    /// Allowed addresses are called through every field.
    async fn controls(&self, dns: &Dns) {
        let public = vec![vec![ip(PUBLIC)]];
        dns.teach("good.example", Meaning { turns: public, canonical: None });
        for url in CONTROLS {
            for field in CALLED {
                let status = self.bench.give(field, url).await;
                let wanted = if field.is_read_at_once() { 400..401 } else { 200..300 };
                assert!(wanted.contains(&status), "{field:?} of {url}: {status}");
                self.settled().await;
                let seen = self.traps.take().await;
                let expected = if url.contains('[') { PUBLIC_SIX } else { PUBLIC };
                let places: Vec<&IpAddr> = seen.keys().collect();
                assert_eq!(places, [&ip(expected)], "{field:?} of {url} must be called only there");
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
    async fn names(self, names: &[String], urls: &[String]) -> Self {
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
        this
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

    async fn redirects(self, urls: &[String]) -> Self {
        let pairs = urls.iter().zip(CALLED.iter().cycle().copied());
        let pairs = pairs.map(|(url, field)| (field, url.as_str())).collect();
        let this = self.all(pairs).await;
        let seen = this.caught(&[LISTED]).await;
        assert!(seen[&ip(LISTED)] >= urls.len(), "each of {} was called: {seen:?}", urls.len());
        this
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
