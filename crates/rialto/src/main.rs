//! `rialto`: one binary to run, use and administer a hub.

mod commands;

use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::parse() {
        Ok(line) => commands::run(line),
        Err(error) => commands::report_parse_error(&error),
    }
}
