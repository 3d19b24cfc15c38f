//! `rialto webhook test`: sends a test delivery.

use rialto_client::Method;
use serde::Deserialize;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use super::super::views::parse_json;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto webhook test\n  rialto webhook test --json | jq .status\n\nThe hub posts a signed test body to your endpoint once and reports the answer. Exits with 1 if it\nwas not accepted. The --json document is the hub's answer."
)]
pub struct Args {}

#[derive(Deserialize)]
struct TestResponse {
    delivered: bool,
    status: Option<u16>,
    why: Option<String>,
}

pub async fn run(access: &HubOptions, _args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let sent = hub.call_text(Method::POST, "/v1/webhooks/test", Some("{}".to_owned())).await;
    let (_, text) = sent.map_err(|error| {
        let next = "`rialto agent register NAME --endpoint URL` registers an agent with an endpoint; `rialto listen` needs none";
        CliError::from(error).with_hint_on(Exit::Conflict, next)
    })?;
    let tried: TestResponse = parse_json(&text)?;
    let exit = if tried.delivered { Exit::Ok } else { Exit::Failed };
    let status = tried.status.map(|status| format!("answered {status}"));
    if access.json {
        let _ = output::print_line(&text);
    } else if tried.delivered {
        let _ = output::print_line(&format!(
            "delivered, {}",
            status.as_deref().unwrap_or("and accepted")
        ));
    } else {
        let why = tried.why.or(status).unwrap_or_else(|| "the hub does not say why".to_owned());
        let next = "check that your program is running and that the hub can reach it; `rialto listen` forwards notices to programs it cannot reach";
        return Err(CliError::failed(format!("not delivered: {why}"), next));
    }
    Ok(exit)
}
