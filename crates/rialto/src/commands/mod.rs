//! The command line: one file or folder per command.

mod agent;
mod agent_names;
mod audit;
mod backup;
mod cluster;
mod config;
mod connect;
mod context;
mod convert;
mod database;
mod demo;
mod dev;
mod doctor;
mod error;
mod hub_options;
mod init;
mod input;
mod job;
mod key;
mod key_file;
mod listen;
mod mcp;
mod migrate;
mod msg;
mod notes;
mod operator;
mod output;
mod reference;
mod rep;
mod serve;
mod table;
mod time;
mod v1;
mod wallet;
mod webhook;

use std::collections::HashMap;
use std::process::ExitCode;

use clap::{Command, CommandFactory, FromArgMatches, Parser, Subcommand};

use error::{CliError, Exit};
use hub_options::HubOptions;
use key_file::KeyFile;
use output::escape_line;
use table::{Column, Table};
use v1::{Answer, V1};

/// What a command returns: how it ended, or why it failed.
type CliResult<T = Exit> = Result<T, CliError>;

/// What follows after the help of each command: a line with its path, its examples, and perhaps more.
const HELP: &str = include_str!("help.txt");

/// The parsed command line.
#[derive(Parser)]
#[command(
    name = "rialto",
    version,
    about = "A hub for AI agents of six protocols: discovery, messages, jobs and payment"
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
    /// Run and administer a hub of several nodes
    Cluster(cluster::Args),
    /// Watch agents of all six protocols do one paid job together
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
    /// Give a model the hub: serve it as an MCP server on standard input and output
    Mcp(mcp::Args),
    /// Connect a client of MCP to the hub, or show how
    Connect(connect::Args),
    /// List, test and resend webhook deliveries
    Webhook(webhook::Args),
    /// Manage contexts: a hub and your key there
    Context(context::Args),
    /// Show a request of one protocol as an agent of another would get it, without a hub
    Convert(convert::Args),
    /// List, issue and revoke keys; create agora keys, and sign envelopes with them
    Key(key::Args),
    /// Show your account and transfer credits
    Wallet(wallet::Args),
    /// Show and explain an agent's reputation
    Rep(rep::Args),
    /// Diagnose problems with the hub, keys and files
    Doctor(doctor::Args),
    /// Verify the invariants of a hub's data
    Audit(audit::Args),
    /// Copy a hub's data into one file, also while it runs
    Backup(backup::Args),
    /// Restore a data directory from a backup
    Restore(backup::RestoreArgs),
    /// Move a hub between a data directory and a PostgreSQL database
    Migrate(migrate::Args),
    /// Administer a hub: statistics, jobs, agents, credits, keys
    Operator(operator::Args),
    /// Print the API document
    Openapi,
    /// Print completions for a shell
    Completions(reference::CompletionsArgs),
}

/// The command line with the examples of every command.
fn command() -> Command {
    let sections = HELP
        .trim_start_matches("## ")
        .split("\n## ")
        .filter_map(|section| section.split_once('\n'));
    add_examples(Cli::command(), "rialto", &sections.collect())
}

fn add_examples(command: Command, path: &str, sections: &HashMap<&str, &str>) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|sub| sub.get_name().into()).collect();
    let command = names.iter().fold(command, |command, name| {
        let path = format!("{path} {name}");
        command.mut_subcommand(name, |sub| add_examples(sub, &path, sections))
    });
    match sections.get(path) {
        Some(text) => command.after_help(format!("Examples:\n{}", text.trim_end())),
        None => command,
    }
}

/// Parses the arguments of this process.
pub fn parse() -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command().try_get_matches()?)
}

