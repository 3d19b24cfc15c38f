//! Development tasks, run with `cargo xtask`.
//!
//! `test` runs everything a change must pass, in one command that needs only the Rust toolchain.
//! `sim` simulates as many hubs as you have time for. Compiling and testing is left to cargo; these
//! tasks only arrange, count and summarize. There are no dependencies, so that a fresh clone
//! compiles them at once.

mod borders;
mod cluster;
mod crash;
mod fuzz;
mod mutants;
mod needs;
mod options;
mod steps;
mod tally;
mod watch;
mod words;

use std::process::ExitCode;

use steps::Step;

const USAGE: &str = "\
usage: cargo xtask test [STEP…]
       cargo xtask sim [--nodes N|N-M] [--ops N] [--seed S] [--threads T] [--life SEED]

`sim` runs the simulation of tests/sim with optimisation on: N operations from seed S, or with --life
the one simulated hub of a seed that failed. With --nodes (2, 3, 4, or a range like 2-4) every hub is
a cluster of so many nodes.

`test` runs these steps in this order, all of them unless some are named:
  fmt       the code is formatted
  borders   every crate depends on and names only what the design allows
  words     no identifier uses a word that docs/glossary.md has retired
  clippy    no lint fires, in code, tests or benches
  tests     unit, integration and documentation tests
  sim       five million simulated operations, one million of them of a cluster, with all invariants checked
  docs      the documentation builds without a warning

The last line is always `N passed, N failed, N skipped`.

Longer runs; bench, cluster, crash, fuzz and mutants have their own --help:
  cargo xtask bench     how fast the hub is, next to a bare echo server
  cargo xtask cluster   several nodes under faults: kills, pauses, cut links, database crashes
  cargo xtask crash     kills, power cuts and disk errors at every fault point, and corrupted bytes
  cargo xtask fuzz      fuzzes the parsers
  cargo xtask mutants   checks that the tests detect mutants of the rules
  cargo xtask hostile   N times as many hostile clients, hostile URLs and canaries, with optimisation
                        on (`cargo xtask hostile N`, default 3; `ulimit -n` limits it)";

/// Exit code for an invalid command line, as in the hub's own commands.
const USAGE_ERROR: u8 = 2;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.split_first() {
        Some((chore, named)) if chore == "test" => test(named),
        Some((chore, words)) if chore == "crash" => crash::run(words),
        Some((chore, words)) if chore == "cluster" => cluster::run(words),
        Some((chore, words)) if chore == "fuzz" => fuzz::run(words),
        Some((chore, words)) if chore == "mutants" => mutants::run(words),
        Some((chore, options)) if chore == "sim" => sim(options),
        Some((chore, options)) if chore == "bench" => bench(options),
        Some((chore, times)) if chore == "hostile" => hostile(times),
        Some((help, _)) if ["help", "--help", "-h"].contains(&help.as_str()) => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        Some((unknown, _)) => complain(&format!("unknown command `{unknown}`")),
        None => complain("a command is required"),
    }
}

fn test(named: &[String]) -> ExitCode {
    if named.iter().any(|word| ["--help", "-h"].contains(&word.as_str())) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    if let Some(unknown) = named.iter().find(|word| Step::named(word).is_none()) {
        return complain(&format!("unknown step `{unknown}`"));
    }
    let chosen: Vec<Step> = Step::ALL
        .into_iter()
        .filter(|step| named.is_empty() || named.iter().any(|word| word == step.name()))
        .collect();
    if let Err(missing) = needs::check(&chosen) {
        eprintln!("{missing}");
        return ExitCode::FAILURE;
    }
    needs::get_browser(&chosen);
    needs::get_postgres(&chosen);
    needs::get_faketime(&chosen);
    let summary = steps::run_all(&chosen);
    print!("{summary}");
    if summary.failed() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The benchmark, and the hub that it measures unless another is named.
fn bench(options: &[String]) -> ExitCode {
    let mut build = steps::cargo();
    build.args(["build", "--release", "--package", "rialto-bench"]);
    let is_without_hub = |option: &String| {
        ["--help", "-h", "--version", "-V", "--hub"].contains(&option.as_str())
            || option.starts_with("--hub=")
    };
    if !options.iter().any(is_without_hub) {
        build.args(["--package", "rialto"]);
    }
    let mut run = steps::cargo();
    run.args(["run", "--release", "--quiet", "--package", "rialto-bench", "--"]).args(options);
    for mut command in [build, run] {
        match command.status() {
            Ok(status) if status.success() => {}
            Ok(_) => return ExitCode::FAILURE,
            Err(error) => return complain(&format!("could not start {command:?}: {error}")),
        }
    }
    ExitCode::SUCCESS
}

fn sim(options: &[String]) -> ExitCode {
    let mut command = steps::cargo();
    command.args(["run", "--release", "--quiet", "--package", "rialto-sim", "--"]).args(options);
    match command.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => complain(&format!("cannot run {command:?}: {error}")),
    }
}

/// The tests with hostile clients, with more clients than `test` has time for.
fn hostile(times: &[String]) -> ExitCode {
    let times = times.first().map_or("3", String::as_str);
    if times.parse::<u32>().is_err() {
        return complain(&format!("hostile takes a factor, a whole number, not `{times}`"));
    }
    let mut command = steps::cargo();
    command.args(["test", "--release", "--package", "rialto", "--test", "it", "--"]);
    command.args(["hostile::", "ssrf::", "canary::", "--nocapture", "--test-threads=1"]);
    match command.env("RIALTO_TEST_CROWD", times).status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => complain(&format!("cannot run {command:?}: {error}")),
    }
}

fn complain(about: &str) -> ExitCode {
    eprintln!("xtask: {about}\n\n{USAGE}");
    ExitCode::from(USAGE_ERROR)
}
