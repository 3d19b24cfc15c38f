//! `rialto context show`: shows a context.

use super::super::super::error::CliError;
use super::super::super::hub_options::{HubOptions, has_key_variable};
use super::super::super::output::{self, escape_line};
use super::super::{Context, Home};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto context show\n  rialto context show work --json\n\nWithout a name, shows the context that other commands use, which RIALTO_HUB and RIALTO_CONTEXT\ncan change."
)]
pub struct Args {
    /// Name of the context [default: the one in use]
    name: Option<String>,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, CliError> {
    // Without a name, the context that other commands would use.
    let context = match &args.name {
        Some(name) => Context::current(Some(name))?,
        None => HubOptions::from_environment().context()?,
    };
    let chosen = Context::current(None)?;
    if json {
        let document = super::context_json(&context, chosen.name() == context.name())?;
        let _ = output::print_line(&document.to_string());
        return Ok(Exit::Ok);
    }
    let key = match context.load_key()? {
        _ if has_key_variable() => "in RIALTO_KEY, used instead of the context's key".to_owned(),
        None => "none; commands that need a key say how to get one".to_owned(),
        Some(me) => format!("of {}", me.agent_id.as_deref().map_or("?".to_owned(), escape_line)),
    };
    let agents = context.agents()?;
    let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
    let home = Home::find().map_or("none".to_owned(), |home| home.path().display().to_string());
    let kept = if context.is_saved() { "" } else { " (created when something is saved in it)" };
    let _ = output::print_line(&format!(
        "name    {}{kept}\nhub     {}\nkey     {key}\nagents  {agents}\nhome    {}",
        context.name(),
        context.hub(),
        escape_line(&home),
    ));
    Ok(Exit::Ok)
}
