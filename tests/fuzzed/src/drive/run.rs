//! One run of one target: the whole corpus, then a number of mutations.

use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;
use std::time::{Duration, Instant};

use allocation_counter::AllocationInfo;

use super::broken::Broken;
use super::corpus::Corpus;
use super::dice::Dice;
use super::memory::Memory;
use super::mutate::Mutator;
use super::parents::Parents;
use super::smaller::smaller;
use super::watchdog::Watchdog;
use crate::target::Target;

/// How much to test.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Number of mutations, before the target's share.
    pub inputs: u64,
    /// The seed of the random numbers.
    pub seed: u64,
    /// Timeout for one input, after which the process is killed: far more than any needs.
    pub time_limit: Duration,
}

/// The result of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// How many inputs were tested.
    pub inputs: u64,
    /// The highest peak and the highest total memory of one input, in percent of what is allowed.
    pub held: u64,
    pub taken: u64,
    /// The slowest input. It is reported but not checked, because timing depends on the machine's
    /// load.
    pub slowest: (Duration, usize),
    /// The duration of the run.
    pub took: Duration,
}

thread_local! {
    /// Set while a panic is expected, so that it is caught silently.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// The message and location of the last panic.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a target up to the first input that fails.
pub fn run(target: &'static Target, plan: Plan) -> Result<Summary, Broken> {
    let corpus = Corpus::of(target.name).map_err(|error| Broken {
        target: target.name,
        why: format!("the corpus cannot be read: {error}"),
        input: Vec::new(),
    })?;
    let inputs: Vec<Vec<u8>> = corpus.0.into_iter().map(|(_, bytes)| bytes).collect();
    let (mut dice, mut summary) = (Dice::new(plan.seed), Summary::default());
    let trial = Trial { target, watchdog: Watchdog::over(target.name, plan.time_limit) };
    // Runs each input once first, so that one-time setup does not count as the cost of an input.
    for input in &inputs {
        let _ = trial.verdict(input);
    }
    let began = Instant::now();
    let mut parents = Parents::new(inputs.clone());
    for input in &inputs {
        let used = trial.tried(input, &mut summary)?;
        parents.offer(&mut dice, input, used.count_total);
    }
    let mutator = Mutator::new(target.words);
    for _ in 0..plan.inputs * target.cost.share / 100 {
        let (one, other) = parents.pair(&mut dice);
        let input = mutator.made(&mut dice, one, other);
        let used = trial.tried(&input, &mut summary)?;
        parents.offer(&mut dice, &input, used.count_total);
    }
    summary.took = began.elapsed();
    Ok(summary)
}

/// A target and its watchdog.
struct Trial {
    target: &'static Target,
    watchdog: Watchdog,
}

impl Trial {
    fn tried(&self, input: &[u8], summary: &mut Summary) -> Result<AllocationInfo, Broken> {
        let began = Instant::now();
        let found = self.verdict(input);
        let took = began.elapsed();
        let used = found.map_err(|why| {
            let input = smaller(input, |shorter| self.verdict(shorter).is_err());
            let why = self.verdict(&input).err().unwrap_or(why);
            Broken { target: self.target.name, why, input }
        })?;
        let [held, taken] = self.target.cost.allowed(input.len());
        summary.inputs += 1;
        summary.held = summary.held.max(used.bytes_max * 100 / held);
        summary.taken = summary.taken.max(used.bytes_total * 100 / taken);
        summary.slowest = summary.slowest.max((took, input.len()));
        Ok(used)
    }

    /// The cost of an input, or why it failed.
    fn verdict(&self, input: &[u8]) -> Result<AllocationInfo, String> {
        hush();
        let cost = self.target.cost;
        let memory = cost.elsewhere.map(|allowed| (Memory::now(), allowed));
        let mut caught = Ok(());
        let used = self.watchdog.watching(input, || {
            allocation_counter::measure(|| {
                QUIET.set(true);
                caught = panic::catch_unwind(AssertUnwindSafe(|| (self.target.check)(input)));
                QUIET.set(false);
            })
        });
        caught.map_err(|_| SAID.take())?;
        let [held, taken] = cost.allowed(input.len());
        if used.bytes_max > held {
            return Err(format!("held {} bytes at the same time", used.bytes_max));
        }
        if used.bytes_total > taken {
            return Err(format!("allocated {} bytes in total", used.bytes_total));
        }
        match memory.map(|(memory, allowed)| (memory.grown(), allowed)) {
            Some((grown, allowed)) if grown > allowed => {
                Err(format!("grew the memory of the whole process by {grown} bytes"))
            }
            _ => Ok(used),
        }
    }
}

/// Caught panics are reported once, with the input that caused them, and not by the runtime.
fn hush() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| match QUIET.get() {
            true => SAID.set(panic.to_string()),
            false => usual(panic),
        }));
    });
}
