//! `rialto context rm`: removes a context and its keys.

use serde_json::json;

use super::super::super::error::CliError;
use super::super::super::output;
use super::super::{Context, Home, home, name, unknown_context};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto context rm play\n  rialto context rm work --force     also if it is the current one\n\nIts keys are deleted permanently; the agents they belong to stay registered at the hub. Keys beside\nan agent.toml are not touched."
)]
pub struct Args {
    /// Name of the context
    name: String,
    /// Remove it even if it is the current one
    #[arg(long)]
    force: bool,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, CliError> {
    name::check(&args.name)?;
    let home = Home::require()?;
    let context = Context::load(&home, &args.name)?.ok_or_else(|| unknown_context(&args.name))?;
    let is_current = home.current()?.as_deref() == Some(context.name());
    let keys = keys(&context)?;
    if is_current && !args.force {
        let message =
            format!("{} is the current context, with {}", args.name, describe_keys(&keys));
        let next = "choose another with `rialto context use NAME`, or use --force";
        return Err(CliError::conflict(message, next));
    }
    if is_current {
        home.clear_current()?;
    }
    let path = home.directory_of(context.name());
    std::fs::remove_dir_all(&path).map_err(|error| home::write_error(&path, &error))?;
    let _ = match json {
        true => output::print_line(&json!({"removed": args.name, "keys": keys}).to_string()),
        false => output::print_line(&format!(
            "context {} removed, with {}",
            args.name,
            describe_keys(&keys)
        )),
    };
    Ok(Exit::Ok)
}

/// The owners of the keys that are removed with it.
fn keys(context: &Context) -> Result<Vec<String>, CliError> {
    // An unreadable key file is removed, too.
    let me = context.key_path().filter(|path| path.exists()).map(|_| {
        let me = context.load_key().ok().flatten();
        me.and_then(|me| me.agent_id).unwrap_or_else(|| "me".to_owned())
    });
    let mut keys: Vec<String> = me.into_iter().collect();
    for name in context.agents()? {
        if context.holds_key_of(&name)? {
            keys.push(name);
        }
    }
    Ok(keys)
}

fn describe_keys(keys: &[String]) -> String {
    match keys {
        [] => "no keys in it".to_owned(),
        keys => format!("the keys of {}", output::escape_line(&keys.join(", "))),
    }
}
