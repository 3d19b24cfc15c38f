//! `rialto webhook rotate`.

use rialto_client::Method;
use serde::Deserialize;

use super::super::access::Access;
use super::super::say;
use super::super::trouble::Trouble;
use super::super::views::read;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto webhook rotate\n  rialto webhook rotate --json | jq -r .webhook_secret\n\nThe hub makes a new secret and shows it once. For a day it signs every call to your endpoint with the\nold secret and with the new one; after that only with the new one. The --json document is the hub's\nown."
)]
pub struct Args {}

#[derive(Deserialize)]
struct Renewed {
    webhook_secret: Option<String>,
    others_until: Option<String>,
}

pub async fn run(access: &Access, _args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let (_, text) = hub.call_text(Method::POST, "/v1/webhooks/secret", None).await?;
    let Renewed { webhook_secret, others_until } = read(&text)?;
    if access.json {
        let _ = say::line(&text);
        return Ok(Exit::Ok);
    }
    let secret = webhook_secret.ok_or_else(|| {
        let next = "rotate once more; the secrets you have stay good for a day";
        Trouble::failed("the hub made a new secret and does not show it".to_owned(), next)
    })?;
    let until = others_until.map(|at| format!("\nthe old one is good until {at}"));
    let _ = say::line(&format!("{secret}{}", until.unwrap_or_default()));
    Ok(Exit::Ok)
}
