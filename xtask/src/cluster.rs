//! `cargo xtask cluster`: the tests of several nodes, for as long as you like.
//!
//! The test suite runs 40 rounds; here there can be more, with chosen faults, and with hubs that make
//! planted mistakes.

use std::process::ExitCode;

use super::options::{Options, ValueOption, run_task};
use super::steps::cargo;

const USAGE: &str = "\
usage: cargo xtask cluster [--rounds N] [--seed S] [--faults A,B…] [--release]
       cargo xtask cluster --all [--rounds N] [--release]
       cargo xtask cluster --mistakes [--rounds N]

Runs three nodes on one PostgreSQL under traffic of all protocols and faults, and checks after each
round that nothing was lost, doubled or older than before.
  --rounds N   number of rounds; default 40, and 60 for each mistake
  --seed S     repeat a run with its seed
  --faults A,B choose only from these: kill-writer, kill-node, pause-writer, pause-node, cut-hop,
               one-way-hop, slow-hop, break-hop, lose-hints, cut-database, one-way-database, slow-database,
               cut-after-commit, partition-writer, end-sessions, crash-database, pause-database, fail-over,
               rolling-restart, rolling-upgrade (nodes of two versions), full-disk, slow-sync (both of
               the database, only if named here; they need a C compiler)
  --release    with optimisation on
  --all        also the tests of single properties, for example how long a fail-over takes
  --mistakes   hubs that make a mistake on purpose: each must be noticed

The last lines are rounds, faults by kind, acknowledged commands, reads, violations, and how long
nothing was acknowledged.";

/// The test with rounds, all tests, and the tests of mistakes.
const ROUNDS_TEST: &str = "cluster::three_nodes";
const ALL_TESTS: &str = "cluster::";
const MISTAKE_TESTS: &str = "cluster::mistakes::";

const VALUES: [ValueOption; 3] = [
    ValueOption { name: "--rounds", variable: "RIALTO_CLUSTER_ROUNDS", is_number: true },
    ValueOption { name: "--seed", variable: "RIALTO_CLUSTER_SEED", is_number: true },
    ValueOption { name: "--faults", variable: "RIALTO_CLUSTER_FAULTS", is_number: false },
];
const RELEASE: &str = "--release";
const ALL: &str = "--all";
const MISTAKES: &str = "--mistakes";

fn parse(words: &[String]) -> Result<Options, String> {
    let options = Options::parse(words, &VALUES, &[RELEASE, ALL, MISTAKES])?;
    if options.has(MISTAKES) && (options.has(RELEASE) || options.has(ALL)) {
        return Err(
            "`--mistakes` goes with neither `--release` nor `--all`: only a hub with debug \
            assertions makes mistakes"
                .to_owned(),
        );
    }
    Ok(options)
}

/// Runs the tests and shows their output.
pub fn run(words: &[String]) -> ExitCode {
    run_task(words, USAGE, parse, |options| {
        let mut cargo = cargo();
        cargo.args(["test", "--package", "rialto", "--test", "it"]);
        if options.has(RELEASE) {
            cargo.arg("--release");
        }
        cargo.arg("--");
        match (options.has(MISTAKES), options.has(ALL)) {
            (true, _) => cargo.args([MISTAKE_TESTS, "--ignored"]),
            (_, true) => cargo.arg(ALL_TESTS),
            _ => cargo.arg(ROUNDS_TEST),
        };
        // One after the other: each of them keeps the machine busy by itself.
        cargo.args(["--test-threads", "1", "--nocapture"]).envs(options.env);
        // The database of a test need not survive a power cut.
        cargo.env("RIALTO_TEST_ALLOW_FSYNC_OFF", "1");
        cargo
    })
}

#[cfg(test)]
mod tests {
    use super::{ALL, MISTAKES, Options, RELEASE, parse};

    fn read(line: &str) -> Result<Options, String> {
        parse(&line.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn what_is_asked_for_reaches_the_tests() {
        let env = vec![
            ("RIALTO_CLUSTER_ROUNDS", "7".to_owned()),
            ("RIALTO_CLUSTER_SEED", "11".to_owned()),
            ("RIALTO_CLUSTER_FAULTS", "kill-node,cut-hop".to_owned()),
        ];
        let line = "--rounds 7 --seed 11 --faults kill-node,cut-hop --release";
        let options = read(line).unwrap();
        assert_eq!(options.env, env);
        assert!(options.has(RELEASE) && !options.has(ALL) && !options.has(MISTAKES));
        assert_eq!(read(""), Ok(Options::default()));
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for line in ["--round 7", "--rounds", "--rounds many", "all", "--mistakes --release"] {
            assert!(read(line).is_err(), "{line}");
        }
    }
}
