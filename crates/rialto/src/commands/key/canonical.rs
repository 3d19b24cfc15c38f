//! `rialto key canonical`: prints JSON in its canonical form.

use std::path::PathBuf;

use rialto_client::agora::{canonical_json, signing_input};
use serde_json::json;

use super::super::error::CliError;
use super::super::output;
use super::input_text;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key canonical data.json\n  rialto key canonical --to-sign envelope.json | sha256sum\n  echo '{\"b\":5.0,\"a\":1e-7}' | rialto key canonical\n\nPrints the text without a trailing newline: these are exactly the bytes that are signed."
)]
pub struct Args {
    /// File with the JSON; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Print what the sender of this envelope signs: with sender.signature set to \"\"
    #[arg(long)]
    to_sign: bool,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let text = input_text::read_input(&args.file)?;
    let written = if args.to_sign { signing_input(&text) } else { canonical_json(&text) };
    // The command line is correct, but the file is not, so this is not a usage error.
    let refused = |error| CliError { exit: Exit::Failed, ..CliError::from(error) };
    let written = written.map_err(refused)?;
    let _ = match json {
        true => {
            output::print_line(&json!({"canonical": written, "bytes": written.len()}).to_string())
        }
        false => output::print_text(&written),
    };
    Ok(Exit::Ok)
}
