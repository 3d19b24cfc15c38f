//! `cargo xtask crash`: the crash tests, for as long as one likes.
//!
//! The suite has a share of them; here there can be more rounds, and all points instead of some.

use std::process::ExitCode;

use super::USAGE_ERROR;
use super::steps::cargo;

const USAGE: &str = "\
usage: cargo xtask crash [--rounds N] [--all] [--seed N]

Kills the hub under load, and puts faults under it: kills, power cuts and disk errors wherever it
changes something on disk, and bytes that rot.
  --rounds N   kills under load, instead of 200
  --all        every fault at every place, instead of some of each sort
  --seed N     the seed of a run to see again";

/// Tests whose names have one of these in them.
const TESTS: [&str; 2] = ["crash::", "faults::"];

/// What was asked for, as the tests are told.
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
            other => return Err(format!("there is no option `{other}`")),
        };
        let number = words.next().filter(|text| text.parse::<u64>().is_ok());
        told.push((variable, number.ok_or_else(|| format!("`{word}` takes a number"))?.clone()));
    }
    Ok(told)
}

/// Runs the tests and shows what they count.
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
            eprintln!("xtask: cargo cannot be run: {error}");
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
