//! The command line: one file per command.

mod agent;
mod agent_names;
mod audit;
mod auto_register;
mod backup;
mod completions;
mod config;
mod context;
mod convert;
mod demo;
mod demo_agents;
mod dev;
mod doctor;
mod duration;
mod error;
mod history_printer;
mod hub_options;
mod init;
mod job;
mod key;
mod key_file;
mod listen;
mod live_line;
mod msg;
mod notes;
mod openapi;
mod operator;
mod output;
mod private_files;
mod rep;
mod restore;
mod serve;
mod table;
mod uri;
mod views;
mod wallet;
mod webhook;

use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::exit::Exit;
use error::CliError;

/// The main examples and the exit codes, shown after the list of commands.
const EXAMPLES: &str = "Examples:
  rialto demo                     ten agents, five protocols, one paid job
  rialto dev                      a temporary hub with two demo agents
  rialto init agent --lang python
  rialto agent run                run that agent at the hub
  rialto agent run --skill echo --price 0 --exec cat
  rialto job post --skill echo --input '{\"n\":1}' --budget 0 --wait
  rialto serve --data ./data      a hub for production
  rialto doctor                   find out why a command does not work

Exit codes: 0 ok, 1 failed, 2 usage, 3 not found, 4 auth, 5 conflict, 6 rate-limited, 7 unreachable, 8 timed out";

/// The parsed command line.
#[derive(Parser)]
#[command(
    name = "rialto",
    version,
    about = "A hub for AI agents of five protocols: discovery, messages, jobs and payment",
    after_help = EXAMPLES
)]
pub struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run a hub for production: keys required, private networks blocked
    Serve(serve::Args),
    /// Run a temporary hub for development: no keys required, two demo agents
    Dev(dev::Args),
    /// Watch agents of all five protocols do one paid job together
    Demo(demo::Args),
    /// Show or check the configuration
    Config(config::Args),
    /// Create the files of a new agent
    Init(init::Args),
    /// Register agents and find them
    Agent(agent::Args),
    /// Send, receive and list messages
    Msg(msg::Args),
    /// Post, list, follow and answer jobs
    Job(job::Args),
    /// Forward notices to a program on this machine
    Listen(listen::Args),
    /// List, test and resend webhook deliveries
    Webhook(webhook::Args),
    /// Manage contexts: a hub and your key there
    Context(context::Args),
    /// Show a request of one protocol as an agent of another would get it, without a hub
    Convert(convert::Args),
    /// Create agora keys, and sign and verify envelopes
    Key(key::Args),
    /// Show your account and transfer credits
    Wallet(wallet::Args),
    /// Show and explain an agent's reputation
    Rep(rep::Args),
    /// Diagnose problems with the hub, keys and files
    Doctor(doctor::Args),
    /// Verify the invariants of a hub's data directory
    Audit(audit::Args),
    /// Copy a hub's data into one file, also while it runs
    Backup(backup::Args),
    /// Restore a data directory from a backup
    Restore(restore::Args),
    /// Administer a hub: statistics, jobs, agents, credits, keys
    Operator(operator::Args),
    /// Print the API document
    #[command(
        after_help = "Examples:\n  rialto openapi > openapi.json\n  rialto openapi | jq -r '.paths | keys[]'\n\nThe document is JSON, the same that every hub serves at /openapi.json."
    )]
    Openapi,
    /// Print completions for a shell
    Completions(completions::Args),
}

/// Runs the command.
pub fn run(line: Cli) -> ExitCode {
    let exit = match line.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Dev(args) => dev::run(args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Config(args) => config::run(args),
        Verb::Init(args) => init::run(&args),
        Verb::Agent(args) => agent::run(&args),
        Verb::Msg(args) => msg::run(&args),
        Verb::Job(args) => job::run(&args),
        Verb::Listen(args) => listen::run(&args),
        Verb::Webhook(args) => webhook::run(&args),
        Verb::Context(args) => context::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Key(args) => key::run(&args),
        Verb::Wallet(args) => wallet::run(&args),
        Verb::Rep(args) => rep::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Backup(args) => backup::run(&args),
        Verb::Restore(args) => restore::run(&args),
        Verb::Operator(args) => operator::run(&args),
        Verb::Openapi => openapi::run(),
        Verb::Completions(args) => completions::run(&args),
    };
    exit.into()
}

/// Reports a command line that cannot be parsed, or prints help. With `--json` the error is JSON.
pub fn report_parse_error(error: &clap::Error) -> ExitCode {
    let wants_json = std::env::args_os().any(|argument| argument == "--json");
    if !wants_json || !error.use_stderr() {
        error.exit();
    }
    let text = error.render().to_string();
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message = lines.next().unwrap_or_default().trim_start_matches("error: ").to_owned();
    let rest = lines.filter(|line| !line.starts_with("For more information"));
    let next = rest.collect::<Vec<_>>().join("; ");
    let next = if next.is_empty() { help_for(std::env::args().skip(1)) } else { next };
    CliError::usage(message, next).report(true).into()
}

