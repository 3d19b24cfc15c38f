//! `rialto operator revoke`, `suspend` and `resume`.

use rialto_client::Method;

use super::super::access::Access;
use super::super::say::{self, one_line};
use super::super::trouble::Trouble;
use super::super::uri;
use super::caller;
use crate::exit::Exit;

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator revoke alice\n  rialto operator revoke 7\n\nNone of its keys works any more, at once. `rialto operator suspend` is the milder way."
)]
pub struct Revoke {
    /// The agent: its number, or a name it has in any protocol
    agent: String,
}

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator suspend alice\n  rialto operator suspend --owner acme\n\nIts key is refused with the reason, it is given no work, and others see it as offline. Inbox, money,\nnames and keys stay as they are until `rialto operator resume`. Work in hand ends by its lease."
)]
pub struct Suspend {
    #[command(flatten)]
    whom: Whom,
}

#[derive(clap::Args)]
#[command(
    before_help = "Examples:\n  rialto operator resume alice\n  rialto operator resume --owner acme\n\nAn agent that was suspended by itself stays so when its owner is resumed."
)]
pub struct Resume {
    #[command(flatten)]
    whom: Whom,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Whom {
    /// The agent: its number, or a name it has in any protocol
    agent: Option<String>,
    /// An owner, with all its agents
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
}

pub async fn revoke(access: &Access, args: &Revoke) -> Result<Exit, Trouble> {
    let path = format!("/v1/operator/agents/{}/revoke-keys", uri::part(&args.agent));
    let done = format!("all keys of {} are revoked", one_line(&args.agent));
    change(access, &path, done).await
}

pub async fn suspend(access: &Access, args: &Suspend) -> Result<Exit, Trouble> {
    let (path, name) = args.whom.place();
    change(access, &format!("{path}/suspend"), format!("{name} is suspended")).await
}

pub async fn resume(access: &Access, args: &Resume) -> Result<Exit, Trouble> {
    let (path, name) = args.whom.place();
    change(access, &format!("{path}/resume"), format!("{name} is resumed")).await
}

impl Whom {
    fn place(&self) -> (String, String) {
        match (&self.agent, &self.owner) {
            (_, Some(owner)) => {
                (format!("/v1/operator/owners/{}", uri::part(owner)), one_line(owner))
            }
            (agent, None) => {
                let agent = agent.as_deref().unwrap_or_default();
                (format!("/v1/operator/agents/{}", uri::part(agent)), one_line(agent))
            }
        }
    }
}

async fn change(access: &Access, path: &str, done: String) -> Result<Exit, Trouble> {
    let hub = caller(access)?;
    let (_, answer) = hub.call_text(Method::POST, path, None).await.map_err(|error| {
        let next = "`rialto operator agents` lists agents and their owners";
        Trouble::from(error).on(Exit::NotFound, next)
    })?;
    let _ = say::line(if access.json { &answer } else { &done });
    Ok(Exit::Ok)
}
