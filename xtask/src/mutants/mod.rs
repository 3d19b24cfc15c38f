//! `cargo xtask mutants`: checks that the tests detect wrong rules.
//!
//! One small change (a mutant) at a time is applied to a copy of the tree, and the tests of that
//! area are run. A mutant that does not compile does not count; one that no test detects is
//! reported.

mod area;
mod change;
mod copy;
mod planted;

use std::process::ExitCode;
use std::time::Instant;

use area::{Area, Reach, Tests};
use change::Change;
use copy::{Copied, Verdict};

/// The share of mutants that must be detected, in percent.
const GOAL: usize = 95;

pub const USAGE: &str = "\
usage: cargo xtask mutants [--area NAME] [--sample N] [--seed S] [--part K/N]
                           [--only FILE[:LINE]] [--tests quick|own|near|all]
       cargo xtask mutants planted

Applies one mutant at a time to a copy of the tree and runs the tests of that area:
  ledger        how credits move
  jobs          the state changes of a job
  idempotency   a repeated request takes effect once
  authority     which caller may do what

By default all areas and all mutants. --sample selects N of each area by the seed, --part the Kth of
every N, so that several runs can share the work, and --only those of a file or a line.
--tests near runs the tests of single crates only, own those of the changed crate, and quick only
those of them that take a second. `planted` applies the mistakes of planted.rs instead, each of which
must be noticed by the tests named there.";

/// The options.
struct Wish {
    area: Option<String>,
    sample: Option<usize>,
    seed: u64,
    /// Which part of how many, from 1.
    part: (usize, usize),
    only: Option<String>,
    reach: Reach,
}

pub fn run(words: &[String]) -> ExitCode {
    if words == ["planted"] {
        return check_planted();
    }
    let wish = match read(words) {
        Ok(wish) => wish,
        Err(about) => {
            eprintln!("xtask: {about}\n\n{USAGE}");
            return ExitCode::from(crate::USAGE_ERROR);
        }
    };
    let mut good = true;
    for area in Area::ALL {
        if wish.area.as_deref().is_none_or(|name| name == area.name()) {
            good &= check(area, &wish);
        }
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Tests the planted mistakes, all of which must be detected.
fn check_planted() -> ExitCode {
    let copied = match Copied::make("planted") {
        Ok(copied) => copied,
        Err(error) => {
            eprintln!("xtask: cannot copy the tree: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut good = true;
    for mistake in &planted::MISTAKES {
        let (began, verdict) = (Instant::now(), copied.try_mistake(mistake));
        println!("  {verdict:<8} {} ({} s)", mistake.name, began.elapsed().as_secs());
        good &= verdict == Verdict::Caught;
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read(words: &[String]) -> Result<Wish, String> {
    let mut wish =
        Wish { area: None, sample: None, seed: 1, part: (1, 1), only: None, reach: Reach::All };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{value} is not a number"));
        match word.as_str() {
            "--area" if Area::ALL.iter().any(|area| area.name() == value) => {
                wish.area = Some(value.clone());
            }
            "--area" => return Err(format!("unknown area `{value}`")),
            "--sample" => wish.sample = Some(number()? as usize),
            "--seed" => wish.seed = number()?,
            "--part" => wish.part = part(value).ok_or(format!("{value} is not like 1/2"))?,
            "--only" => wish.only = Some(value.clone()),
            "--tests" => {
                wish.reach = match value.as_str() {
                    "quick" => Reach::Quick,
                    "own" => Reach::Own,
                    "near" => Reach::Near,
                    "all" => Reach::All,
                    _ => return Err(format!("--tests: quick, own, near or all, not {value}")),
                };
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    Ok(wish)
}

fn part(text: &str) -> Option<(usize, usize)> {
    let (which, of) = text.split_once('/')?;
    let (which, of) = (which.parse().ok()?, of.parse().ok()?);
    (1..=of).contains(&which).then_some((which, of))
}

/// Tests the mutants of one area. Returns whether enough were detected.
fn check(area: Area, wish: &Wish) -> bool {
    let (which, of) = wish.part;
    let copied = match Copied::make(&format!("{}-{which}", area.name())) {
        Ok(copied) => copied,
        Err(error) => {
            eprintln!("xtask: cannot copy the tree: {error}");
            return false;
        }
    };
    let asked = |file| area.tests(file, wish.reach);
    let mut every: Vec<Tests> = Vec::new();
    for one in area.files().iter().flat_map(|file| asked(file)) {
        if !every.contains(&one) {
            every.push(one);
        }
    }
    if !copied.is_sound(&every) {
        let (name, said) = (area.name(), copied.said.display());
        eprintln!("xtask: the tests of {name} fail without a mutant: see {said}");
        return false;
    }
    let mut changes: Vec<Change> = area.files().iter().flat_map(|file| change::of(file)).collect();
    let all = changes.len();
    changes.retain(|change| wish.only.as_deref().is_none_or(|only| change.is_in(only)));
    shuffle(&mut changes, wish.seed);
    changes.truncate(wish.sample.unwrap_or(all));
    let changes: Vec<Change> = changes.into_iter().skip(which - 1).step_by(of).collect();
    println!("{}: {} of {all} mutants, seed {}", area.name(), changes.len(), wish.seed);
    let (mut caught, mut missed, mut unviable) = (0, Vec::new(), 0);
    for change in &changes {
        let began = Instant::now();
        let verdict = copied.try_out(change, &asked(change.file));
        println!("  {verdict:<8} {change} ({} s)", began.elapsed().as_secs());
        match verdict {
            Verdict::Caught => caught += 1,
            Verdict::Missed => missed.push(change),
            Verdict::Unviable => unviable += 1,
        }
    }
    let told = caught + missed.len();
    println!("{}: {caught} of {told} detected, {unviable} do not compile", area.name());
    missed.iter().for_each(|change| println!("  not detected: {change}"));
    told > 0 && caught * 100 >= told * GOAL
}

/// The same order for the same seed.
fn shuffle<T>(items: &mut [T], seed: u64) {
    let mut state = seed;
    for at in (1..items.len()).rev() {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        items.swap(at, ((state >> 33) as usize) % (at + 1));
    }
}
