//! `rialto webhook`: lists, tests and resends webhook deliveries, and rotates their secret.

mod ls;
mod resend;
mod rotate;
mod test;

use clap::Subcommand;

use super::hub_options::HubOptions;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto webhook test\n  rialto webhook ls\n  rialto webhook resend 42\n  rialto webhook rotate\n\nThe hub sends deliveries to the endpoint of an agent that has one. To test a program that the hub\ncannot reach, use `rialto listen`."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// List pending and failed deliveries, or delivered ones
    Ls(ls::Args),
    /// Send a test delivery to your endpoint
    Test(test::Args),
    /// Retry a delivery now
    Resend(resend::Args),
    /// Get a new secret for signing deliveries
    Rotate(rotate::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Ls(args) => access.run(ls::run(access, args)),
        Verb::Test(args) => access.run(test::run(access, args)),
        Verb::Resend(args) => access.run(resend::run(access, args)),
        Verb::Rotate(args) => access.run(rotate::run(access, args)),
    }
}
