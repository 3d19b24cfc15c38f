//! One run of one target: every kept input as it is, then so many made of them.

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

/// How much is tried.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Inputs that are made, before the target's share.
    pub inputs: u64,
    /// What chance begins with.
    pub seed: u64,
    /// What one input may take before the process is ended: far more than any does.
    pub patience: Duration,
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Summary {
    /// How many inputs were tried.
    pub inputs: u64,
    /// The most that was held for one, and the most taken, in hundredths of what was allowed.
    pub held: u64,
    pub taken: u64,
    /// The slowest of them. Told, not judged: clocks depend on who else is working.
    pub slowest: (Duration, usize),
    /// All of them.
    pub took: Duration,
}

thread_local! {
    /// Set while a panic is expected, so that it is caught without a word.
    static QUIET: Cell<bool> = const { Cell::new(false) };
    /// What the last of them said, and where.
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a target, up to the first input that breaks something.
pub fn run(target: &'static Target, plan: Plan) -> Result<Summary, Broken> {
    let corpus = Corpus::of(target.name).map_err(|error| Broken {
        target: target.name,
        why: format!("its inputs cannot be read: {error}"),
        input: Vec::new(),
    })?;
    let inputs: Vec<Vec<u8>> = corpus.0.into_iter().map(|(_, bytes)| bytes).collect();
    let (mut dice, mut summary) = (Dice::new(plan.seed), Summary::default());
    let trial = Trial { target, watchdog: Watchdog::over(target.name, plan.patience) };
    // What is set up once, with the first input of its kind, is not what an input costs.
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

/// A target and who watches it.
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

    /// What an input cost, or what it broke.
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
            return Err(format!("took {} bytes one after the other", used.bytes_total));
        }
        match memory.map(|(memory, allowed)| (memory.grown(), allowed)) {
            Some((grown, allowed)) if grown > allowed => {
                Err(format!("made the whole process hold {grown} bytes more"))
            }
            _ => Ok(used),
        }
    }
}

/// Panics that are caught are told once, by the input that caused them, and not by the runtime.
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
