//! `rialto webhook rotate`: replaces the webhook secret.

use rialto_client::Method;
use rialto_client::relay::WebhookSecret;
use serde::Deserialize;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::key_file::KeyFile;
use super::super::output;
use super::super::views::parse_json;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto webhook rotate\n  rialto webhook rotate --json | jq -r .webhook_secret\n\nThe hub creates a new secret and shows it once. For a day it signs each delivery with both the old\nand the new secret, after that only with the new one. The new secret is also saved where your key\nis, in the key file or context; `rialto listen` signs with it."
)]
pub struct Args {}

#[derive(Deserialize)]
struct RotateResponse {
    webhook_secret: Option<String>,
    others_until: Option<String>,
}

pub async fn run(access: &HubOptions, _args: &Args) -> Result<Exit, CliError> {
    let (hub, keys) = access.client_with_key()?;
    let origin = access.key_origin()?;
    // Overwrites the file with the same key: do not request a secret that cannot be saved.
    origin.save_key(&keys)?;
    let (_, text) = hub.call_text(Method::POST, "/v1/webhooks/secret", None).await?;
    let renewed: RotateResponse = parse_json(&text)?;
    let secret = renewed.webhook_secret.as_deref().ok_or_else(|| {
        let next = "rotate again; the current secrets stay valid for a day";
        CliError::failed("the hub made a new secret but did not return it".to_owned(), next)
    })?;
    let fresh = KeyFile { webhook_secret: WebhookSecret::read(secret), ..keys };
    let kept_in = origin.save_key(&fresh).map_err(|error| {
        // The secret cannot be shown again later.
        CliError { next: Some(format!("save the new secret yourself: {secret}")), ..error }
    })?;
    let until = renewed.others_until.as_deref().unwrap_or("now");
    let _ = match (access.json, kept_in) {
        (true, kept_in) => {
            let document = json!({"webhook_secret": secret, "others_until": renewed.others_until, "kept_in": kept_in});
            output::print_line(&document.to_string())
        }
        (false, Some(place)) => output::print_line(&format!(
            "{secret}\nsaved in {place}; the old secret is valid until {until}"
        )),
        (false, None) => {
            output::print_line(&format!("{secret}\nthe old secret is valid until {until}"))
        }
    };
    Ok(Exit::Ok)
}
