//! `rialto context add`: adds or changes a context.

use std::path::PathBuf;

use super::super::super::error::CliError;
use super::super::super::key_file::{self, KeyFile};
use super::super::super::output;
use super::super::{Context, Home, address};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto context add work --hub https://hub.example --key-file work.key\n  rialto context add play --hub http://127.0.0.1:7425\n\nThe key is copied to a file that only you can read. An existing context is changed; if it holds\nkeys, its hub cannot be changed."
)]
pub struct Args {
    /// Name of the context: 1 to 64 of a-z, 0-9, - and _
    name: String,
    /// Base URL of the hub
    #[arg(long, value_name = "URL")]
    hub: String,
    /// Key file whose key becomes yours in this context
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, CliError> {
    let home = Home::require()?;
    let context = Context::new(&home, &args.name, &args.hub)?;
    let keys = args.key_file.as_deref().map(key_file::load).transpose()?;
    check_hub(&home, &context, keys.as_ref())?;
    context.write(&home.directory_of(context.name()))?;
    home.set_current_if_none(context.name())?;
    if let Some(keys) = &keys {
        context.save_key(keys)?;
    }
    let is_current = home.current()?.as_deref() == Some(context.name());
    let _ = match json {
        true => output::print_line(&super::context_json(&context, is_current)?.to_string()),
        false => {
            let current = if is_current { ", the current one" } else { "" };
            output::print_line(&format!(
                "context {} is for {}{current}",
                context.name(),
                context.hub()
            ))
        }
    };
    Ok(Exit::Ok)
}

/// Checks that the new key and the context's saved keys belong to this hub.
fn check_hub(home: &Home, context: &Context, keys: Option<&KeyFile>) -> Result<(), CliError> {
    if let Some(hub) = keys.and_then(|keys| keys.hub.as_deref())
        && !address::is_same_hub(hub, context.hub())
    {
        let message = format!("that key is for {hub}, not for {}", context.hub());
        return Err(CliError::usage(message, format!("use --hub {hub}, or another key file")));
    }
    let Some(before) = Context::load(home, context.name())? else { return Ok(()) };
    let moves = !address::is_same_hub(before.hub(), context.hub());
    let holds = before.key_path().is_some_and(|path| path.exists()) || !before.agents()?.is_empty();
    match moves && holds {
        false => Ok(()),
        true => {
            let message = format!("context {} holds keys for {}", before.name(), before.hub());
            Err(CliError::conflict(message, "choose another name, or remove it first"))
        }
    }
}
