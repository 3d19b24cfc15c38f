//! A failed life: repeated with fewer and fewer steps, until few enough are left to read.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Once};

use tokio::runtime::Runtime;

use crate::dice::mix;
use crate::run::{Simulation, runtime};

/// Repeats at most while looking for a shorter failure.
const TRIES_MAX: usize = 600;
/// Steps printed at most.
const TOLD_MAX: usize = 60;

/// What failed, and the shortest sequence of steps found that leads there.
#[derive(Clone, Debug)]
pub struct Failed {
    pub seed: u64,
    pub why: String,
    /// The number of steps at first, and the steps that are left.
    pub steps: u64,
    pub left: Vec<u64>,
    pub told: Vec<String>,
    /// The options on the command line that repeat it.
    pub flags: String,
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
    static SAID: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Catches a panic and returns its message; nothing is printed.
pub fn caught<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| match QUIET.get() {
            true => SAID.with_borrow_mut(|said| *said = info.to_string()),
            false => usual(info),
        }));
    });
    let before = QUIET.replace(true);
    let done = catch_unwind(AssertUnwindSafe(work));
    QUIET.set(before);
    done.map_err(|_| SAID.take())
}

impl Failed {
    /// Looks for the shortest sequence of steps with the same failure.
    pub fn found<S: Simulation>(
        seed: u64,
        options: S::Options,
        steps: u64,
        audited: bool,
        why: String,
    ) -> Self {
        let again = |left: &[u64], audited, runtime: &Arc<Runtime>, told| {
            again::<S>(seed, options, left, audited, runtime, told)
        };
        let runtime = runtime();
        let place = place_of(&why);
        // The audit runs only if nothing else shows the failure.
        let all: Vec<u64> = (1..=steps).collect();
        let audited = audited && again(&all, false, &runtime, None).is_ok();
        let fails = |left: &[u64]| {
            let said = again(left, audited, &runtime, None).err();
            said.is_some_and(|said| place_of(&said) == place)
        };
        let left = shortest(all, fails);
        let mut told = Vec::new();
        let why = again(&left, audited, &runtime, Some(&mut told)).err().unwrap_or(why);
        Self { seed, why, steps, left, told, flags: S::flags(options) }
    }
}

/// Runs some of the steps of a life.
fn again<S: Simulation>(
    seed: u64,
    options: S::Options,
    steps: &[u64],
    audited: bool,
    runtime: &Arc<Runtime>,
    told: Option<&mut Vec<String>>,
) -> Result<(), String> {
    let mut heard = Vec::new();
    let listens = told.is_some();
    let lived = caught(|| {
        let mut life = S::begin(seed, options, runtime.clone());
        *life.told() = listens.then(Vec::new);
        let lived = catch_unwind(AssertUnwindSafe(|| {
            steps.iter().for_each(|step| life.step(mix(seed, *step)));
            life.end_well(audited);
        }));
        heard = life.told().take().unwrap_or_default();
        if let Err(panic) = lived {
            std::panic::resume_unwind(panic);
        }
    });
    if let Some(told) = told {
        *told = heard;
    }
    lived
}

/// The line a panic came from: the same bug, whatever the numbers in its message.
fn place_of(said: &str) -> String {
    said.lines().next().unwrap_or_default().to_owned()
}

/// Leaves out as many steps as possible, larger groups first.
fn shortest(mut left: Vec<u64>, fails: impl Fn(&[u64]) -> bool) -> Vec<u64> {
    let (mut piece, mut tries) = (left.len().div_ceil(2), 0);
    while piece > 0 && tries < TRIES_MAX {
        let mut at = 0;
        while at < left.len() && tries < TRIES_MAX {
            let without: Vec<u64> =
                left[..at].iter().chain(left.iter().skip(at + piece)).copied().collect();
            tries += 1;
            match fails(&without) {
                true => left = without,
                false => at += piece,
            }
        }
        piece = if piece == 1 { 0 } else { piece.div_ceil(2) };
    }
    left
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "VIOLATION in the life of seed {}", self.seed)?;
        writeln!(f, "{}", self.why)?;
        let (left, steps) = (self.left.len(), self.steps);
        writeln!(f, "{left} of {steps} steps are enough; the last of what they do:")?;
        let skipped = self.told.len().saturating_sub(TOLD_MAX);
        for line in &self.told[skipped..] {
            writeln!(f, "  {line}")?;
        }
        writeln!(f, "again: cargo xtask sim{} --life {}", self.flags, self.seed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_told_with_the_steps_it_needs_and_no_other() {
        let needs = |left: &[u64]| [3, 41, 42].iter().all(|one| left.contains(one));
        assert_eq!(shortest((1..=200).collect(), needs), [3, 41, 42]);
        assert_eq!(shortest((1..=7).collect(), |_| true), Vec::<u64>::new());
    }

    #[test]
    fn a_panic_is_caught_with_its_place_and_its_words() {
        let said = caught(|| panic!("as planned")).unwrap_err();
        assert!(said.contains("failure.rs") && said.contains("as planned"), "{said}");
        assert_eq!(caught(|| 5), Ok(5));
    }
}
