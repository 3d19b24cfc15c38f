//! `rialto key`: agora keys, and envelopes signed with them.

mod canonical;
mod did;
mod forms;
mod hello;
mod input_text;
mod new;
mod seed_file;
mod show;
mod sign;
mod verify;

use clap::Subcommand;

use super::error::CliError;
use super::{print_error, runtime};
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto key new --out alice.agora\n  rialto key show --key-file alice.agora\n  rialto key did OVeM9zlu6wERflzLzbu2HUMG0so9MVWrct1SUOTyW9Y\n  rialto key sign --key-file alice.agora --type REQUEST --payload '{\"resource\":\"agora:time:v1\",\"params\":{}}'\n  rialto key verify envelope.json\n  rialto key show --data ./rialto-data      the hub's own key\n\nA key file holds `ed25519-seed:` and the seed in Base64Url on its first line, and the did:key on\nthe second. The variable RIALTO_AGORA_KEY may hold that first line instead of a file."
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Verb {
    /// Create a new key
    New(new::Args),
    /// Show the public half of a key, or of the hub's own key
    Show(show::Args),
    /// Convert a public key to its other forms
    Did(did::Args),
    /// Sign an envelope
    Sign(sign::Args),
    /// Verify the signature and freshness of an envelope
    Verify(verify::Args),
    /// Print JSON in its canonical form (RFC 8785)
    Canonical(canonical::Args),
    /// Send HELLO to a hub and print its WELCOME
    Hello(hello::Args),
}

pub fn run(args: &Args) -> Exit {
    let json = args.json;
    let done = match &args.verb {
        Verb::New(args) => new::run(args, json),
        Verb::Show(args) => show::run(args, json),
        Verb::Did(args) => did::run(args, json),
        Verb::Sign(args) => sign::run(args, json),
        Verb::Verify(args) => verify::run(args, json),
        Verb::Canonical(args) => canonical::run(args, json),
        Verb::Hello(args) => match runtime() {
            Ok(runtime) => runtime.block_on(hello::run(args)),
            Err(error) => return print_error(error),
        },
    };
    done.unwrap_or_else(|cli_error| cli_error.report(json))
}

/// A failure that is not a usage error.
fn failed(message: impl Into<String>, next: Option<String>) -> CliError {
    CliError { exit: Exit::Failed, code: None, message: message.into(), next }
}
