//! `rialto webhook resend`.

use rialto_client::Method;

use super::super::access::Access;
use super::super::say;
use super::super::trouble::Trouble;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto webhook resend 42\n  rialto webhook resend 42 --json\n\nMakes a call due at once, whether it waits or was given up. `rialto webhook ls` shows what became of\nit, with --delivered once it arrived. The --json document is the hub's own."
)]
pub struct Args {
    /// The number in `rialto webhook ls`
    id: u64,
}

pub async fn run(access: &Access, args: &Args) -> Result<Exit, Trouble> {
    let (hub, _) = access.me()?;
    let path = format!("/v1/webhooks/{}/resend", args.id);
    let sent = hub.call_text(Method::POST, &path, Some("{}".to_owned())).await;
    let (_, text) = sent.map_err(|error| {
        let next =
            "`rialto webhook ls` lists what can be sent again; `rialto webhook ls --delivered` what arrived";
        Trouble::from(error).on(Exit::NotFound, next)
    })?;
    let _ = match access.json {
        true => say::line(&text),
        false => say::line(&format!("{} is being sent again", args.id)),
    };
    Ok(Exit::Ok)
}
