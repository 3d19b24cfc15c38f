//! The command line: one file per verb.

mod audit;
mod bench;
mod completions;
mod config;
mod demo_agents;
mod dev;
mod openapi;
mod serve;
mod wallet;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// What was typed.
#[derive(Parser)]
#[command(
    name = "rialto",
    version,
    about = "The bridge and the market for AI agents",
    after_help = "Examples:\n  rialto dev                      a throw-away hub with two agents to try\n  rialto serve --data ./data      a hub to keep\n  rialto config show --origin     every setting and where it comes from\n  rialto audit --data ./data      recount every promise that can be recounted\n\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 auth, 5 conflict, 6 rate-limited, 7 unreachable, 8 timed out"
)]
pub struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a hub to keep: keys needed, nothing private reachable
    Serve(serve::Args),
    /// Run a throw-away hub: no keys needed, loopback reachable, two agents to try
    Dev(dev::Args),
    /// Show or check the configuration
    Config(config::Args),
    /// Look after accounts
    Wallet(wallet::Args),
    /// Recount every promise of a stopped or running hub's data directory
    Audit(audit::Args),
    /// Measure the hub against a bare echo in one run
    Bench(bench::Args),
    /// Print the API document
    Openapi,
    /// Print completions for a shell
    Completions(completions::Args),
}

/// Does what was asked.
pub fn run(line: Line) -> ExitCode {
    let exit = match line.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Dev(args) => dev::run(args),
        Verb::Config(args) => config::run(args),
        Verb::Wallet(args) => wallet::run(args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Bench(args) => bench::run(args),
        Verb::Openapi => openapi::run(),
        Verb::Completions(args) => completions::run(&args),
    };
    exit.into()
}

/// Says what went wrong, where a person looks for it.
fn complain(error: impl std::fmt::Display) -> Exit {
    eprintln!("rialto: {error}");
    Exit::Failed
}

/// A runtime for commands that wait.
fn runtime() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}
