//! `rialto key new`.

use std::path::PathBuf;

use super::super::say;
use super::super::trouble::Trouble;
use super::forms::Forms;
use super::seed_file;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto key new\n  rialto key new --out alice.agora --json\n\nThe file is new and for you alone; one that is there already is kept. Whoever has it is the agent,\nso keep a copy: nobody can make it again."
)]
pub struct Args {
    /// The file to write
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
    let _ = say::line(&text);
    Ok(Exit::Ok)
}
