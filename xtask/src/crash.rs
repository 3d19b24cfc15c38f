//! `cargo xtask crash`: the crash tests, for as long as you like.
//!
//! The test suite runs some of them; here there can be more rounds, and all fault points instead of
//! some.

use std::process::ExitCode;

use super::USAGE_ERROR;
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

/// The options as environment variables for the tests.
fn told(words: &[String]) -> Result<Vec<(&'static str, String)>, String> {
    let mut told = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let variable = match word.as_str() {
            "--all" => {
                told.push(("RIALTO_FAULT_POINTS", "all".to_owned()));
                continue;
            }
            "--rounds" => "RIALTO_CRASH_ROUNDS",
            "--seed" => "RIALTO_CRASH_SEED",
            other => return Err(format!("unknown option `{other}`")),
        };
        let number = words.next().filter(|text| text.parse::<u64>().is_ok());
        told.push((variable, number.ok_or_else(|| format!("`{word}` takes a number"))?.clone()));
    }
    Ok(told)
}

/// Runs the tests and shows their output.
pub fn run(words: &[String]) -> ExitCode {
    if words.iter().any(|word| ["--help", "-h"].contains(&word.as_str())) {
        println!("{USAGE}");
        return ExitCode::SUCCESS;
    }
    let told = match told(words) {
        Ok(told) => told,
        Err(wrong) => {
            eprintln!("xtask: {wrong}\n\n{USAGE}");
            return ExitCode::from(USAGE_ERROR);
        }
    };
    let mut cargo = cargo();
    cargo.args(["test", "--package", "rialto", "--test", "it", "--"]).args(TESTS);
    // One after the other: each of them keeps the machine busy by itself.
    cargo.args(["--test-threads", "1", "--nocapture"]).envs(told);
    match cargo.status() {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("xtask: cannot run cargo: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::told;

    fn read(line: &str) -> Result<Vec<(&'static str, String)>, String> {
        told(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
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
