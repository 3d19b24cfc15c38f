//! Dialling: from a name to a connection, through the guard.
//!
//! A name is resolved once for every connect. All its addresses are checked, one forbidden address
//! refuses them all, and only checked addresses are dialled, so nothing can change between check
//! and connect. reqwest does not call a resolver for literal addresses: `Guard::check_url` checks
//! those at every send.
//!
//! A pooled connection is not checked again and need not be: it leads to the address that was
//! checked when it was dialled, whatever the name resolves to now. Pools are kept per scheme, host
//! and port, and the http and the https client have one each, so a connection accepted for TLS is
//! never used without it.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest::dns::{Addrs, Name};
use reqwest::redirect::Policy;
use reqwest::{Client, retry};
use tokio::net::lookup_host;
use tokio::sync::Semaphore;
use url::Host;

use super::guard::{CheckedUrl, Guard, TargetError, is_local_name};

/// How long an unused connection is kept: long enough for a burst, shorter than the idle timeout of
/// common servers, so that we rarely write into a connection that is just being closed.
const POOL_IDLE: Duration = Duration::from_millis(1_500);
/// Addresses of one family to try; a hostile zone could list thousands.
const ADDRESSES_PER_FAMILY_MAX: usize = 4;
/// Concurrent lookups. Each holds one of the runtime's blocking threads (512 by default) until the
/// system times out, and one slow name server must not take them all.
const LOOKUPS_MAX: usize = 128;

/// A future that resolves to the addresses of a name.
pub type ResolveFuture = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Resolves names to addresses. The addresses are not trusted.
pub trait Resolve: Send + Sync + 'static {
    /// Looks `name` up, once.
    fn resolve(&self, name: &str) -> ResolveFuture;
}

/// The resolver of the operating system.
pub(super) struct SystemResolver {
    lookups: Arc<Semaphore>,
}

impl Default for SystemResolver {
    fn default() -> Self {
        Self { lookups: Arc::new(Semaphore::new(LOOKUPS_MAX)) }
    }
}

impl Resolve for SystemResolver {
    fn resolve(&self, name: &str) -> ResolveFuture {
        let (name, lookups) = (name.to_owned(), Arc::clone(&self.lookups));
        Box::pin(async move {
            let turn = lookups.acquire_owned().await.map_err(io::Error::other)?;
            // A separate task: if the caller stops waiting, the lookup still runs, and it must keep
            // its permit until its thread is free again.
            let lookup = tokio::spawn(async move {
                let found = lookup_host((name.as_str(), 0)).await?;
                let found = found.map(|address| address.ip()).collect();
                drop(turn);
                Ok(found)
            });
            lookup.await.map_err(io::Error::other)?
        })
    }
}

/// Applies the guard between a resolver and reqwest.
struct GuardedResolver {
    resolver: Arc<dyn Resolve>,
    guard: Arc<Guard>,
    plain: bool,
}

impl GuardedResolver {
    /// All addresses, or none if a single one is forbidden.
    fn check_addresses(
        guard: &Guard,
        plain: bool,
        found: &[IpAddr],
    ) -> Result<Vec<SocketAddr>, TargetError> {
        for address in found {
            guard.check_address(*address).map_err(|_| TargetError::ResolvesToPrivate)?;
            if plain && !guard.is_allowed(*address) {
                return Err(TargetError::PlainHttp);
            }
        }
        let family = |v4: bool| found.iter().filter(move |ip| ip.is_ipv4() == v4);
        let few = |v4: bool| family(v4).take(ADDRESSES_PER_FAMILY_MAX);
        // Port 0 stands for the port of the URL.
        Ok(few(false).chain(few(true)).map(|ip| SocketAddr::new(*ip, 0)).collect())
    }
}

/// Why a name gives no address to dial.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResolveError {
    #[error(transparent)]
    Blocked(#[from] TargetError),
    #[error(transparent)]
    NotResolved(#[from] io::Error),
}

/// The addresses of a name that may be dialled.
async fn checked_addresses(
    resolver: &dyn Resolve,
    guard: &Guard,
    plain: bool,
    name: &str,
) -> Result<Vec<SocketAddr>, ResolveError> {
    // Names of this machine are never looked up in DNS: its answer could only be wrong.
    let found = if is_local_name(name) {
        guard.allowed_loopback_addresses()
    } else {
        resolver.resolve(name).await?
    };
    if found.is_empty() {
        return Err(io::Error::from(io::ErrorKind::NotFound).into());
    }
    Ok(GuardedResolver::check_addresses(guard, plain, &found)?)
}

impl reqwest::dns::Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> reqwest::dns::Resolving {
        let (resolver, guard) = (Arc::clone(&self.resolver), Arc::clone(&self.guard));
        let plain = self.plain;
        Box::pin(async move {
            match checked_addresses(&*resolver, &guard, plain, name.as_str()).await {
                Ok(found) => Ok(Box::new(found.into_iter()) as Addrs),
                Err(ResolveError::Blocked(error)) => Err(error.into()),
                Err(ResolveError::NotResolved(error)) => Err(error.into()),
            }
        })
    }
}

