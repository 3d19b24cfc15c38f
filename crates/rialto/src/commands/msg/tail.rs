//! `rialto msg tail`: prints messages as they arrive.

use rialto_client::relay::{Inbox, InboxOptions, Message};

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto msg tail --key-file bob.key\n  rialto msg tail --key-file bob.key --explicit-ack --count 1\n  rialto msg tail --key-file bob.key --from-start --json | jq .envelope.original_text\n\nOne line per message: position, time, sender, text. With --json one document per line. Reconnects\nby itself; every message is printed once."
)]
pub struct Args {
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

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let how = InboxOptions { after: args.from_start.then_some(0), explicit_ack: args.explicit_ack };
    let keys = access.load_key()?;
    let mut inbox = access.relay_server(keys.as_ref()).await?.inbox(how).await?;
    let mut printed = 0;
    let mut exit = Exit::Ok;
    while args.count.is_none_or(|count| printed < count) {
        match inbox.next().await {
            None => return Ok(exit),
            Some(Err(error)) => exit = CliError::from(error).report(access.json),
            Some(Ok(message)) => {
                if output::print_line(&describe(access, &message)).is_err() {
                    // The reader has closed the pipe.
                    return Ok(Exit::Ok);
                }
                printed += 1;
                acknowledge(args, &mut inbox, &message).await?;
            }
        }
    }
    Ok(Exit::Ok)
}

async fn acknowledge(args: &Args, inbox: &mut Inbox, message: &Message) -> Result<(), CliError> {
    if let Some(position) = message.position.filter(|_| args.explicit_ack) {
        inbox.ack(position).await?;
    }
    Ok(())
}

fn describe(access: &HubOptions, message: &Message) -> String {
    if access.json {
        return document(message);
    }
    let mark = if message.verified { "" } else { " (unverified)" };
    let who = format!("{}{mark}", message.sender_id);
    let at = message.timestamp.as_deref();
    super::message_line(message.position, at, &who, &message.contents.original_text)
}

/// The event's data as received, with its position in front.
fn document(message: &Message) -> String {
    let raw = message.raw().get();
    match (message.position, raw.strip_prefix('{')) {
        (Some(position), Some(rest)) => format!(r#"{{"id":{position},{rest}"#),
        _ => raw.to_owned(),
    }
}
