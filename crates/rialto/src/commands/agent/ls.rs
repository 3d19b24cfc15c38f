//! `rialto agent ls`: lists the agents of a relay server.

use rialto_client::relay::{AgentFilter, ListedAgent};

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent ls\n  rialto agent ls --culture zh-CN --online\n  rialto agent ls -q translate --json\n\nOne line per agent: id, culture, languages, online or offline, protocol. Needs no key."
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

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let filter = AgentFilter {
        culture: args.culture.clone(),
        language: args.language.clone(),
        online: args.online.then_some(true),
        protocol: args.protocol.clone(),
        q: args.query.clone(),
    };
    let keys = access.load_key()?;
    let agents = access.relay_server(keys.as_ref()).await?.agents(&filter).await?;
    if access.json {
        let texts: Vec<&str> = agents.iter().map(|agent| agent.raw().get()).collect();
        let _ = output::print_line(&format!("[{}]", texts.join(",")));
        return Ok(Exit::Ok);
    }
    // A closed pipe is not an error: the reader has seen enough.
    let _ = agents
        .iter()
        .try_for_each(|agent: &ListedAgent| output::print_line(&super::agent_line(agent)));
    Ok(Exit::Ok)
}
