//! `rialto agent rm`: unregisters the caller's agent.

use rialto_client::Method;
use serde_json::json;

use super::super::error::CliError;
use super::super::hub_options::{HubOptions, KeyOrigin};
use super::super::output::{self, escape_line};
use super::super::uri;
use super::super::views::{AgentView, CallerView};
use crate::exit::Exit;

/// The protocol whose route unregisters any agent.
const REGISTRY: &str = "registry";

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  rialto agent rm alice@chorus --key-file alice.key\n  rialto agent rm 7\n  rialto agent rm --as shout\n\nPermanently removes the agent of your key from the hub: its names stay taken and its key stops\nworking. Name the agent to confirm."
)]
pub struct Args {
    /// The agent's number or any of its names
    id: Option<String>,
}

pub async fn run(access: &HubOptions, args: &Args) -> Result<Exit, CliError> {
    let (hub, _) = access.client_with_key()?;
    let origin = access.key_origin()?;
    let agent = CallerView::fetch(&hub).await?.agent;
    // `--as NAME` already names the agent.
    let is_named = access.acting.is_some() && (args.id.is_none() || args.id == access.acting);
    if !is_named {
        check_agent_named(&agent, args.id.as_deref())?;
    }
    let name = agent.names.get(REGISTRY).map_or("", String::as_str);
    let path = format!("/registry/agents/{}", uri::encode_part(name));
    hub.call_text(Method::DELETE, &path, None).await?;
    // A key that no longer works would block the next one.
    let forgotten = match &origin {
        KeyOrigin::Context(context) => context.remove_key().map(|()| true)?,
        KeyOrigin::File(_) | KeyOrigin::Variable => false,
    };
    let _ = match access.json {
        true => {
            let document =
                json!({"removed": agent.id, "names": agent.names, "key_forgotten": forgotten});
            output::print_line(&document.to_string())
        }
        false => output::print_line(&format!(
            "{} (number {}) removed",
            escape_line(&agent.name),
            agent.id
        )),
    };
    Ok(Exit::Ok)
}

/// Checks that the named agent is the one of the key.
fn check_agent_named(agent: &AgentView, named: Option<&str>) -> Result<(), CliError> {
    let own = agent.names.get(&agent.protocol).map_or("", String::as_str);
    let next = format!("`rialto agent rm {own}` removes it");
    let Some(named) = named else {
        let message = format!("your key belongs to {}; name the agent to confirm", agent.name);
        return Err(CliError::usage(message, next));
    };
    let plain = agent.names.iter().any(|(protocol, name)| {
        named == name || named.strip_prefix(protocol.as_str()) == Some(&format!(":{name}"))
    });
    match plain || named == agent.id.to_string() {
        true => Ok(()),
        false => {
            let message = match named == agent.name {
                true => format!("more than one agent may be called {named}"),
                false => format!("your key belongs to {}, not to {named}", agent.name),
            };
            Err(CliError::conflict(
                message,
                format!("{next}; for others, pass their key with --key-file or --as NAME"),
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_leaves_only_when_it_is_named() {
        let text = r#"{"id":7,"name":"Alice","owner":"o","protocol":"relay","score":50.0,"jobs_settled":0,"online":true,
            "registered_at":"t","skills":[],"names":{"relay":"alice@chorus","agora":"did:key:z"}}"#;
        let agent: AgentView = serde_json::from_str(text).expect("an agent");
        for fine in ["7", "alice@chorus", "relay:alice@chorus", "did:key:z", "agora:did:key:z"] {
            assert!(check_agent_named(&agent, Some(fine)).is_ok(), "{fine}");
        }
        for not in ["8", "alice", "Alice", "bob@chorus", "agora:alice@chorus", ""] {
            assert!(check_agent_named(&agent, Some(not)).is_err(), "{not}");
        }
        let shared = check_agent_named(&agent, Some("Alice")).expect_err("no name of its own");
        assert_eq!(shared.message, "more than one agent may be called Alice");
        let asked = check_agent_named(&agent, None).expect_err("it must be named");
        assert!(asked.next.is_some_and(|next| next.contains("rialto agent rm alice@chorus")));
    }
}
