//! `rialto demo` as new users and scripts run it.

mod document;
mod run;

use std::path::Path;
use std::process::Command;

use crate::kit::output;

/// The demo with these flags, in its own directory, which also takes its temporary files.
fn demo(directory: &Path, flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.arg("demo").args(flags).current_dir(directory).env("TMPDIR", directory);
    command
}

/// Runs it to its end: its exit code, standard output and standard error.
fn ran(mut demo: Command) -> (i32, String, String) {
    let output = output(&mut demo).expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}
