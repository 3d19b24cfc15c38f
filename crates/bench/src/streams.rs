//! Benchmarks idle streams: the memory each of many open inboxes costs a hub in its own process.

use std::io;
use std::thread::sleep;
use std::time::Duration;

use super::hub::SETTINGS;
use super::inbox::OpenInboxes;
use super::process::HubProcess;
use super::relay_agent::register_agents;
use super::report::Goal;

/// Goal: kibibytes per idle stream.
const GOAL_KIB: f64 = 20.0;
/// Time until memory that was only needed for opening is released.
const SETTLE: Duration = Duration::from_secs(2);

/// Opens `count` inboxes and compares the hub's memory before and after.
pub fn measure(count: usize) -> io::Result<Goal> {
    let dir = tempfile::Builder::new().prefix("rialto-bench-").tempdir()?;
    let hub = HubProcess::start(dir.path(), &SETTINGS)?;
    let owners = register_agents(hub.address, "idle", count)?;
    sleep(SETTLE);
    let before = hub.rss_bytes();
    let inboxes = OpenInboxes::open(hub.address, &owners)?;
    sleep(SETTLE);
    let after = hub.rss_bytes();
    inboxes.close()?;
    let grown = before.zip(after).map(|(before, after)| after as f64 - before as f64);
    let each = grown.map_or(f64::NAN, |bytes| bytes / 1_024.0 / count as f64);
    Ok(Goal::at_most(format!("memory of an idle stream, {count} open"), each, GOAL_KIB, "KiB"))
}
