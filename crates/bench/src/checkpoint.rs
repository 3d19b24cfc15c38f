//! Benchmarks sends beside a background checkpoint: the p99 of the requests that were in flight while
//! the hub's checkpoint thread worked, divided by the p99 of the others in the same round.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::figure::Figure;
use crate::load::{LoadPlan, Pace};
use crate::measurement::{Percentiles, Tally};
use crate::relay::RelayFixture;
use crate::rounds::{BenchOptions, Results, Series};
use crate::usage::ThreadActivity;

/// Goal: at most this many times the p99 without a checkpoint.
const GOAL: f64 = 1.5;
/// Names of the threads that write checkpoints begin with this.
const THREAD: &str = "checkpoint";
/// Time between two looks at the thread.
const INTERVAL: Duration = Duration::from_millis(5);
/// A checkpoint that pauses for less than this, for example in a sync, is still the same one.
const PAUSE_MAX: Duration = Duration::from_millis(50);
/// Share of the highest rate at which messages are sent: p99 at the highest rate only shows the
/// queue.
const LOAD: f64 = 0.5;
/// Requests on either side below which a p99 means nothing.
const REQUESTS_MIN: usize = 100;

/// Measures each hub in alternating rounds, each at half of the highest rate it reached first.
pub fn measure(options: &BenchOptions) -> io::Result<Results> {
    let connections = options.middle_connections();
    let mut hubs = Vec::new();
    for binary in &options.hubs {
        let fixture = RelayFixture::start(binary, "sqlite", connections, options.receivers)?;
        let plan =
            LoadPlan { keeps_spans: true, ..options.plan(fixture.hub.target(), connections) };
        let highest = fixture.send(&LoadPlan { pace: Pace::Closed, ..plan })?;
        let per_second = match options.pace {
            Pace::Open { per_second } => per_second,
            Pace::Closed => (highest.per_second * LOAD).max(1.0),
        };
        let plan = LoadPlan { pace: Pace::Open { per_second }, ..plan };
        let series = Series {
            name: "send at half of the highest rate".to_owned(),
            hub: binary.label.clone(),
            rounds: Vec::new(),
        };
        hubs.push((fixture, plan, series, Vec::new()));
    }
    let mut results = Results::default();
    for _ in 0..options.rounds {
        for (fixture, plan, series, ratios) in &mut hubs {
            let (run, checkpoints) = send_and_watch(fixture, plan)?;
            series.rounds.push(run.measured);
            ratios.extend(p99_ratio(&run.spans, &checkpoints));
        }
    }
    for (_, _, series, ratios) in hubs {
        let missing = options.rounds - ratios.len();
        if missing > 0 {
            let rounds = options.rounds;
            results.notes.push(format!(
                "p99 beside a checkpoint: in {missing} of {rounds} rounds too few requests were sent \
                 beside one, or without one; use longer rounds (--seconds)"
            ));
        }
        let name = "p99 of a send beside a checkpoint / without";
        let figure = Figure::lower(name, ratios, "×").with_target(GOAL);
        results.figures.push(figure.of_hub(&series.hub));
        results.series.push(series);
    }
    Ok(results)
}

/// Sends, and also returns when checkpoints were written.
fn send_and_watch(
    fixture: &RelayFixture,
    plan: &LoadPlan,
) -> io::Result<(crate::load::LoadRun, Vec<Range<Instant>>)> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut looks = Vec::new();
            while let Some(pid) = plan.pid.filter(|_| !done.load(Ordering::Relaxed)) {
                looks.push((Instant::now(), ThreadActivity::of(pid, THREAD).unwrap_or_default()));
                thread::sleep(INTERVAL);
            }
            looks
        });
        let run = fixture.send_timed(plan);
        done.store(true, Ordering::Relaxed);
        let looks = watching.join().map_err(|_| io::Error::other("the watcher panicked"))?;
        Ok((run?, busy_windows(&looks)))
    })
}

/// When the thread was busy: between two looks its CPU time grew, or it waited for the disk. Short
/// pauses do not count.
fn busy_windows(looks: &[(Instant, ThreadActivity)]) -> Vec<Range<Instant>> {
    let mut windows: Vec<Range<Instant>> = Vec::new();
    for pair in looks.windows(2) {
        let [(from, before), (to, after)] = [pair[0], pair[1]];
        if after.time <= before.time && !after.waits_for_disk {
            continue;
        }
        match windows.last_mut() {
            Some(last) if from.saturating_duration_since(last.end) <= PAUSE_MAX => last.end = to,
            _ => windows.push(from..to),
        }
    }
    windows
}

/// The p99 of the requests that overlap a window divided by the p99 of the others; `None` if either
/// side has too few.
fn p99_ratio(requests: &[Range<Instant>], windows: &[Range<Instant>]) -> Option<f64> {
    let overlaps = |request: &Range<Instant>| {
        // The windows are in order and apart, so only the first that ends later can overlap.
        let next = windows.partition_point(|window| window.end <= request.start);
        windows.get(next).is_some_and(|window| window.start < request.end)
    };
    let (beside, without): (Vec<_>, Vec<_>) = requests.iter().partition(|one| overlaps(one));
    if beside.len() < REQUESTS_MIN || without.len() < REQUESTS_MIN {
        return None;
    }
    Some(p99(&beside) / p99(&without))
}

fn p99(requests: &[&Range<Instant>]) -> f64 {
    let mut tally = Tally::default();
    for request in requests {
        tally.record_latency(request.end.saturating_duration_since(request.start));
    }
    let Percentiles { p99_us, .. } = tally.measured_in(Duration::from_secs(1)).latency;
    p99_us
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(zero: Instant, ms: u64) -> Instant {
        zero + Duration::from_millis(ms)
    }

    #[test]
    fn a_thread_is_busy_while_its_time_grows_and_short_pauses_do_not_count() {
        let zero = Instant::now();
        let looks = [(0, 0), (5, 0), (10, 3), (15, 3), (20, 4), (25, 4), (200, 4), (205, 9)];
        let mut looks = looks.map(|(ms, used)| {
            let time = Duration::from_millis(used);
            (at(zero, ms), ThreadActivity { time, waits_for_disk: false })
        });
        let windows = busy_windows(&looks);
        assert_eq!(windows, [at(zero, 5)..at(zero, 20), at(zero, 200)..at(zero, 205)]);
        looks[6].1.waits_for_disk = true;
        let windows = busy_windows(&looks);
        assert_eq!(windows, [at(zero, 5)..at(zero, 205)], "it waited for the disk in between");
        assert!(busy_windows(&looks[..1]).is_empty());
    }

    #[test]
    fn only_requests_in_flight_during_a_checkpoint_count_as_beside_it() {
        let zero = Instant::now();
        let window = [at(zero, 1_000)..at(zero, 2_000)];
        // Every request takes 2 ms, and 6 ms while the checkpoint is written.
        let requests: Vec<_> = (0..400u64)
            .map(|n| {
                let start = n * 10;
                let beside = (1_000..2_000).contains(&start);
                at(zero, start)..at(zero, start + if beside { 6 } else { 2 })
            })
            .collect();
        let ratio = p99_ratio(&requests, &window).unwrap();
        assert!((ratio - 3.0).abs() < 0.01, "{ratio}");
        assert_eq!(p99_ratio(&requests, &[]), None, "no checkpoint was written");
        let always = [at(zero, 0)..at(zero, 9_000)];
        assert_eq!(p99_ratio(&requests, &always), None, "nothing to compare with");
    }
}
