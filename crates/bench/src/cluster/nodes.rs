//! The nodes of one hub, each a process of its own.

use std::io;
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use crate::hub::{BenchHub, Ending, HubBinary, SharedStore, is_ready};
use crate::load::Target;

/// How long it may take until a node writes, or one that lost its database is ready again.
const READY_TIMEOUT: Duration = Duration::from_secs(30);
const CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// All nodes of one hub.
pub struct Nodes(pub Vec<BenchHub>);

impl Nodes {
    /// Starts one node after the other; the first becomes the writer.
    pub fn start(binary: &HubBinary, store: &SharedStore, count: usize) -> io::Result<Self> {
        let mut nodes: Vec<BenchHub> = Vec::with_capacity(count);
        for _ in 0..count {
            nodes.push(BenchHub::start_node(binary, store, nodes.first())?);
        }
        Ok(Self(nodes))
    }

    /// All nodes as targets of one load.
    pub fn targets(&self) -> Vec<Target> {
        self.0.iter().map(BenchHub::target).collect()
    }

    /// Which node writes.
    pub fn writer(&self) -> io::Result<usize> {
        let began = Instant::now();
        while began.elapsed() < READY_TIMEOUT {
            let writer = self.0.iter().position(|node| node.is_writer().unwrap_or(false));
            if let Some(writer) = writer {
                return Ok(writer);
            }
            thread::sleep(CHECK_INTERVAL);
        }
        Err(io::Error::other("no node writes"))
    }

    /// The writer and the followers.
    pub fn by_role(&self) -> io::Result<(&BenchHub, Vec<&BenchHub>)> {
        let writer = self.writer()?;
        let followers = self.0.iter().enumerate().filter(|(at, _)| *at != writer);
        Ok((&self.0[writer], followers.map(|(_, node)| node).collect()))
    }

    /// Waits until all nodes are ready. Starts those that have ended, and returns how many.
    pub fn repair(&mut self) -> io::Result<usize> {
        let mut ended = 0;
        for node in &mut self.0 {
            if !(node.is_running()? && wait_until_ready(node.address)) {
                node.restart(Ending::Killed)?;
                ended += 1;
            }
        }
        self.writer()?;
        Ok(ended)
    }
}

fn wait_until_ready(node: SocketAddr) -> bool {
    let began = Instant::now();
    while began.elapsed() < READY_TIMEOUT {
        if is_ready(node) {
            return true;
        }
        thread::sleep(CHECK_INTERVAL);
    }
    false
}
