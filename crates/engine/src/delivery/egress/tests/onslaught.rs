//! Runs the whole table of hostile URLs, and names that resolve into every closed network, against
//! the guard at registration and at the call. A trap on loopback must see no connection.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::server::{Does, Server};
use super::urls::{CLOSED, HOSTILE, PLAIN};
use super::*;

const OK_CLOSE: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
/// An address the hubs of these tests accept.
const PUBLIC: &str = "93.184.216.34";

/// One port of this machine, on IPv4 and, if available, on IPv6, that must see no connection.
struct Trap {
    port: u16,
    /// Addresses to connect to, to be sure that all earlier connections have been seen.
    doors: Vec<SocketAddr>,
    seen: mpsc::UnboundedReceiver<SocketAddr>,
}

impl Trap {
    async fn set() -> Self {
        let four = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).await.expect("a free port");
        let port = four.local_addr().expect("a bound listener has an address").port();
        let six = TcpListener::bind((Ipv6Addr::LOCALHOST, port)).await.ok();
        let mut doors = vec![SocketAddr::from((Ipv4Addr::LOCALHOST, port))];
        doors.extend(six.as_ref().map(|_| SocketAddr::from((Ipv6Addr::LOCALHOST, port))));
        let (tell, seen) = mpsc::unbounded_channel();
        for listener in [Some(four), six].into_iter().flatten() {
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Ok((_, from)) = listener.accept().await {
                    tell.send(from).expect("the trap's receiver lives until the test ends");
                }
            });
        }
        Self { port, doors, seen }
    }

    /// The connections since the last call. They are accepted in the order they were made, so once
    /// our own connection is seen, all earlier ones have been.
    async fn caught(&mut self) -> Vec<SocketAddr> {
        let mut caught = Vec::new();
        for door in &self.doors {
            let knock = TcpStream::connect(door).await.expect("the trap listens");
            let us = knock.local_addr().expect("a connected socket has an address");
            while let Some(from) = self.seen.recv().await.filter(|from| *from != us) {
                caught.push(from);
            }
        }
        caught
    }

    async fn assert_empty(&mut self, after: &str) {
        let caught = self.caught().await;
        assert!(caught.is_empty(), "{after} led to {} connections", caught.len());
    }
}

/// The URL as it is, with the trap's port if it names none, and both by plain http.
fn variants(url: &str, port: u16) -> BTreeSet<String> {
    let mut all = BTreeSet::from([url.to_owned()]);
    if let Some((scheme, rest)) = url.split_once("://") {
        let (host, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if host.ends_with(']') || !host.contains(':') {
            all.insert(format!("{scheme}://{host}:{port}{path}"));
        }
    }
    let plain = |url: &String| url.strip_prefix("https://").map(|rest| format!("http://{rest}"));
    all.extend(all.iter().filter_map(plain).collect::<Vec<_>>());
    all
}

fn hub(allow: &[&str], answers: &[&[&str]]) -> Egress {
    Egress::with_resolver(settings(allow, LONG), Names::answering(answers)).expect("good settings")
}

#[test]
fn the_table_is_long_and_says_nothing_twice() {
    let distinct: BTreeSet<_> = HOSTILE.iter().chain(PLAIN).collect();
    assert!(distinct.len() >= 220, "{}", distinct.len());
    let twice: Vec<_> =
        HOSTILE.iter().enumerate().filter(|(at, url)| HOSTILE[..*at].contains(url)).collect();
    assert!(twice.is_empty(), "{twice:?}");
}

#[tokio::test]
async fn the_trap_server_sees_every_call_that_is_let_through() {
    let mut trap = Trap::set().await;
    let port = trap.port;
    let egress = hub(&["127.0.0.0/8", "::1/128"], &[&["127.0.0.1"]]);
    for door in trap.doors.clone() {
        let called = post(&egress, &format!("http://{door}/")).await;
        assert!(matches!(called, Err(SendError::InvalidResponse(_))), "{door} {called:?}");
        assert_eq!(trap.caught().await.len(), 1, "{door}");
    }
    let by_name = post(&egress, &format!("http://agent.example:{port}/")).await;
    assert!(matches!(by_name, Err(SendError::InvalidResponse(_))), "{by_name:?}");
    assert_eq!(trap.caught().await.len(), 1);
}

#[tokio::test]
async fn no_hostile_url_can_be_registered_or_called() {
    let mut trap = Trap::set().await;
    let mut through = Vec::new();
    // An allowed network allows no other, and all names resolve to the trap.
    for allow in [&[][..], &["10.99.0.0/16", "fd99::/64"][..]] {
        let egress = hub(allow, &[&["127.0.0.1", "::1"]]);
        let plain = if allow.is_empty() { PLAIN } else { &[] };
        for url in HOSTILE.iter().chain(plain) {
            for url in &variants(url, trap.port) {
                let called = post(&egress, url).await;
                if !matches!(called, Err(SendError::Blocked(_))) {
                    through.push(format!("{url} was called: {called:?}"));
                }
            }
            if egress.check_url(url).is_ok() {
                through.push(format!("{url} was registered"));
            }
            trap.assert_empty(url).await;
        }
    }
    assert!(through.is_empty(), "{through:#?}");
}

#[tokio::test]
async fn every_way_to_write_this_machine_leads_to_no_listener_of_it() {
    let mut trap = Trap::set().await;
    let port = trap.port;
    // Only one address of this machine is allowed: the others stay refused, also for plain http.
    let egress = hub(&["127.0.0.77/32"], &[&["127.0.0.1"]]);
    for host in ["127.0.0.1", "127.1", "0", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]"] {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            assert_eq!(egress.check_url(&url), Err(TargetError::PrivateAddress), "{url}");
            let called = post(&egress, &url).await;
            assert_eq!(called, Err(SendError::Blocked(TargetError::PrivateAddress)), "{url}");
            trap.assert_empty(&url).await;
        }
    }
}

