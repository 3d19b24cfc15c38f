//! Benchmarks the real process: its start time and idle memory on a small store, and the memory each
//! of many open inboxes costs it.

use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::hub::{HubProcess, SETTINGS, temporary_dir};
use crate::inbox::OpenInboxes;
use crate::relay::register_agents;
use crate::report::Goal;
use crate::rounds::median;

/// Goal: ready within this many milliseconds.
const READY_MS: f64 = 150.0;
/// Goal: idle memory of at most this many megabytes.
const IDLE_MB: f64 = 60.0;
/// Goal: kibibytes per idle stream.
const STREAM_KIB: f64 = 20.0;
/// Time until memory that was only needed for opening is released.
const SETTLE: Duration = Duration::from_secs(2);

/// Starts the hub several times on the same small store.
pub fn measure_start(rounds: usize) -> io::Result<Vec<Goal>> {
    let dir = temporary_dir()?;
    // The first start creates the store and is not measured.
    start_once(dir.path())?;
    let mut times = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..rounds.max(3) {
        let (time, size) = start_once(dir.path())?;
        times.push(time);
        sizes.push(size);
    }
    Ok(vec![
        Goal::at_most("start on a small store until ready", median(times), READY_MS, "ms"),
        Goal::at_most("memory of an idle hub", median(sizes), IDLE_MB, "MB"),
    ])
}

fn start_once(dir: &Path) -> io::Result<(f64, f64)> {
    let began = Instant::now();
    let hub = HubProcess::start(dir, &[])?;
    let time = began.elapsed().as_secs_f64() * 1_000.0;
    sleep(Duration::from_millis(500));
    Ok((time, hub.rss_bytes().map_or(f64::NAN, |bytes| bytes as f64 / 1e6)))
}

/// Opens `count` inboxes and compares the hub's memory before and after.
pub fn measure_streams(count: usize) -> io::Result<Goal> {
    let dir = temporary_dir()?;
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
    Ok(Goal::at_most(format!("memory of an idle stream, {count} open"), each, STREAM_KIB, "KiB"))
}
