//! `rialto msg`: send, receive and list messages, on any relay server.

mod send;

use clap::Subcommand;
use rialto_client::relay::{HistoryFilter, InboxOptions, Message, PastMessage};

use super::{CliError, CliResult, Exit, HubOptions, escape_line, output};

#[derive(clap::Args)]
#[command(
    // `--context` is part of a message here, so the hub's context has another flag.
    mut_arg("hub_context", |arg| arg.long("hub-context"))
)]
pub struct Args {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten)]
    options: HubOptions,
}

#[derive(Subcommand)]
enum Verb {
    /// Send a message to an agent
    Send(send::Args),
    /// Print messages as they arrive
    Tail(TailArgs),
    /// Print past messages, sent and received
    History {
        /// Only messages from this time on
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Only messages after this position of the inbox
        #[arg(long, value_name = "N")]
        after: Option<u64>,
        /// Maximum number of messages
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
    },
}

#[derive(clap::Args)]
struct TailArgs {
    /// Acknowledge each message after printing it; unacknowledged messages come again
    #[arg(long)]
    explicit_ack: bool,
    /// Start with the oldest message the hub still has
    #[arg(long)]
    from_start: bool,
    /// Stop after this many messages; with --explicit-ack the others stay unread
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
}

pub fn run(args: &Args) -> Exit {
    let options = &args.options;
    match &args.verb {
        Verb::Send(args) => options.run(send::run(options, args)),
        Verb::Tail(args) => options.run(tail(options, args)),
        Verb::History { since, after, limit } => {
            let filter = HistoryFilter { since: since.clone(), after: *after, limit: *limit };
            options.run(history(options, &filter))
        }
    }
}

async fn history(options: &HubOptions, filter: &HistoryFilter) -> CliResult {
    let messages = options.relay_server().await?.history(filter).await?;
    if options.json {
        return Ok(output::print_list(messages.iter().map(|message| message.raw().get())));
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = messages.iter().try_for_each(|message| output::print_line(&describe_past(message)));
    Ok(Exit::Ok)
}

fn describe_past(message: &PastMessage) -> String {
    let receiver = message.receiver_id.as_deref().unwrap_or("?");
    let parties = format!("{} -> {receiver}", message.sender_id);
    let at = message.timestamp.as_deref();
    message_line(message.position, at, &parties, &message.contents.original_text)
}

async fn tail(options: &HubOptions, args: &TailArgs) -> CliResult {
    let inbox =
        InboxOptions { after: args.from_start.then_some(0), explicit_ack: args.explicit_ack };
    let mut inbox = options.relay_server().await?.inbox(inbox).await?;
    let mut printed = 0;
    let mut exit = Exit::Ok;
    while args.count.is_none_or(|count| printed < count) {
        match inbox.next().await {
            None => return Ok(exit),
            Some(Err(error)) => exit = CliError::from(error).report(options.json),
            Some(Ok(message)) => {
                let line = if options.json { document(&message) } else { describe(&message) };
                if output::print_line(&line).is_err() {
                    // The reader has closed the pipe.
                    return Ok(Exit::Ok);
                }
                printed += 1;
                if let Some(position) = message.position.filter(|_| args.explicit_ack) {
                    inbox.ack(position).await?;
                }
            }
        }
    }
    Ok(Exit::Ok)
}

fn describe(message: &Message) -> String {
    let mark = if message.verified { "" } else { " (unverified)" };
    let asks = if message.question { " asks" } else { "" };
    let sender = format!("{}{mark}{asks}", message.sender_id);
    let at = message.timestamp.as_deref();
    message_line(message.position, at, &sender, &message.contents.original_text)
}

/// The event's data as received, with its position in front.
fn document(message: &Message) -> String {
    let raw = message.raw().get();
    match (message.position, raw.strip_prefix('{')) {
        (Some(position), Some(rest)) => format!(r#"{{"id":{position},{rest}"#),
        _ => raw.to_owned(),
    }
}

/// A message on one line: position, time, parties, text.
fn message_line(position: Option<u64>, at: Option<&str>, parties: &str, text: &str) -> String {
    let position = position.map_or("-".to_owned(), |position| position.to_string());
    [position, escape_line(at.unwrap_or("-")), escape_line(parties), escape_line(text)].join("  ")
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
