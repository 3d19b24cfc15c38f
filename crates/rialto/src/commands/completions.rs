//! `rialto completions`: for the shell of your choice.

use clap::CommandFactory;
use clap_complete::Shell;

use super::say;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto completions bash > /etc/bash_completion.d/rialto\n  rialto completions zsh > ~/.zfunc/_rialto\n  rialto completions fish > ~/.config/fish/completions/rialto.fish"
)]
pub struct Args {
    /// The shell that is to complete the line
    shell: Shell,
}

pub fn run(args: &Args) -> Exit {
    let mut line = super::Line::command();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut line, "rialto", &mut script);
    // Whoever reads only the beginning has what they wanted.
    let _ = say::piece(&String::from_utf8_lossy(&script));
    Exit::Ok
}
