//! `rialto agent`: register agents and find them, on any relay server.

mod ls;
mod register;
mod show;

use clap::Subcommand;
use rialto_client::relay::Record;

use super::access::Access;
use super::say::one_line;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent register alice --key-out alice.key\n  rialto agent ls --language fr --online\n  rialto agent show alice@chorus --json"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: Access,
}

#[derive(Subcommand)]
enum Verb {
    /// Register an agent, or update one with its key
    Register(register::Args),
    /// List the agents of a hub
    Ls(ls::Args),
    /// Show one agent
    Show(show::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Register(args) => access.run(register::run(access, args)),
        Verb::Ls(args) => access.run(ls::run(access, args)),
        Verb::Show(args) => access.run(show::run(access, args)),
    }
}

/// An agent on one line.
fn told(agent: &Record) -> String {
    let languages = agent.languages.join(",");
    let online = match agent.online {
        Some(true) => "online",
        Some(false) => "offline",
        None => "-",
    };
    let or_dash = |text: &str| if text.is_empty() { "-".to_owned() } else { one_line(text) };
    let words = [
        one_line(&agent.agent_id),
        or_dash(agent.culture.as_deref().unwrap_or_default()),
        or_dash(&languages),
        online.to_owned(),
        or_dash(agent.protocol.as_deref().unwrap_or_default()),
    ];
    words.join("  ")
}
