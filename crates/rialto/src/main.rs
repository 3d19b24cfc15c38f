//! `rialto`: one binary to run a hub, look after it, and measure it.

mod bench;
mod commands;
mod exit;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    commands::run(commands::Line::parse())
}
