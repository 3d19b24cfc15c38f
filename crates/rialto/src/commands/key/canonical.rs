//! `rialto key canonical`: prints JSON in its canonical form.

use std::path::PathBuf;

use rialto_client::agora::{canonical, to_be_signed};
use serde_json::json;

use super::super::output;
use super::super::error::Trouble;
use super::input_text;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto key canonical data.json\n  rialto key canonical --to-sign envelope.json | sha256sum\n  echo '{\"b\":5.0,\"a\":1e-7}' | rialto key canonical\n\nPrints the text without a trailing newline: these are exactly the bytes that are signed."
)]
pub struct Args {
    /// File with the JSON; - is standard input
    #[arg(value_name = "FILE", default_value = "-")]
    file: PathBuf,
    /// Print what the sender of this envelope signs: with sender.signature set to \"\"
    #[arg(long)]
    to_sign: bool,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, Trouble> {
    let text = input_text::read(&args.file)?;
    let written = if args.to_sign { to_be_signed(&text) } else { canonical(&text) };
    // The command line is correct, but the file is not, so this is not a usage error.
    let refused = |error| Trouble { exit: Exit::Failed, ..Trouble::from(error) };
    let written = written.map_err(refused)?;
    let _ = match json {
        true => output::line(&json!({"canonical": written, "bytes": written.len()}).to_string()),
        false => output::piece(&written),
    };
    Ok(Exit::Ok)
}
