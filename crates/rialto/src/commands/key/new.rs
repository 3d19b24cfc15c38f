//! `rialto key new`: creates an agora key.

use std::path::PathBuf;

use super::super::error::CliError;
use super::super::output;
use super::forms::KeyForms;
use super::seed_file;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key new\n  rialto key new --out alice.agora --json\n\nOnly you can read the file; an existing file is never overwritten. The key is the agent's identity\nand cannot be recovered, so keep a copy and keep it secret."
)]
pub struct Args {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "agora.key")]
    out: PathBuf,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, CliError> {
    let forms = KeyForms::of(seed_file::create(&args.out)?.key());
    let path = args.out.display().to_string();
    let text = match json {
        true => {
            let mut document = forms.to_json();
            document["key_file"] = path.into();
            document.to_string()
        }
        false => format!("{}\nkey file   {path}", forms.lines()),
    };
    let _ = output::print_line(&text);
    Ok(Exit::Ok)
}
