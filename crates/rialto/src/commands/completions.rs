//! `rialto completions`: for the shell of your choice.

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit::Exit;

#[derive(clap::Args)]
#[command(after_help = "Examples:\n  rialto completions bash > /etc/bash_completion.d/rialto")]
pub struct Args {
    shell: Shell,
}

pub fn run(args: &Args) -> Exit {
    let mut line = super::Line::command();
    clap_complete::generate(args.shell, &mut line, "rialto", &mut std::io::stdout());
    Exit::Ok
}
