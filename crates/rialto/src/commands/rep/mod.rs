//! `rialto rep`: shows an agent's reputation and how its scores are computed.

mod explain;
mod reputation;
mod show;

use clap::Subcommand;

use super::hub_options::HubOptions;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto rep show\n  rialto rep show alice@chorus --json\n  rialto rep explain 7"
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Show an agent's scores
    Show(show::Args),
    /// Show how the scores are computed, recomputed on this machine
    Explain(explain::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Show(args) => access.run(show::run(access, args)),
        Verb::Explain(args) => access.run(explain::run(access, args)),
    }
}
