//! Tests that cannot run on this machine.

use std::collections::BTreeSet;
use std::io::Write;

use parking_lot::Mutex;

/// Tests of this process that were reported. Bounded by the number of tests.
static REPORTED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
/// What was missing so far, so that its remedy is printed once.
static MISSING: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Reports that a test is skipped because something is not installed; the test then returns.
///
/// `cargo xtask test` counts the lines `skipped: <test>: <missing> is not installed` on standard
/// error. Where `CI` is set this panics instead, so that nothing is left out unnoticed there.
pub fn skip_test(test: &str, missing: &str, remedy: &str) {
    assert!(!is_ci(), "{test}: {missing} is not installed, and CI must not skip a test; {remedy}");
    // A test may ask for several databases and is skipped once.
    if !REPORTED.lock().insert(test.to_owned()) {
        return;
    }
    let mut line = format!("skipped: {test}: {missing} is not installed");
    if MISSING.lock().insert(missing.to_owned()) {
        line.push_str(&format!("; {remedy}"));
    }
    // Not `eprintln!`, which the test harness captures. One write, so that lines do not mix.
    let _ = std::io::stderr().write_all(format!("{line}\n").as_bytes());
}

fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|value| !["", "0", "false"].contains(&value.as_str()))
}
