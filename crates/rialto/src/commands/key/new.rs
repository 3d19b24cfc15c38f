//! `rialto key new`: creates an agora key.

use std::path::PathBuf;

use super::super::output;
use super::super::error::Trouble;
use super::forms::Forms;
use super::seed_file;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto key new\n  rialto key new --out alice.agora --json\n\nOnly you can read the file; an existing file is never overwritten. The key is the agent's identity\nand cannot be recovered, so keep a copy and keep it secret."
)]
pub struct Args {
    /// File to write
    #[arg(long, value_name = "FILE", default_value = "agora.key")]
    out: PathBuf,
}

pub fn run(args: &Args, json: bool) -> Result<Exit, Trouble> {
    let forms = Forms::of(seed_file::make(&args.out)?.key());
    let path = args.out.display().to_string();
    let text = match json {
        true => {
            let mut document = forms.document();
            document["key_file"] = path.into();
            document.to_string()
        }
        false => format!("{}\nkey file   {path}", forms.lines()),
    };
    let _ = output::line(&text);
    Ok(Exit::Ok)
}
