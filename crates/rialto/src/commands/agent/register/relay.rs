//! Registers an agent of the relay, on any relay server.

use rialto_client::CallError;
use rialto_client::relay::{RegisteredAgent as Answer, Registration, Server};
use serde_json::json;

use super::super::super::error::CliError;
use super::super::super::hub_options::HubOptions;
use super::super::super::key_file::KeyFile;
use super::{Args, RegisteredAgent};

/// The default culture.
const CULTURE: &str = "en";

pub async fn register(
    access: &HubOptions,
    args: &Args,
    keys: Option<&KeyFile>,
) -> Result<RegisteredAgent, CliError> {
    let flags = [("--skill", !args.skill.is_empty()), ("--owner", args.owner.is_some())];
    args.reject_flags(&flags, "registry")?;
    // Discovery needs no key, so none is sent.
    let server = Server::discover(access.hub_url(keys)).await?;
    let answer = register_at(&server, keys, &registration(args)).await?;
    let record = answer.record.as_ref().map(|record| record.raw());
    Ok(RegisteredAgent {
        document: json!({"agent_id": answer.agent_id, "registration": record}),
        id: answer.agent_id,
        key: answer.api_key,
        webhook_secret: answer.webhook_secret,
    })
}

fn registration(args: &Args) -> Registration {
    let culture = args.culture.as_deref().unwrap_or(CULTURE);
    let own = [culture.to_owned()];
    let languages = if args.language.is_empty() { &own[..] } else { &args.language };
    let mut announcement = Registration::new(args.name.as_str(), culture, languages);
    announcement.endpoint.clone_from(&args.endpoint);
    announcement
}

/// A new agent needs no key, and a caller with another agent's key must not be refused for it. So
/// the key is sent only if the name is already taken.
async fn register_at(
    server: &Server,
    keys: Option<&KeyFile>,
    agent: &Registration,
) -> Result<Answer, CallError> {
    match (server.register(agent).await, keys) {
        (Err(CallError::Refused { status: 409, .. }), Some(keys)) => {
            server.with_key(keys.key.clone()).register(agent).await
        }
        (result, _) => result,
    }
}
