//! `rialto msg history`: prints past messages.

use rialto_client::relay::{HistoryFilter, PastMessage};

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto msg history --key-file bob.key\n  rialto msg history --key-file bob.key --since 2026-03-20T10:00:00Z --limit 20\n  rialto msg history --key-file bob.key --after 42 --json\n\nPrints messages oldest first, one per line: position in the inbox (- for sent messages), time,\nsender -> receiver, text. The --json document is a list."
)]
pub struct Args {
    /// Only messages from this time on
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only messages after this position of the inbox
    #[arg(long, value_name = "N")]
    after: Option<u64>,
    /// Maximum number of messages
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let span = HistoryFilter { since: args.since.clone(), after: args.after, limit: args.limit };
    let keys = access.load_key()?;
    let past = access.relay_server(keys.as_ref()).await?.history(&span).await?;
    if access.json {
        let texts: Vec<&str> = past.iter().map(|message| message.raw().get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = past.iter().try_for_each(|message| output::print_line(&describe(message)));
    Ok(Exit::Ok)
}

fn describe(message: &PastMessage) -> String {
    let receiver = message.receiver_id.as_deref().unwrap_or("?");
    let who = format!("{} -> {receiver}", message.sender_id);
    let at = message.timestamp.as_deref();
    super::message_line(message.position, at, &who, &message.contents.original_text)
}
