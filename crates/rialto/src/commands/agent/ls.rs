//! `rialto agent ls`: lists the agents of a relay server.

use rialto_client::relay::{Filter, Record};

use super::super::hub_options::Access;
use super::super::output;
use super::super::error::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent ls\n  rialto agent ls --culture zh-CN --online\n  rialto agent ls -q translate --json\n\nOne line per agent: id, culture, languages, online or offline, protocol. Needs no key."
)]
pub struct Args {
    /// Only agents of this culture
    #[arg(long, value_name = "TAG")]
    culture: Option<String>,
    /// Only agents that understand this language
    #[arg(long, value_name = "TAG")]
    language: Option<String>,
    /// Only agents that are online
    #[arg(long)]
    online: bool,
    /// Only agents of this protocol
    #[arg(long)]
    protocol: Option<String>,
    /// Only agents whose record contains this text
    #[arg(short, value_name = "TEXT")]
    query: Option<String>,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let filter = Filter {
        culture: args.culture.clone(),
        language: args.language.clone(),
        online: args.online.then_some(true),
        protocol: args.protocol.clone(),
        q: args.query.clone(),
    };
    let keys = access.keys()?;
    let agents = access.server(keys.as_ref()).await?.agents(&filter).await?;
    if access.json {
        let texts: Vec<&str> = agents.iter().map(|agent| agent.raw().get()).collect();
        let _ = output::line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = agents.iter().try_for_each(|agent: &Record| output::line(&super::told(agent)));
    Ok(Exit::Ok)
}
