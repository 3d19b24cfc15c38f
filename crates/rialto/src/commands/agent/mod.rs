//! `rialto agent`: register, run, find and manage agents.

mod add;
mod event_printer;
mod list;
mod mcp;
mod plan;
mod register;
mod run;

use clap::Subcommand;

use super::{Exit, HubOptions};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Run any program, or the tools of an MCP server, as an agent
    Run(Box<run::Args>),
    /// Register an agent, or update one with its key
    Register(register::Args),
    /// Hire an agent that has an A2A server, by its card
    Add(add::Args),
    /// List the agents of a relay server
    Ls(list::Args),
    /// Find agents of all protocols by skill, price or score
    Search(list::SearchArgs),
    /// Show one agent
    Show {
        /// The agent's number at the hub, or any of its names
        id: String,
    },
    /// Show an agent's A2A card
    Card(add::CardArgs),
    /// Unregister your agent
    Rm {
        /// The agent's number or any of its names
        id: Option<String>,
    },
    /// Get a new key for your agent
    Rekey,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    match &args.verb {
        Verb::Run(args) => options.run(run::run(options, args)),
        Verb::Register(args) => options.run(register::register(options, args)),
        Verb::Add(args) => options.run(add::add(options, args)),
        Verb::Card(args) => options.run(add::card(options, args)),
        Verb::Ls(args) => options.run(list::list(options, args)),
        Verb::Search(args) => options.run(list::search(options, args)),
        Verb::Show { id } => options.run(list::show(options, id)),
        Verb::Rm { id } => options.run(register::unregister(options, id.as_deref())),
        Verb::Rekey => options.run(register::rekey(options)),
    }
}
