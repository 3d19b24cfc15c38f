//! `cargo xtask crash`: the crash tests, for as long as you like.
//!
//! The test suite runs some of them; here there can be more rounds, and all fault points instead of
//! some.

use std::process::ExitCode;

use super::options::{Options, ValueOption, run_task};
use super::steps::cargo;

const USAGE: &str = "\
usage: cargo xtask crash [--rounds N] [--all] [--seed N]

Kills the hub under load and injects faults: kills, power cuts and disk errors at each write to
disk, and corrupted bytes.
  --rounds N   number of kills under load; default 200
  --all        every fault at every fault point, instead of some of each kind
  --seed N     repeat a run with its seed";

/// Substrings of the names of the tests to run.
const TESTS: [&str; 2] = ["crash::", "faults::"];

const VALUES: [ValueOption; 2] = [
    ValueOption { name: "--rounds", variable: "RIALTO_CRASH_ROUNDS", is_number: true },
    ValueOption { name: "--seed", variable: "RIALTO_CRASH_SEED", is_number: true },
];
const ALL: &str = "--all";

fn parse(words: &[String]) -> Result<Options, String> {
    let mut options = Options::parse(words, &VALUES, &[ALL])?;
    if options.has(ALL) {
        options.env.push(("RIALTO_FAULT_POINTS", "all".to_owned()));
    }
    Ok(options)
}

/// Runs the tests and shows their output.
pub fn run(words: &[String]) -> ExitCode {
    run_task(words, USAGE, parse, |options| {
        let mut cargo = cargo();
        cargo.args(["test", "--package", "rialto", "--test", "it", "--"]).args(TESTS);
        // One after the other: each of them keeps the machine busy by itself.
        cargo.args(["--test-threads", "1", "--nocapture"]).envs(options.env);
        cargo
    })
}

#[cfg(test)]
mod tests {
    use super::parse;

    fn read(line: &str) -> Result<Vec<(&'static str, String)>, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        parse(&words).map(|options| options.env)
    }

    #[test]
    fn what_is_asked_for_reaches_the_tests() {
        let rounds = ("RIALTO_CRASH_ROUNDS", "7".to_owned());
        let all = ("RIALTO_FAULT_POINTS", "all".to_owned());
        assert_eq!(read("--rounds 7 --all"), Ok(vec![rounds, all]));
        assert_eq!(read(""), Ok(vec![]));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["--round 7", "--rounds", "--rounds many", "all"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
