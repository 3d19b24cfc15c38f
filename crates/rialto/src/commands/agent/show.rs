//! `rialto agent show`.

use super::super::access::Access;
use super::super::say;
use super::super::trouble::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto agent show alice\n  rialto agent show alice@chorus --json\n\nThe --json document is the agent's record as the hub gives it. Needs no key."
)]
pub struct Args {
    /// The agent's id: NAME@HOST, or NAME for one at the hub's own host
    id: String,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let keys = access.keys()?;
    let agent = access.server(keys.as_ref()).await?.agent(&args.id).await?;
    if access.json {
        let _ = say::line(agent.raw().get());
        return Ok(Exit::Ok);
    }
    let details =
        [("registered", agent.registered_at.as_deref()), ("endpoint", agent.endpoint.as_deref())];
    let mut text = super::told(&agent);
    for (name, value) in details.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        text.push_str(&format!("\n{name} {}", say::one_line(value)));
    }
    let _ = say::line(&text);
    Ok(Exit::Ok)
}
