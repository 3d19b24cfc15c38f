//! Benchmarks start time and idle memory of the real process on a small store.

use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use super::process::HubProcess;
use super::report::Goal;
use super::rounds::median;

/// Goal: ready within this many milliseconds.
const READY_MS: f64 = 150.0;
/// Goal: idle memory of at most this many megabytes.
const IDLE_MB: f64 = 60.0;

/// Starts the hub several times on the same small store.
pub fn measure(rounds: usize) -> io::Result<Vec<Goal>> {
    let dir = tempfile::Builder::new().prefix("rialto-bench-").tempdir()?;
    // The first start creates the store and is not measured.
    measure_start(dir.path())?;
    let mut times = Vec::new();
    let mut sizes = Vec::new();
    for _ in 0..rounds.max(3) {
        let (time, size) = measure_start(dir.path())?;
        times.push(time);
        sizes.push(size);
    }
    Ok(vec![
        Goal::at_most("start on a small store until ready", median(times), READY_MS, "ms"),
        Goal::at_most("memory of an idle hub", median(sizes), IDLE_MB, "MB"),
    ])
}

fn measure_start(dir: &Path) -> io::Result<(f64, f64)> {
    let began = Instant::now();
    let hub = HubProcess::start(dir, &[])?;
    let time = began.elapsed().as_secs_f64() * 1_000.0;
    std::thread::sleep(Duration::from_millis(500));
    Ok((time, hub.rss_bytes().map_or(f64::NAN, |bytes| bytes as f64 / 1e6)))
}
