//! `rialto context use`: makes a context the current one.

use super::super::super::error::CliError;
use super::super::super::output;
use super::super::{Context, Home};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rialto context use work")]
pub struct Args {
    /// Name of the context
    name: String,
}

pub fn run(json: bool, args: &Args) -> Result<Exit, CliError> {
    let context = Context::current(Some(&args.name))?;
    Home::require()?.set_current(context.name())?;
    let _ = match json {
        true => output::print_line(&super::context_json(&context, true)?.to_string()),
        false => {
            output::print_line(&format!("current context: {} at {}", context.name(), context.hub()))
        }
    };
    Ok(Exit::Ok)
}
