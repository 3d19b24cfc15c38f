//! An agent's reputation at the hub: every number needed to recompute it.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::super::hub_options::Access;
use super::super::agent_names::called;
use super::super::error::Trouble;
use super::super::uri;
use super::super::views::{Me, get, read};
use crate::exit::Exit;

#[derive(Deserialize)]
pub struct Facts {
    pub agent: u64,
    pub registry: Stepwise,
    pub openclaw: Windowed,
}

/// A score that changes by one step per finished job.
#[derive(Deserialize)]
pub struct Stepwise {
    pub score: Box<RawValue>,
    pub successes: u64,
    pub failures: u64,
    pub last: Option<Step>,
}

/// The newest step.
#[derive(Deserialize)]
pub struct Step {
    pub before: Box<RawValue>,
    /// The requester's score at that time.
    pub hirer: Box<RawValue>,
    pub ok: bool,
    pub after: Box<RawValue>,
    pub formula: String,
}

/// A score over the newest jobs. Without jobs it has no numbers.
#[derive(Deserialize)]
pub struct Windowed {
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
pub async fn ask(access: &Access, agent: Option<&str>) -> Result<(String, Facts), Trouble> {
    let (hub, name) = match agent {
        Some(agent) => {
            let (hub, _) = access.caller()?;
            let name = called(access, &hub, agent).await?;
            (hub, name)
        }
        None => {
            let (hub, _) = access.me()?;
            let me = Me::ask(&hub).await?;
            (hub, me.agent.id.to_string())
        }
    };
    let asked = get(&hub, &format!("/v1/agents/{}/reputation", uri::part(&name))).await;
    let text = asked.map_err(|error| {
        Trouble::from(error).on(Exit::NotFound, "`rialto agent search` lists agents")
    })?;
    let facts = read(&text)?;
    Ok((text, facts))
}