/// A hint for the help of the intended command, as far as it was recognized.
fn help_for(typed: impl Iterator<Item = String>) -> String {
    let mut command = Cli::command();
    let mut path = "rialto".to_owned();
    for word in typed {
        let Some(found) = command.find_subcommand(&word) else { continue };
        path = format!("{path} {word}");
        command = found.clone();
    }
    format!("`{path} --help` shows its usage")
}

/// Prints an error to standard error.
fn print_error(error: impl std::fmt::Display) -> Exit {
    output::print_stderr(&format!("rialto: {error}"));
    Exit::Failed
}

/// A runtime for asynchronous commands.
fn runtime() -> Result<tokio::runtime::Runtime, std::io::Error> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_holds_together() {
        Cli::command().debug_assert();
    }

    /// Commands that print no data: they run until stopped, or print a file for other programs.
    const WITHOUT_DATA: [&str; 4] =
        ["rialto serve", "rialto dev", "rialto openapi", "rialto completions"];

    fn each(command: &clap::Command, path: &str, look: &mut impl FnMut(&str, &clap::Command)) {
        look(path, command);
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            each(verb, &format!("{path} {}", verb.get_name()), look);
        }
    }

    #[test]
    fn every_help_says_what_the_command_does_and_ends_with_examples() {
        let mut whole = Cli::command();
        whole.build();
        each(&whole, "rialto", &mut |path, command| {
            for help in [command.clone().render_help(), command.clone().render_long_help()] {
                let help = help.to_string();
                let (before, examples) = help.split_once("\nExamples:\n").expect(&help);
                assert!(before.contains("\nUsage: "), "{path}: {help}");
                assert!(!before.starts_with("Usage: "), "{path} is not described: {help}");
                let first = examples.lines().next().unwrap_or_default();
                assert!(first.contains("rialto"), "{path}: {first}");
            }
        });
    }

    #[test]
    fn every_example_is_a_line_that_is_understood() {
        let mut whole = Cli::command();
        whole.build();
        each(&whole, "rialto", &mut |path, command| {
            let help = command.clone().render_help().to_string();
            let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
            let examples = lines.take_while(|line| line.starts_with("  "));
            for example in examples {
                // The rest of the line is for the shell.
                let start = example.find("rialto ").unwrap_or_else(|| panic!("{path}: {example}"));
                let line = example[start..]
                    .split([' '])
                    .take_while(|word| !["|", ">", "<", ""].contains(word));
                let words = unquoted(&line.collect::<Vec<_>>().join(" "));
                let parsed = Cli::try_parse_from(words).map(|_| ());
                parsed.unwrap_or_else(|error| panic!("{path}: {example}: {error}"));
            }
        });
    }

    /// The words of a line in which only single quotes are special.
    fn unquoted(line: &str) -> Vec<String> {
        let mut words = vec![String::new()];
        for (at, part) in line.split('\'').enumerate() {
            let mut pieces = if at % 2 == 1 { vec![part] } else { part.split(' ').collect() };
            let last = words.last_mut().expect("never empty");
            last.push_str(pieces.remove(0));
            words.extend(pieces.into_iter().map(str::to_owned));
        }
        words.retain(|word| !word.is_empty());
        words
    }

    #[test]
    fn data_is_printed_as_json_wherever_it_is_printed() {
        let mut whole = Cli::command();
        whole.build();
        each(&whole, "rialto", &mut |path, command| {
            if command.has_subcommands() || WITHOUT_DATA.contains(&path) {
                return;
            }
            let json = command.get_arguments().any(|argument| argument.get_long() == Some("json"));
            assert!(json, "{path} has no --json");
        });
    }

    #[test]
    fn a_line_that_was_not_understood_leads_to_the_help_of_its_command() {
        let help = |line: &str| help_for(line.split(' ').map(str::to_owned));
        assert_eq!(help("job --json post --nonsense"), "`rialto job post --help` shows its usage");
        assert_eq!(help("nonsense"), "`rialto --help` shows its usage");
    }

    #[test]
    fn lines_that_make_sense_are_understood_and_others_are_not() {
        let parsed = |line: &str| Cli::try_parse_from(line.split(' ')).map(|_| ());
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
            "rialto msg --hub-context work send --to bob Hello!",
            "rialto wallet balance acme --key-file f --json",
            "rialto wallet balance",
            "rialto wallet grant acme 100.00",
            "rialto wallet transfer --to globex 0.10",
            "rialto wallet transfer 0.10 --to globex --job f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --id 0e37df36-f698-41e6-8a1c-0d2f6e2c7a10 --json",
            "rialto wallet ledger --limit 5",
            "rialto wallet ledger --all --json",
            "rialto wallet verify",
            "rialto rep show",
            "rialto rep show alice@chorus --json",
            "rialto rep explain 7",
            "rialto doctor --context work --json",
            "rialto agent register dora --protocol registry --skill sum=0.05 --skill max=0.02 --owner acme --endpoint http://d",
            "rialto agent search",
            "rialto agent search translate --skill s --max-price 0.10 --min-score 50 --online --limit 3 --json",
            "rialto agent rm",
            "rialto agent rm 7",
            "rialto agent rekey --key-file f",
            "rialto context add work --hub http://h --key-file f --json",
            "rialto context use work",
            "rialto context ls --json",
            "rialto context show",
            "rialto context show work",
            "rialto context rm work --force",
            "rialto job trace f81d4fae --key-file f --hub http://h --json",
            "rialto job post --skill sum --input {} --budget 0.10",
            "rialto job post --skill sum --input - --budget 1 --to adder --wait --timeout 10m --json",
            "rialto job post --skill sum --input @f --budget 1 --watch --id f81d4fae-7dec-11d0-a765-00a0c91e6bf6 --select offers --callback http://h",
            "rialto job ls --worked --state ended --limit 5",
            "rialto job ls --asked --json",
            "rialto job show f81d4fae",
            "rialto job watch f81d4fae --timeout 10m --json",
            "rialto job log f81d4fae",
            "rialto job offers f81d4fae",
            "rialto job accept f81d4fae --from adder",
            "rialto job accept f81d4fae --from adder --price 0.06",
            "rialto job accept f81d4fae --offer 0 --json",
            "rialto job decline f81d4fae --reason busy --as shout",
            "rialto job submit f81d4fae --output {}",
            "rialto job submit f81d4fae --failed broken --as shout --json",
            "rialto job cancel f81d4fae --reason enough",
            "rialto webhook ls --limit 5 --json",
            "rialto webhook test",
            "rialto webhook resend 42",
            "rialto webhook rotate --json",
            "rialto listen --forward-to http://127.0.0.1:3000/hook --as shout --count 3",
            "rialto listen --print --key-file f",
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
            "rialto backup --data d --to f --hub-key k --json",
            "rialto restore --from f --data d --hub-key k --beside-original",
            "rialto restore --from f --data d --new-hub-key --json",
            "rialto operator stats --json",
            "rialto operator jobs --state ended --limit 5",
            "rialto operator agents --state suspended",
            "rialto operator grant acme 100.00 --create",
            "rialto operator burn acme 1",
            "rialto operator revoke alice",
            "rialto operator suspend alice",
            "rialto operator suspend --owner acme",
            "rialto operator resume --owner acme --json",
            "rialto operator key new",
            "rialto operator key rotate --data d",
            "rialto dev --quiet",
            "rialto serve --listen 0.0.0.0:7425 --public-url http://h:7425",
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
            "rialto wallet transfer 0.10",
            "rialto wallet transfer --to globex 0.10 --id once",
            "rialto wallet ledger --all --limit 5",
            "rialto wallet ledger --limit 0",
            "rialto rep",
            "rialto agent register dora --protocol morse",
            "rialto agent search --max-price cheap",
            "rialto agent search --limit 0",
            "rialto context",
            "rialto context add work",
            "rialto context use",
            "rialto context rm",
            "rialto job",
            "rialto job trace",
            "rialto job post --skill sum --input {}",
            "rialto job post --skill sum --input {} --budget much",
            "rialto job post --skill sum --input {} --budget 0.001",
            "rialto job post --skill sum --input {} --budget 1 --id mine",
            "rialto job post --skill sum --input {} --budget 1 --timeout soon",
            "rialto job post --skill sum --input {} --budget 1 --select worst",
            "rialto job post --skill sum --input {} --budget 1 --select best --to adder",
            "rialto job ls --asked --worked",
            "rialto job ls --state dead",
            "rialto job ls --limit 0",
            "rialto job accept f81d4fae",
            "rialto job accept f81d4fae --offer 0 --price 0.06",
            "rialto job accept f81d4fae --offer first",
            "rialto job submit f81d4fae",
            "rialto job submit f81d4fae --output {} --failed broken",
            "rialto webhook resend",
            "rialto webhook resend first",
            "rialto listen",
            "rialto listen --print --forward-to http://h",
            "rialto listen --print --secret secret",
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
            "rialto backup --data d",
            "rialto restore --data d",
            "rialto restore --from f --data d --hub-key k --new-hub-key",
            "rialto operator",
            "rialto operator jobs --state dead",
            "rialto operator suspend",
            "rialto operator suspend alice --owner acme",
            "rialto operator key",
            "rialto operator grant acme",
        ] {
            assert!(parsed(line).is_err(), "{line}");
        }
    }
}