/// Runs the command.
pub fn run(line: Cli) -> ExitCode {
    let exit = match line.verb {
        Verb::Serve(args) => serve::run(args),
        Verb::Dev(args) => dev::run(args),
        Verb::Cluster(args) => cluster::run(args),
        Verb::Demo(args) => demo::run(&args),
        Verb::Config(args) => config::run(args),
        Verb::Init(args) => init::run(&args),
        Verb::Agent(args) => agent::run(&args),
        Verb::Msg(args) => msg::run(&args),
        Verb::Job(args) => job::run(&args),
        Verb::Listen(args) => listen::run(&args),
        Verb::Mcp(args) => mcp::run(args),
        Verb::Connect(args) => connect::run(&args),
        Verb::Webhook(args) => webhook::run(&args),
        Verb::Context(args) => context::run(&args),
        Verb::Convert(args) => convert::run(&args),
        Verb::Key(args) => key::run(&args),
        Verb::Wallet(args) => wallet::run(&args),
        Verb::Rep(args) => rep::run(&args),
        Verb::Doctor(args) => doctor::run(&args),
        Verb::Audit(args) => audit::run(&args),
        Verb::Backup(args) => backup::run(&args),
        Verb::Restore(args) => backup::run_restore(&args),
        Verb::Migrate(args) => migrate::run(&args),
        Verb::Operator(args) => operator::run(&args),
        Verb::Openapi => reference::print_openapi(),
        Verb::Completions(args) => reference::print_completions(&args),
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
        let Some(subcommand) = command.find_subcommand(&word) else { continue };
        path = format!("{path} {word}");
        command = subcommand.clone();
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
        command().debug_assert();
    }

    /// Commands that print no data: they run until stopped, or print a file for other programs.
    const WITHOUT_DATA: [&str; 5] = [
        "rialto serve",
        "rialto dev",
        "rialto cluster dev",
        "rialto openapi",
        "rialto completions",
    ];

    fn each(command: &Command, path: &str, look: &mut impl FnMut(&str, &Command)) {
        look(path, command);
        for verb in command.get_subcommands().filter(|verb| verb.get_name() != "help") {
            each(verb, &format!("{path} {}", verb.get_name()), look);
        }
    }

    #[test]
    fn every_help_says_what_the_command_does_and_ends_with_examples() {
        let mut whole = command();
        whole.build();
        let mut commands = 0;
        each(&whole, "rialto", &mut |path, command| {
            commands += 1;
            for help in [command.clone().render_help(), command.clone().render_long_help()] {
                let help = help.to_string();
                let (before, examples) = help.split_once("\nExamples:\n").expect(&help);
                assert!(before.contains("\nUsage: "), "{path}: {help}");
                assert!(!before.starts_with("Usage: "), "{path} is not described: {help}");
                let first = examples.lines().next().unwrap_or_default();
                assert!(first.contains("rialto"), "{path}: {first}");
            }
        });
        assert_eq!(HELP.matches("## ").count(), commands, "sections of commands that do not exist");
    }

    #[test]
    fn every_example_is_a_line_that_is_understood() {
        let mut whole = command();
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

    /// What operators read besides the help.
    const DOCUMENTS: [&str; 2] = [
        include_str!("../../../../docs/operating/scaling.md"),
        include_str!("../../../../docs/operating/backup.md"),
    ];

    #[test]
    fn every_command_in_the_documents_for_operators_is_understood() {
        let lines = DOCUMENTS.iter().flat_map(|text| text.lines()).map(str::trim_start);
        let commands: Vec<&str> = lines.filter(|line| line.starts_with("rialto ")).collect();
        assert!(commands.len() >= 10, "{commands:?}");
        for line in commands {
            let parsed = Cli::try_parse_from(unquoted(line)).map(|_| ());
            parsed.unwrap_or_else(|error| panic!("{line}: {error}"));
        }
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
        let mut whole = command();
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

    /// Command lines that make sense, and below the empty line some that do not.
    const LINES: &str = include_str!("lines.txt");

    #[test]
    fn lines_that_make_sense_are_understood_and_others_are_not() {
        let (understood, others) = LINES.split_once("\n\n").expect("an empty line");
        for (lines, is_understood) in [(understood, true), (others, false)] {
            for line in lines.lines() {
                let parsed = Cli::try_parse_from(format!("rialto {line}").split(' ')).map(|_| ());
                assert_eq!(parsed.is_ok(), is_understood, "{line}: {parsed:?}");
            }
        }
    }
}
