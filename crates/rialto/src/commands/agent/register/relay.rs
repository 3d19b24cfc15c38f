//! Registers an agent of the relay, on any relay server.

use rialto_client::CallError;
use rialto_client::relay::{Announcement, Registered as Answer, Server};
use serde_json::json;

use super::super::super::hub_options::Access;
use super::super::super::key_file::KeyFile;
use super::super::super::error::Trouble;
use super::{Args, Registered};

/// The default culture.
const CULTURE: &str = "en";

pub async fn register(
    access: &Access,
    args: &Args,
    keys: Option<&KeyFile>,
) -> Result<Registered, Trouble> {
    let flags = [("--skill", !args.skill.is_empty()), ("--owner", args.owner.is_some())];
    args.without(&flags, "registry")?;
    // Discovery needs no key, so none is sent.
    let server = Server::discover(access.hub_url(keys)).await?;
    let answer = announce(&server, keys, &announcement(args)).await?;
    let record = answer.record.as_ref().map(|record| record.raw());
    Ok(Registered {
        document: json!({"agent_id": answer.agent_id, "registration": record}),
        id: answer.agent_id,
        key: answer.api_key,
        webhook_secret: answer.webhook_secret,
    })
}

fn announcement(args: &Args) -> Announcement {
    let culture = args.culture.as_deref().unwrap_or(CULTURE);
    let own = [culture.to_owned()];
    let languages = if args.language.is_empty() { &own[..] } else { &args.language };
    let mut announcement = Announcement::new(args.name.as_str(), culture, languages);
    announcement.endpoint.clone_from(&args.endpoint);
    announcement
}

/// A new agent needs no key, and a caller with another agent's key must not be refused for it. So
/// the key is sent only if the name is already taken.
async fn announce(
    server: &Server,
    keys: Option<&KeyFile>,
    agent: &Announcement,
) -> Result<Answer, CallError> {
    match (server.register(agent).await, keys) {
        (Err(CallError::Refused { status: 409, .. }), Some(keys)) => {
            server.with_key(keys.key.clone()).register(agent).await
        }
        (result, _) => result,
    }
}
