//! The command line: one file per verb.

mod access;
mod agent;
mod audit;
mod bench;
mod completions;
mod config;
mod convert;
mod demo;
mod demo_agents;
mod dev;
mod job;
mod key;
mod key_file;
mod msg;
mod notes;
mod openapi;
mod say;
mod serve;
mod trouble;
mod wallet;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// What was typed.
#[derive(Parser)]
#[command(
    name = "rialto",
    version,
    about = "The bridge and the market for AI agents",
    after_help = "Examples:\n  rialto demo                     ten agents, five protocols, one paid job\n  rialto dev                      a throw-away hub with two agents to try\n  rialto serve --data ./data      a hub to keep\n  rialto agent register alice --key-out alice.key\n  rialto msg send --key-file alice.key --to bob 'Hello!'\n  rialto config show --origin     every setting and where it comes from\n  rialto audit --data ./data      recount every promise that can be recounted\n\nExit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 auth, 5 conflict, 6 rate-limited, 7 unreachable, 8 timed out"
)]
pub struct Line {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a hub to keep: keys needed, nothing private reachable
    Serve(serve::Args),
    /// Run a throw-away hub: no keys needed, loopback reachable, two agents to try
    Dev(dev::Args),
    /// Watch agents of all five protocols do one paid job together
    Demo(demo::Args),
    /// Show or check the configuration
    Config(config::Args),
    /// Register agents and find them
    Agent(agent::Args),
    /// Send, hear and look up messages
    Msg(msg::Args),
    /// See how a job looked to each side
    Job(job::Args),
    /// Show a request of one protocol as an agent of another would get it, without a hub
    Convert(convert::Args),
    /// Make agora keys, and sign and check envelopes with them
    Key(key::Args),
    /// Look after accounts
    Wallet(wallet::Args),
    /// Recount every promise of a stopped or running hub's data directory
    Audit(audit::Args),
    /// Measure the hub against a bare echo in one run
    Bench(bench::Args),
    /// Print the API document
    Openapi,
    /// Print completions for a shell
    Completions(completions::Args),
}

/// Does what was asked.
pub fn run(line: Line) -> ExitCode {
    let exit = match line.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Dev(args) => dev::run(args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Config(args) => config::run(args),
        Verb::Agent(args) => agent::run(&args),
        Verb::Msg(args) => msg::run(&args),
        Verb::Job(args) => job::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Key(args) => key::run(&args),
        Verb::Wallet(args) => wallet::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Bench(args) => bench::run(args),
        Verb::Openapi => openapi::run(),
        Verb::Completions(args) => completions::run(&args),
    };
    exit.into()
}

/// Says what went wrong, where a person looks for it.
fn complain(error: impl std::fmt::Display) -> Exit {
    eprintln!("rialto: {error}");
    Exit::Failed
}

/// A runtime for commands that wait.
fn runtime() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_holds_together() {
        Line::command().debug_assert();
    }

    #[test]
    fn lines_that_make_sense_are_understood_and_others_are_not() {
        let parsed = |line: &str| Line::try_parse_from(line.split(' ')).map(|_| ());
        for line in [
            "rialto demo",
            "rialto demo --check --plain",
            "rialto demo --json --check",
            "rialto agent register alice",
            "rialto agent register alice@chorus --culture zh-CN --language zh-CN --language en --endpoint https://a.example/r --key-out f --hub http://h --json",
            "rialto agent --hub http://h ls --culture en --language fr --online --protocol relay -q x",
            "rialto agent show alice --json",
            "rialto msg send --to bob Hello!",
            "rialto msg send --to bob --from a@b --culture en --context c --conversation c --turn 1 --stream --idempotency-key k --key-file f -",
            "rialto msg tail --explicit-ack --from-start --count 3 --json",
            "rialto msg history --since 2026-03-20T10:00:00Z --after 0 --limit 5",
            "rialto wallet balance acme --key-file f --json",
            "rialto job trace f81d4fae --key-file f --hub http://h --json",
            "rialto convert --from registry --to agora --explain -",
            "rialto convert --from clara --to relay --json f",
            "rialto key new --out f --json",
            "rialto key show --data d",
            "rialto key show --key-file f",
            "rialto key did -16JdwMd27WniKVDqmTOdlgau3DQAFkV3Oy3N4L1rYA --json",
            "rialto key sign --key-file f envelope.json",
            "rialto key sign --type request --payload {} --to 3-16JdwMd27WniKVDqmTOdlgau3DQAFkV3Oy3N4L1rY",
            "rialto key verify --now 2024-01-01T00:00:00Z --window 60s -",
            "rialto key canonical",
            "rialto key hello --hub http://h --name n --inbox",
        ] {
            parsed(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        }
        for line in [
            "rialto demo now",
            "rialto agent",
            "rialto agent register",
            "rialto agent show",
            "rialto msg send Hello!",
            "rialto msg send --to bob",
            "rialto msg send --to bob --turn x Hello!",
            "rialto msg tail --count 0",
            "rialto msg history --limit 0",
            "rialto job",
            "rialto job trace",
            "rialto convert --from registry",
            "rialto convert --from registry --to nowhere",
            "rialto key",
            "rialto key did",
            "rialto key show --key-file f --data d",
            "rialto key sign --type DEBATE",
            "rialto key sign --payload {} f",
            "rialto key sign --type STATUS --to me",
            "rialto key verify --now yesterday",
            "rialto key verify --window 60",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
