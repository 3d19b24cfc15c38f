//! `rialto webhook test`: sends a test delivery.

use rialto_client::Method;
use serde::Deserialize;

use super::super::hub_options::Access;
use super::super::output;
use super::super::error::Trouble;
use super::super::views::read;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto webhook test\n  rialto webhook test --json | jq .status\n\nThe hub posts a signed test body to your endpoint once and reports the answer. Exits with 1 if it\nwas not accepted. The --json document is the hub's answer."
)]
pub struct Args {}

#[derive(Deserialize)]
struct Tried {
    delivered: bool,
    status: Option<u16>,
    why: Option<String>,
}

pub async fn run(access: &Access, _args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let sent = hub.call_text(Method::POST, "/v1/webhooks/test", Some("{}".to_owned())).await;
    let (_, text) = sent.map_err(|error| {
        let next = "`rialto agent register NAME --endpoint URL` registers an agent with an endpoint; `rialto listen` needs none";
        Trouble::from(error).on(Exit::Conflict, next)
    })?;
    let tried: Tried = read(&text)?;
    let exit = if tried.delivered { Exit::Ok } else { Exit::Failed };
    let status = tried.status.map(|status| format!("answered {status}"));
    if access.json {
        let _ = output::line(&text);
    } else if tried.delivered {
        let _ = output::line(&format!("delivered, {}", status.as_deref().unwrap_or("and accepted")));
    } else {
        let why = tried.why.or(status).unwrap_or_else(|| "the hub does not say why".to_owned());
        let next = "check that your program is running and that the hub can reach it; `rialto listen` forwards notices to programs it cannot reach";
        return Err(Trouble::failed(format!("not delivered: {why}"), next));
    }
    Ok(exit)
}
