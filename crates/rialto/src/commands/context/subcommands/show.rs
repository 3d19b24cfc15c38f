//! `rialto context show`: shows a context.

use super::super::super::hub_options::{Access, has_key_variable};
use super::super::super::output::{self, one_line};
use super::super::super::error::Trouble;
use super::super::{Context, Home};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto context show\n  rialto context show work --json\n\nWithout a name, shows the context that other commands use, which RIALTO_HUB and RIALTO_CONTEXT\ncan change."
)]
pub struct Args {
    /// Name of the context [default: the one in use]
    name: Option<String>,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, Trouble> {
    // Without a name, the context that other commands would use.
    let context = match &args.name {
        Some(name) => Context::current(Some(name))?,
        None => Access::of_environment().context()?,
    };
    let chosen = Context::current(None)?;
    if json {
        let document = super::document(&context, chosen.name() == context.name())?;
        let _ = output::line(&document.to_string());
        return Ok(Exit::Ok);
    }
    let key = match context.me()? {
        _ if has_key_variable() => "in RIALTO_KEY, used instead of the context's key".to_owned(),
        None => "none; commands that need a key say how to get one".to_owned(),
        Some(me) => format!("of {}", me.agent_id.as_deref().map_or("?".to_owned(), one_line)),
    };
    let agents = context.agents()?;
    let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
    let home = Home::find().map_or("none".to_owned(), |home| home.path().display().to_string());
    let kept = if context.is_kept() { "" } else { " (created when something is saved in it)" };
    let _ = output::line(&format!(
        "name    {}{kept}\nhub     {}\nkey     {key}\nagents  {agents}\nhome    {}",
        context.name(),
        context.hub(),
        one_line(&home),
    ));
    Ok(Exit::Ok)
}
