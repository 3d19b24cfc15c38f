//! `rialto context show`.

use super::super::super::say::{self, one_line};
use super::super::super::trouble::Trouble;
use super::super::{Context, Home};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(before_help = "Examples:\n  rialto context show\n  rialto context show work --json")]
pub struct Args {
    /// The context's name [default: the current one]
    #[arg(env = "RIALTO_CONTEXT", hide_env_values = true)]
    name: Option<String>,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, Trouble> {
    let context = Context::current(args.name.as_deref())?;
    let chosen = Context::current(None)?;
    if json {
        let document = super::document(&context, chosen.name() == context.name())?;
        let _ = say::line(&document.to_string());
        return Ok(Exit::Ok);
    }
    let key = match context.me()? {
        None => "none; commands that need one say how to get it".to_owned(),
        Some(me) => format!("of {}", me.agent_id.as_deref().map_or("?".to_owned(), one_line)),
    };
    let agents = context.agents()?;
    let agents = if agents.is_empty() { "none".to_owned() } else { agents.join(", ") };
    let home = Home::find().map_or("none".to_owned(), |home| home.path().display().to_string());
    let kept = if context.is_kept() { "" } else { " (made when something is kept in it)" };
    let _ = say::line(&format!(
        "name    {}{kept}\nhub     {}\nkey     {key}\nagents  {agents}\nhome    {}",
        context.name(),
        context.hub(),
        one_line(&home),
    ));
    Ok(Exit::Ok)
}
