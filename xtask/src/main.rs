//! The project's own chores, started with `cargo xtask`.
//!
//! There is one so far, `test`: everything a change must pass, in one command, with nothing else to
//! install by hand than the Rust toolchain. It leaves compiling and testing to cargo and only
//! arranges, counts and sums up. No dependencies, so that a fresh clone waits for nothing here.

mod borders;
mod mutants;
mod needs;
mod steps;
mod tally;

use std::process::ExitCode;

use steps::Step;

const USAGE: &str = "\
usage: cargo xtask test [STEP…]

Runs the steps in this order, all of them unless some are named:
  fmt       the code is formatted
  borders   every crate depends only on what the design lets it
  clippy    no lint fires, in code, tests or benches
  tests     unit, integration and documentation tests
  docs      the documentation builds without a warning

The last line is always `N passed, N failed, N skipped`.

Longer runs, each with a usage of its own:
  cargo xtask mutants   do the tests notice mistakes in the rules?";

/// Exit code for a command line that makes no sense, as in the hub's own commands.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((chore, named)) if chore == "test" => test(named),
        Some((chore, words)) if chore == "mutants" => mutants::run(words),
        Some((help, _)) if ["help", "--help", "-h"].contains(&help.as_str()) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some((unknown, _)) => complain(&format!("there is no chore called `{unknown}`")),
        None => complain("which chore?"),
    }
}

fn test(named: &[String]) -> ExitCode {
    if named.iter().any(|word| ["--help", "-h"].contains(&word.as_str())) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = named.iter().find(|word| Step::named(word).is_none()) {
        return complain(&format!("there is no step called `{unknown}`"));
    }
    let chosen: Vec<Step> = Step::ALL
        .into_iter()
        .filter(|step| named.is_empty() || named.iter().any(|word| word == step.name()))
        .collect();
    if let Err(missing) = needs::check(&chosen) {
        eprintln!("{missing}");
        return ExitCode::FAILURE;
    }
    let summary = steps::run_all(&chosen);
    print!("{summary}");
    if summary.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

fn complain(about: &str) -> ExitCode {
    eprintln!("xtask: {about}\n\n{USAGE}");
    ExitCode::from(USAGE_ERROR)
}