#[tokio::test]
async fn no_name_leads_to_a_closed_network_alone_or_among_others() {
    let mut trap = Trap::set().await;
    let port = trap.port;
    for closed in CLOSED {
        for answer in [
            &[*closed][..],
            &[PUBLIC, closed],
            &[closed, PUBLIC],
            &["127.0.0.1", closed],
            &["2606:4700::1111", PUBLIC, "127.0.0.1", closed],
        ] {
            let egress = hub(&["127.0.0.1/32"], &[answer]);
            for scheme in ["https", "http"] {
                // At registration only the form of the URL can be checked.
                let url = format!("{scheme}://agent.example:{port}/hook");
                assert_eq!(egress.check_url(&url), Ok(()), "{url}");
                let called = post(&egress, &url).await;
                let refused = matches!(called, Err(SendError::Blocked(_)));
                assert!(refused, "{url} at {answer:?}: {called:?}");
            }
        }
        trap.assert_empty(closed).await;
    }
}

#[tokio::test]
async fn names_that_machines_and_clouds_give_themselves_are_refused_once_they_resolve() {
    let mut trap = Trap::set().await;
    let port = trap.port;
    for (name, address) in [
        ("metadata.google.internal", "169.254.169.254"),
        ("metadata", "169.254.169.254"),
        ("instance-data", "169.254.169.254"),
        ("metadata.tencentyun.com", "169.254.0.23"),
        ("kubernetes.default.svc", "10.96.0.1"),
        ("host.docker.internal", "192.168.65.254"),
        ("gateway.docker.internal", "172.17.0.1"),
        ("localhost.localdomain", "127.0.0.1"),
        ("localhost6", "::1"),
        ("ip6-localhost", "::1"),
        ("ip6-loopback", "::1"),
        ("router.local", "192.168.0.1"),
        ("127.0.0.1.nip.example", "127.0.0.1"),
        ("7f000001.rebind.example", "127.0.0.1"),
    ] {
        let egress = hub(&[], &[&[address]]);
        let url = format!("https://{name}:{port}/");
        let called = post(&egress, &url).await;
        assert_eq!(called, Err(SendError::Blocked(TargetError::ResolvesToPrivate)), "{url}");
        trap.assert_empty(&url).await;
    }
}

#[tokio::test]
async fn a_name_that_was_good_when_it_was_checked_is_refused_when_it_no_longer_is() {
    let server = Server::start(Does::Reply(OK_CLOSE)).await;
    let url = server.url("http", "agent.example");
    for (at, closed) in CLOSED.iter().enumerate() {
        let egress = hub(&["127.0.0.1/32"], &[&["127.0.0.1"], &[closed], &["127.0.0.1", closed]]);
        assert_eq!(egress.check_url(&url), Ok(()), "{closed}");
        assert!(post(&egress, &url).await.is_ok(), "{closed}");
        for _ in 0..2 {
            assert_eq!(egress.check_url(&url), Ok(()), "{closed}");
            let called = post(&egress, &url).await;
            assert_eq!(called, Err(SendError::Blocked(TargetError::ResolvesToPrivate)), "{closed}");
        }
        assert_eq!(server.hits(), at + 1, "{closed}");
    }
}

#[tokio::test]
async fn a_redirect_from_a_listed_server_leads_nowhere() {
    let mut trap = Trap::set().await;
    let port = trap.port;
    let egress = hub(&["127.0.0.1/32"], &[&["127.0.0.1"]]);
    for status in [300, 301, 302, 303, 305, 307, 308] {
        for place in [
            format!("http://127.0.0.2:{port}/"),
            // Even the allowed address itself: the receiver must register the URL that is called.
            format!("http://127.0.0.1:{port}/"),
            format!("https://127.0.0.1:{port}/"),
            format!("//127.0.0.1:{port}/"),
            format!("http://[::1]:{port}/"),
            format!("http://localhost:{port}/"),
            format!("http://agent.example:{port}/"),
        ] {
            let head = format!("HTTP/1.1 {status} Elsewhere\r\nconnection: close\r\n");
            let more = format!("refresh: 0; url={place}\r\ncontent-length: 0\r\n\r\n");
            let reply = format!("{head}location: {place}\r\n{more}");
            let server = Server::start(Does::Reply(reply.leak())).await;
            let answer = post(&egress, &server.url("http", "127.0.0.1")).await;
            assert_eq!(answer, Ok(HttpResponse { status, body: Bytes::new() }), "{status} {place}");
            assert_eq!(server.hits(), 1, "{status} {place}");
            trap.assert_empty(&place).await;
        }
    }
}
