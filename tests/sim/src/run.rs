//! Runs many lives on several threads, with the same result on any number of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::dice::mix;
use crate::failure::{self, Failed};
use crate::log::{Census, Hash, Log};

/// Commands decided in one life before it comes to its end.
pub const A_LIFE: u64 = 500;
/// One in this many lives is written to a file and audited.
const AUDITED: u64 = 64;

/// A simulated life, which follows from a seed and the numbers of its steps.
pub trait Simulation: Sized {
    /// What it is besides its seed.
    type Options: Copy + Sync;

    /// Commands decided in a whole life, as a rule and not less.
    const AS_A_RULE: u64;

    fn begin(seed: u64, options: Self::Options, runtime: Arc<Runtime>) -> Self;

    /// Runs the step of this number.
    fn step(&mut self, number: u64);

    /// No agent acts any more, and the final state is checked.
    fn end_well(&mut self, audited: bool);

    fn log(&self) -> &Log;

    /// A readable record of what was done, if one is wanted.
    fn told(&mut self) -> &mut Option<Vec<String>>;

    /// The options on the command line.
    fn flags(options: Self::Options) -> String;
}

/// What to run.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub seed: u64,
    /// Commands to decide.
    pub ops: u64,
    pub threads: usize,
}

/// The result of a run.
pub struct Report {
    pub plan: Plan,
    pub lives: u64,
    pub decided: u64,
    /// Over everything that was asked, answered and written.
    pub hash: u64,
    pub census: Census,
    pub took: Duration,
    pub failed: Option<Failed>,
}

/// The seed of one life of a run.
pub fn seed_of(run: u64, life: u64) -> u64 {
    mix(run, life)
}

/// Runs all lives, or until one fails.
pub fn run<S: Simulation>(plan: Plan, options: S::Options) -> Report {
    let started = Instant::now();
    let lives = plan.ops.div_ceil(S::AS_A_RULE);
    let (next, stop) = (AtomicU64::new(0), AtomicBool::new(false));
    let logs = Mutex::new(vec![Log::default(); lives as usize]);
    let failed = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..plan.threads.max(1) {
            scope.spawn(|| {
                let runtime = runtime();
                loop {
                    let life = next.fetch_add(1, Ordering::Relaxed);
                    if life >= lives || stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let seed = seed_of(plan.seed, life);
                    match whole::<S>(seed, options, life.is_multiple_of(AUDITED), &runtime) {
                        Ok(log) => logs.lock()[life as usize] = log,
                        Err(why) => {
                            stop.store(true, Ordering::Relaxed);
                            failed.lock().get_or_insert(why);
                        }
                    }
                }
            });
        }
    });
    let (mut census, mut hash, mut decided) = (Census::default(), Hash::default(), 0);
    for log in logs.into_inner() {
        census.absorb(&log.census);
        hash.number(log.hash.value());
        decided += log.decided;
    }
    let (hash, took) = (hash.value(), started.elapsed());
    Report { plan, lives, decided, hash, census, took, failed: failed.into_inner() }
}

/// A runtime for reads beside the lane; the lane itself is run manually.
pub fn runtime() -> Arc<Runtime> {
    let built = Builder::new_current_thread().enable_time().max_blocking_threads(1).build();
    Arc::new(built.expect("a runtime can be created"))
}

/// Runs one life by its own seed; returns its failure, if any.
pub fn one<S: Simulation>(seed: u64, options: S::Options) -> Option<Failed> {
    whole::<S>(seed, options, true, &runtime()).err()
}

/// Runs lives until one fails, and returns the operations until then and the failure. `None` if so
/// many operations were not enough.
pub fn first_failure<S: Simulation>(
    run: u64,
    options: S::Options,
    ops: u64,
) -> Option<(u64, String)> {
    let (runtime, mut decided) = (runtime(), 0);
    for life in 0.. {
        let seed = seed_of(run, life);
        let mut lived = 0;
        let ended = failure::caught(|| {
            let mut life = S::begin(seed, options, runtime.clone());
            for step in 1.. {
                lived = life.log().decided;
                if lived >= A_LIFE {
                    break;
                }
                life.step(mix(seed, step));
            }
            life.end_well(false);
        });
        decided += lived;
        match ended {
            Err(why) => return Some((decided, why)),
            Ok(()) if decided >= ops => return None,
            Ok(()) => {}
        }
    }
    None
}

/// Runs one life from beginning to end.
fn whole<S: Simulation>(
    seed: u64,
    options: S::Options,
    audited: bool,
    runtime: &Arc<Runtime>,
) -> Result<Log, Failed> {
    let mut steps = 0;
    let lived = failure::caught(|| {
        let mut life = S::begin(seed, options, runtime.clone());
        while life.log().decided < A_LIFE {
            steps += 1;
            life.step(mix(seed, steps));
        }
        life.end_well(audited);
        life.log().clone()
    });
    lived.map_err(|why| Failed::found::<S>(seed, options, steps, audited, why))
}

impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { plan, lives, decided, hash, took, .. } = self;
        let a_second = *decided as f64 / took.as_secs_f64();
        writeln!(
            f,
            "seed {}: {decided} operations in {lives} lives on {} threads, {:.1} s, {:.0} a second",
            plan.seed,
            plan.threads,
            took.as_secs_f64(),
            a_second
        )?;
        writeln!(f, "log hash {hash:016x}")?;
        match &self.failed {
            Some(failed) => write!(f, "{failed}"),
            None => writeln!(f, "no violation"),
        }
    }
}
