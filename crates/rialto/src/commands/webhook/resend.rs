//! `rialto webhook resend`: retries a delivery.

use rialto_client::Method;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::output;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto webhook resend 42\n  rialto webhook resend 42 --json\n\nRetries a pending or failed delivery at once. `rialto webhook ls` shows its state, with --delivered\nonce it has succeeded. The --json document is the hub's answer."
)]
pub struct Args {
    /// Id of the delivery in `rialto webhook ls`
    id: u64,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let path = format!("/v1/webhooks/{}/resend", args.id);
    let sent = hub.call_text(Method::POST, &path, Some("{}".to_owned())).await;
    let (_, text) = sent.map_err(|error| {
        let next =
            "`rialto webhook ls` lists pending and failed deliveries, with --delivered successful ones";
        CliError::from(error).with_hint_on(Exit::NotFound, next)
    })?;
    let _ = match access.json {
        true => output::print_line(&text),
        false => output::print_line(&format!("{} is being resent", args.id)),
    };
    Ok(Exit::Ok)
}
