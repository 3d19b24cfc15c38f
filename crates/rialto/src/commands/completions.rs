//! `rialto completions`: prints shell completions.

use clap::CommandFactory;
use clap_complete::Shell;

use super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto completions bash > /etc/bash_completion.d/rialto\n  rialto completions zsh > ~/.zfunc/_rialto\n  rialto completions fish > ~/.config/fish/completions/rialto.fish"
)]
pub struct Args {
    /// Shell to print completions for
    shell: Shell,
}

pub fn run(args: &Args) -> Exit {
    let mut line = super::Cli::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "rialto", &mut script);
    // A closed pipe is not an error: the reader has seen enough.
    let _ = output::print_text(&String::from_utf8_lossy(&script));
    Exit::Ok
}
