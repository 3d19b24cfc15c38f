//! `rialto msg`: send, receive and list messages, on any relay server.

mod history;
mod send;
mod sender;
mod tail;

use clap::Subcommand;

use super::hub_options::HubOptions;
use super::output::escape_line;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto msg send --key-file alice.key --to bob 'Hello!'\n  rialto msg tail --key-file bob.key\n  rialto msg history --key-file bob.key --limit 20 --json",
    // `--context` is part of a message here, so the hub's context has another flag.
    mut_arg("hub_context", |arg| arg.long("hub-context"))
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    access: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Send a message to an agent
    Send(send::Args),
    /// Print messages as they arrive
    Tail(tail::Args),
    /// Print past messages, sent and received
    History(history::Args),
}

pub fn run(args: &Args) -> Exit {
    let access = &args.access;
    match &args.verb {
        Verb::Send(args) => access.run(send::run(access, args)),
        Verb::Tail(args) => access.run(tail::run(access, args)),
        Verb::History(args) => access.run(history::run(access, args)),
    }
}

/// A message on one line: position, time, sender, text.
fn message_line(position: Option<u64>, at: Option<&str>, who: &str, text: &str) -> String {
    let position = position.map_or("-".to_owned(), |position| position.to_string());
    [position, escape_line(at.unwrap_or("-")), escape_line(who), escape_line(text)].join("  ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_it_says() {
        assert_eq!(message_line(Some(7), Some("now"), "a@b", "x\ny"), "7  now  a@b  x\\ny");
        assert_eq!(message_line(None, None, "a@b", "x"), "-  -  a@b  x");
    }
}