/// How a client connects.
pub(super) struct ClientFactory {
    pub(super) names: Arc<dyn Resolve>,
    pub(super) guard: Arc<Guard>,
    pub(super) connect_timeout: Duration,
    pub(super) per_host: usize,
}

impl ClientFactory {
    /// The addresses of `target`, resolved as a connect does it. Every one is checked.
    pub(super) async fn addresses(&self, target: &CheckedUrl) -> Result<Vec<IpAddr>, ResolveError> {
        let name = match target.url().host() {
            Some(Host::Domain(name)) => name,
            Some(Host::Ipv4(ip)) => return Ok(vec![ip.into()]),
            Some(Host::Ipv6(ip)) => return Ok(vec![ip.into()]),
            None => return Ok(Vec::new()),
        };
        let plain = target.is_plain_http();
        let found = checked_addresses(&*self.names, &self.guard, plain, name).await?;
        Ok(found.iter().map(SocketAddr::ip).collect())
    }

    /// A client for https: any checked address is accepted.
    pub(super) fn build_https_client(&self) -> reqwest::Result<Client> {
        self.client(false).https_only(true).build()
    }

    /// A client for http: every address must be in an allowed network. It needs no root
    /// certificates.
    pub(super) fn build_http_client(&self) -> reqwest::Result<Client> {
        self.client(true).tls_certs_only([]).build()
    }

    fn client(&self, plain: bool) -> reqwest::ClientBuilder {
        let (names, guard) = (Arc::clone(&self.names), Arc::clone(&self.guard));
        Client::builder()
            .dns_resolver(GuardedResolver { resolver: names, guard, plain })
            .redirect(Policy::none())
            // A proxy would resolve names itself and bypass the guard.
            .no_proxy()
            // One call is one attempt; the backoff in `retry` decides about the next.
            .retry(retry::never())
            .http1_only()
            // Repeated here, because another crate could enable these features for the whole build.
            // A decompressed response has no bounded length.
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate()
            .referer(false)
            .connect_timeout(self.connect_timeout)
            .pool_idle_timeout(POOL_IDLE)
            .pool_max_idle_per_host(self.per_host)
            .user_agent(super::USER_AGENT)
    }
}

#[cfg(test)]
mod tests {
    use reqwest::dns::Resolve as _;

    use super::*;

    /// Returns one answer after the other.
    struct Turning(parking_lot::Mutex<Vec<Vec<IpAddr>>>);

    impl Resolve for Turning {
        fn resolve(&self, _name: &str) -> ResolveFuture {
            let answer = self.0.lock().pop().unwrap_or_default();
            Box::pin(async move { Ok(answer) })
        }
    }

    /// The addresses that would be dialled, in order; none is.
    async fn dialled(plain: bool, answers: &[&[&str]]) -> Vec<Result<Vec<String>, String>> {
        let ip = |text: &&str| text.parse().expect("an address");
        let answers = answers.iter().rev().map(|one| one.iter().map(ip).collect()).collect();
        let names = Arc::new(Turning(parking_lot::Mutex::new(answers)));
        let guard = Arc::new(Guard::new(vec!["10.7.0.0/16".parse().expect("a network")]));
        let checked = GuardedResolver { resolver: Arc::clone(&names) as _, guard, plain };
        let mut all = Vec::new();
        while !names.0.lock().is_empty() {
            let found = checked.resolve("agent.example".parse().expect("a name")).await;
            let found = found.map(|addresses| addresses.map(|a| a.ip().to_string()).collect());
            all.push(found.map_err(|e| e.to_string()));
        }
        all
    }

    #[tokio::test]
    async fn a_public_answer_is_dialled_and_a_private_one_after_it_is_not() {
        let found = dialled(false, &[&["93.184.216.34"], &["10.0.0.1"], &["93.184.216.34"]]).await;
        let public = Ok(vec!["93.184.216.34".to_owned()]);
        assert_eq!(
            found,
            [public.clone(), Err(TargetError::ResolvesToPrivate.to_string()), public]
        );
    }

    #[tokio::test]
    async fn without_tls_only_listed_addresses_are_dialled() {
        let found = dialled(true, &[&["10.7.1.1"], &["93.184.216.34"], &["10.8.1.1"]]).await;
        let listed = Ok(vec!["10.7.1.1".to_owned()]);
        let (plain, resolved) =
            (TargetError::PlainHttp.to_string(), TargetError::ResolvesToPrivate.to_string());
        assert_eq!(found, [listed, Err(plain), Err(resolved)]);
    }

    #[tokio::test]
    async fn of_many_addresses_a_few_of_each_family_are_dialled() {
        let mut many = vec!["93.184.216.34"; 500];
        many.extend(["2606:4700::1111"; 500]);
        let found = dialled(false, &[&many]).await.remove(0).expect("all are public");
        assert_eq!(found.len(), 2 * ADDRESSES_PER_FAMILY_MAX);
    }

    #[tokio::test]
    async fn the_system_knows_this_machine() {
        let found = Resolve::resolve(&SystemResolver::default(), "localhost").await;
        let found = found.expect("every system has this name in its hosts file");
        assert!(found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
