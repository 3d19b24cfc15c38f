//! `rialto context`: manages the hubs to use, and which is the default.

mod add;
mod ls;
mod rm;
mod show;
mod use_context;

use clap::Subcommand;

use super::super::error::CliError;
use super::Context;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto context add work --hub https://hub.example --key-file work.key\n  rialto context use work\n  rialto context ls\n\nA context is a hub and your key there. Commands use the current context unless --hub, --key-file,\nRIALTO_HUB, RIALTO_KEY or --context says otherwise. A context's key is sent only to its own hub.\nContexts are stored in RIALTO_HOME [default: rialto in XDG_CONFIG_HOME or ~/.config]."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Add a context, or change one; the first becomes the current one
    Add(add::Args),
    /// Make a context the current one
    Use(use_context::Args),
    /// List the contexts
    #[command(
        after_help = "Examples:\n  rialto context ls\n  rialto context ls --json | jq -r '.[].hub'\n\nOne line per context: whether it is the current one, name, hub, whether it has a key of yours."
    )]
    Ls,
    /// Show a context
    Show(show::Args),
    /// Remove a context and the keys in it
    Rm(rm::Args),
}

pub fn run(args: &Args) -> Exit {
    let done = match &args.verb {
        Verb::Add(add) => add::run(args.json, add),
        Verb::Use(choose) => use_context::run(args.json, choose),
        Verb::Ls => ls::run(args.json),
        Verb::Show(show) => show::run(args.json, show),
        Verb::Rm(rm) => rm::run(args.json, rm),
    };
    done.unwrap_or_else(|error: CliError| error.report(args.json))
}

/// A context without its secrets.
fn context_json(context: &Context, is_current: bool) -> Result<serde_json::Value, CliError> {
    let me = context.load_key()?;
    Ok(serde_json::json!({
        "name": context.name(), "hub": context.hub(), "current": is_current,
        "kept": context.is_saved(), "has_key": me.is_some(),
        "agent_id": me.and_then(|me| me.agent_id), "agents": context.agents()?,
    }))
}
