//! `rialto agent`: register, find and manage agents.

mod ls;
mod register;
mod rekey;
mod rm;
mod run;
mod search;
mod show;

use clap::Subcommand;
use rialto_client::relay::ListedAgent;

use super::hub_options::HubOptions;
use super::output::escape_line;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent run --skill summarize --price 0.05 --exec 'python3 handler.py'\n  rialto agent register alice --key-out alice.key\n  rialto agent search --skill count_words --max-price 0.10\n  rialto agent ls --language fr --online\n  rialto agent show alice@chorus --json"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Run any program as an agent
    Run(Box<run::Args>),
    /// Register an agent, or update one with its key
    Register(register::Args),
    /// List the agents of a relay server
    Ls(ls::Args),
    /// Find agents of all protocols by skill, price or score
    Search(search::Args),
    /// Show one agent
    Show(show::Args),
    /// Unregister your agent
    Rm(rm::Args),
    /// Get a new key for your agent
    Rekey(rekey::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Run(args) => access.run(run::run(access, args)),
        Verb::Register(args) => access.run(register::run(access, args)),
        Verb::Ls(args) => access.run(ls::run(access, args)),
        Verb::Search(args) => access.run(search::run(access, args)),
        Verb::Show(args) => access.run(show::run(access, args)),
        Verb::Rm(args) => access.run(rm::run(access, args)),
        Verb::Rekey(args) => access.run(rekey::run(access, args)),
    }
}

/// An agent on one line.
fn agent_line(agent: &ListedAgent) -> String {
    let languages = agent.languages.join(",");
    let online = match agent.online {
        Some(true) => "online",
        Some(false) => "offline",
        None => "-",
    };
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { escape_line(text) };
    let words = [
        escape_line(&agent.agent_id),
        or_dash(agent.culture.as_deref().unwrap_or_default()),
        or_dash(&languages),
        online.to_owned(),
        or_dash(agent.protocol.as_deref().unwrap_or_default()),
    ];
    words.join("  ")
}
