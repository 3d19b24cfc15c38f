//! `rialto msg history`: prints past messages.

use rialto_client::relay::{Past, Span};

use super::super::hub_options::Access;
use super::super::output;
use super::super::error::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto msg history --key-file bob.key\n  rialto msg history --key-file bob.key --since 2026-03-20T10:00:00Z --limit 20\n  rialto msg history --key-file bob.key --after 42 --json\n\nPrints messages oldest first, one per line: position in the inbox (- for sent messages), time,\nsender -> receiver, text. The --json document is a list."
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

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let span = Span { since: args.since.clone(), after: args.after, limit: args.limit };
    let keys = access.keys()?;
    let past = access.server(keys.as_ref()).await?.history(&span).await?;
    if access.json {
        let texts: Vec<&str> = past.iter().map(|message| message.raw().get()).collect();
        let _ = output::line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = past.iter().try_for_each(|message| output::line(&told(message)));
    Ok(Exit::Ok)
}

fn told(message: &Past) -> String {
    let receiver = message.receiver_id.as_deref().unwrap_or("?");
    let who = format!("{} -> {receiver}", message.sender_id);
    let at = message.timestamp.as_deref();
    super::told(message.position, at, &who, &message.contents.original_text)
}
