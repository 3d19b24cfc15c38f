//! An agent's reputation at the hub: every number needed to recompute it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::agent_names::resolve_agent;
use super::super::error::CliError;
use super::super::hub_options::HubOptions;
use super::super::uri;
use super::super::views::{CallerView, get_text, parse_json};
use crate::exit::Exit;

#[derive(Deserialize)]
pub struct Reputation {
    pub agent: u64,
    pub registry: RegistryScore,
    pub openclaw: OpenclawScore,
}

/// A score that changes by one step per finished job.
#[derive(Deserialize)]
pub struct RegistryScore {
    pub score: Box<RawValue>,
    pub successes: u64,
    pub failures: u64,
    pub last: Option<ScoreStep>,
}

/// The newest step.
#[derive(Deserialize)]
pub struct ScoreStep {
    pub before: Box<RawValue>,
    /// The requester's score at that time.
    pub hirer: Box<RawValue>,
    pub ok: bool,
    pub after: Box<RawValue>,
    pub formula: String,
}

/// A score over the newest jobs. Without jobs it has no numbers.
#[derive(Deserialize)]
pub struct OpenclawScore {
    pub score: Option<Box<RawValue>>,
    pub success_rate: Option<Box<RawValue>>,
    pub on_time_completion_rate: Option<Box<RawValue>>,
    pub average_response_time_ms: Option<i64>,
    /// The response time that scores zero.
    pub response_scale_ms: i64,
    pub counted: u64,
    pub formula: String,
}

/// Fetches an agent's reputation, by default the caller's; also returns the raw document.
pub async fn fetch(
    access: &HubOptions,
    agent: Option<&str>,
) -> Result<(String, Reputation), CliError> {
    let (hub, name) = match agent {
        Some(agent) => {
            let (hub, _) = access.client()?;
            let name = resolve_agent(access, &hub, agent).await?;
            (hub, name)
        }
        None => {
            let (hub, _) = access.client_with_key()?;
            let me = CallerView::fetch(&hub).await?;
            (hub, me.agent.id.to_string())
        }
    };
    let asked = get_text(&hub, &format!("/v1/agents/{}/reputation", uri::encode_part(&name))).await;
    let text = asked.map_err(|error| {
        CliError::from(error).with_hint_on(Exit::NotFound, "`rialto agent search` lists agents")
    })?;
    let facts = parse_json(&text)?;
    Ok((text, facts))
}
