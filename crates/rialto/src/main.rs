//! `rialto`: one binary to run, use and administer a hub.

mod commands;
mod exit;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match commands::Cli::try_parse() {
        Ok(line) => commands::run(line),
        Err(error) => commands::report_parse_error(&error),
    }
}
