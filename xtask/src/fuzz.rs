//! `cargo xtask fuzz`: fuzzes the parsers for longer than a test run can.
//!
//! Two fuzzers run the same checks. Our own driver needs only this workspace and runs all targets.
//! libFuzzer is guided by coverage: `guided` builds `fuzz/` for it with flags of the stable
//! compiler, like `cargo fuzz run --sanitizer none` without that tool.

use std::path::PathBuf;
use std::process::{Command, ExitCode};

use crate::options::run_command;
use crate::steps::cargo;

const USAGE: &str = "\
usage: cargo xtask fuzz [--target NAME] [--inputs N] [--seed S]
       cargo xtask fuzz guided NAME [OPTION…]
       cargo xtask fuzz check

The first runs our own driver over all targets of tests/fuzzed, or those named: N inputs each, from
seed S. A failing input is minimized, shown, and saved in fuzz/artifacts.
`guided` runs libFuzzer on one target, with libFuzzer's options, such as -max_total_time=600.
`check` only compiles the targets of fuzz/ for libFuzzer, without downloading packages.";

/// Compiler flags that give libFuzzer coverage; the stable compiler supports all of them.
const COVERAGE: &str = "--cfg fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table \
    -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1";

/// Runs the subcommand of `fuzz`.
pub fn run(words: &[String]) -> ExitCode {
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["help" | "--help" | "-h", ..] => {
            println!("{USAGE}");
            ExitCode::SUCCESS
        }
        ["check"] => run_command(libfuzzer("check").arg("--offline")),
        ["guided", target, options @ ..] => guided(target, options),
        ["guided"] => {
            eprintln!("xtask: `guided` needs a target\n\n{USAGE}");
            ExitCode::from(crate::USAGE_ERROR)
        }
        options => run_command(
            cargo()
                .args(["run", "--profile", "fuzz", "--quiet", "--package", "rialto-fuzzed", "--"])
                .args(options),
        ),
    }
}

/// New inputs go to a directory that git ignores; the corpus is only read.
fn guided(target: &str, options: &[&str]) -> ExitCode {
    let [found, artifacts] = ["found", "artifacts"].map(|name| folder().join(name).join(target));
    for made in [&found, &artifacts] {
        if let Err(error) = std::fs::create_dir_all(made) {
            eprintln!("xtask: cannot create {}: {error}", made.display());
            return ExitCode::FAILURE;
        }
    }
    let mut command = libfuzzer("run");
    // With an explicit target, the flags do not apply to build scripts and macros, which run on
    // this machine too.
    command.args(["--release", "--target", &host(), "--bin", target, "--"]);
    command.env("RUSTFLAGS", COVERAGE);
    command.arg(found).arg(folder().join("corpus").join(target));
    command.arg(format!("-artifact_prefix={}/", artifacts.display()));
    run_command(command.args(options))
}

/// A cargo command for the workspace of libFuzzer's targets.
fn libfuzzer(verb: &str) -> Command {
    let mut command = cargo();
    command.arg(verb).arg("--manifest-path").arg(folder().join("Cargo.toml"));
    command
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz")
}

/// The host platform of this machine's compiler.
fn host() -> String {
    let said = Command::new("rustc").arg("-vV").output().map(|output| output.stdout);
    let said = String::from_utf8_lossy(&said.unwrap_or_default()).into_owned();
    let host = said.lines().find_map(|line| line.strip_prefix("host: "));
    host.unwrap_or("x86_64-unknown-linux-gnu").to_owned()
}
