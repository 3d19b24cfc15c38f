//! The command line: one file per verb.

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
    /// 
    /// Measure the hub against a bare echo in one run
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
