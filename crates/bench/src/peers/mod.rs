//! Other message queues that are measured beside the hub, where they are installed: the same senders,
//! payloads and receivers, each message on disk before it is confirmed.

mod nats;
mod redis;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyper::StatusCode;
use tempfile::TempDir;

use crate::arrivals::{Receivers, measure_arrivals};
use crate::connection::BenchRequest;
use crate::load::{self, LoadPlan, Target};
use crate::measurement::Measurement;
use crate::message::Messages;
use crate::process::ServerProcess;
use crate::relay::RelayAgent;

use nats::Publish;
use redis::RedisCommand;

/// A running peer; it ends when this is dropped.
pub struct Peer {
    /// Its name, version and how it syncs.
    pub name: String,
    /// How many times its rate the hub's is to be. None if it does not sync each message, and is
    /// therefore not comparable.
    pub goal: Option<f64>,
    kind: PeerKind,
    address: SocketAddr,
    server: ServerProcess,
    _dir: TempDir,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerKind {
    Redis,
    Nats,
}

impl Peer {
    /// Starts all peers that are installed, with this many receivers. Also returns a note about each
    /// that is not.
    pub fn start_all(receivers: usize) -> io::Result<(Vec<Self>, Vec<String>)> {
        let (mut peers, mut notes) = (Vec::new(), Vec::new());
        match version("redis-server", "v=") {
            Some(version) => peers.push(redis::start(&version, receivers)?),
            None => notes.push(missing("redis-server")),
        }
        match version("nats-server", ": v") {
            Some(version) => peers.push(nats::start(&version, receivers)?),
            None => notes.push(missing("nats-server")),
        }
        let unsynced = peers.iter().filter(|peer| peer.goal.is_none());
        notes.extend(unsynced.map(|peer| {
            format!(
                "{}: this version cannot sync each message, so there is no goal for it",
                peer.name
            )
        }));
        Ok((peers, notes))
    }

    /// This peer as the target of a load.
    pub fn target(&self) -> Target {
        Target { pid: Some(self.server.pid()), ..Target::new(self.address) }
    }

    /// Sends the hub's messages through this peer and measures arrivals and delivery times.
    pub fn send_and_receive(&self, plan: &LoadPlan, receivers: usize) -> io::Result<Measurement> {
        let agent = |prefix: &str, at: usize| {
            RelayAgent::new(format!("{prefix}-{at:05}@chorus"), "0".repeat(51))
        };
        let senders: Vec<_> = (0..plan.connections).map(|at| agent("from", at)).collect();
        let owners: Vec<_> = (0..receivers).map(|at| agent("here", at)).collect();
        let messages = Messages::new(plan.address, &senders, &owners, 0);
        match self.kind {
            PeerKind::Redis => {
                let open = redis::open_receivers(self.address, receivers)?;
                run(plan, open, move |at, n| {
                    let payload = messages.nth(at, n).body();
                    RedisCommand::add(messages.receiver_of(at, n), &payload)
                })
            }
            PeerKind::Nats => {
                let open = nats::open_receivers(self.address, receivers)?;
                run(plan, open, move |at, n| {
                    let payload = messages.nth(at, n).body();
                    Publish::new(messages.receiver_of(at, n), payload)
                })
            }
        }
    }
}

fn run<R: BenchRequest>(
    plan: &LoadPlan,
    receivers: Receivers,
    request_for: impl Fn(usize, u64) -> R + Send + Sync + 'static,
) -> io::Result<Measurement> {
    let accepted = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&accepted);
    let check = move |status: StatusCode, _: &[u8]| {
        counter.fetch_add(u64::from(status.is_success()), Ordering::Relaxed);
        status.is_success()
    };
    let sent = load::run_timed(plan, request_for, check)?;
    let accepted = accepted.load(Ordering::Relaxed);
    receivers.wait_for(accepted);
    let arrivals = receivers.close()?;
    Ok(measure_arrivals(plan, sent, &arrivals, accepted))
}

fn missing(package: &str) -> String {
    format!("{package} is not installed (Debian package {package}), so it was not measured")
}

/// The version that a server reports after `mark`; `None` if it is not installed.
fn version(program: &str, mark: &str) -> Option<String> {
    let output = Command::new(program).arg("--version").stderr(Stdio::null()).output().ok()?;
    read_version(&String::from_utf8_lossy(&output.stdout), mark)
}

fn read_version(text: &str, mark: &str) -> Option<String> {
    let (_, rest) = text.split_once(mark)?;
    rest.split_whitespace().next().map(str::to_owned)
}

/// An address of the loopback interface that is free now.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind(("127.0.0.1", 0))?.local_addr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_from_what_the_servers_print() {
        let redis = "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64";
        assert_eq!(read_version(redis, "v=").as_deref(), Some("7.0.15"));
        assert_eq!(read_version("nats-server: v2.9.10\n", ": v").as_deref(), Some("2.9.10"));
        assert_eq!(read_version("", "v="), None);
        assert_eq!(version("no-such-server", "v="), None);
    }
}
