//! `rialto cluster`: several nodes of one hub.

mod accept;
mod balancer;
mod database;
mod dev;
mod nodes;
mod status;

use clap::Subcommand;

use super::{CliError, Exit, HubOptions};

#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a hub of several nodes for development, with a database of its own
    Dev(dev::Args),
    /// List the nodes of the hub and their roles
    Status(HubOptions),
    /// Go on from a database that lost its newest changes
    Accept(accept::Args),
}

pub fn run(args: Args) -> Exit {
    match args.verb {
        Verb::Dev(args) => dev::run(args),
        Verb::Accept(args) => accept::run(&args),
        Verb::Status(options) => options.run(async {
            let done = status::print(&options).await;
            done.map_err(CliError::with_operator_hint)
        }),
    }
}
