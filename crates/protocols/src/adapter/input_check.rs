//! Finds agents whose input schemas the input of a job of another protocol would violate, before
//! the job is opened.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::command::UnfitAgent;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use tokio::sync::Semaphore;

use super::HubContext;

/// How many agents' schemas are checked for a job that names no agent, and how many agents are
/// scanned to find them.
const LOOKED_AT_MAX: usize = 64;
const SCANNED_MAX: usize = 4_096;
/// Inputs that are checked at the same time; more wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// A job's input, and the agents it may go to.
pub struct InputCheck<'a> {
    /// The protocol the job is requested in. It checks its own agents itself.
    pub origin: Protocol,
    /// The names the skill may have.
    pub skill_names: &'a [&'a str],
    /// The one agent the job is for, if it names one.
    pub agent: Option<AgentId>,
    pub input: &'a str,
}

/// The agents that cannot use the input.
pub async fn find_unfit_agents(context: &HubContext, check: &InputCheck<'_>) -> Vec<UnfitAgent> {
    let strict = context.engine.with_world(|world| strict_agents(world, check));
    if strict.is_empty() {
        return Vec::new();
    }
    let Ok(_turn) = AT_ONCE.acquire().await else { return Vec::new() };
    let (context, input) = (context.clone(), check.input.to_owned());
    let run = move || {
        let unfit = |(agent, skill): (Arc<Agent>, String)| {
            let reason = context.protocol(agent.home)?.input_error(&agent, &skill, &input)?;
            Some(UnfitAgent { agent: agent.id, reason })
        };
        // An agent that was not checked does not get the job.
        let unchecked = |(agent, _): &(Arc<Agent>, _)| {
            let reason = "too many agents offer this skill to check all of them".to_owned();
            UnfitAgent { agent: agent.id, reason }
        };
        let mut strict = strict;
        let rest = strict.split_off(strict.len().min(LOOKED_AT_MAX));
        let unchecked: Vec<UnfitAgent> = rest.iter().map(unchecked).collect();
        strict.into_iter().filter_map(unfit).chain(unchecked).collect()
    };
    tokio::task::spawn_blocking(run).await.unwrap_or_default()
}

/// Agents that may be asked and whose protocol checks input, each with the name of the matching
/// skill.
fn strict_agents(world: &World, check: &InputCheck<'_>) -> Vec<(Arc<Agent>, String)> {
    let is_strict = |home: Protocol| {
        let mut others = crate::ALL.iter().filter(|adapter| adapter.id() != check.origin);
        others.any(|adapter| adapter.id() == home && adapter.checks_input())
    };
    let one = |id: AgentId| {
        let agent = world.agent(id).filter(|agent| agent.active && is_strict(agent.home))?;
        let name = check.skill_names.iter().find(|name| agent.skill(name).is_some())?;
        Some((agent.clone(), (*name).to_owned()))
    };
    match check.agent {
        Some(id) => one(id).into_iter().collect(),
        None => {
            let all =
                check.skill_names.iter().flat_map(|name| world.skills.online_by_rank(name, None));
            all.take(SCANNED_MAX).filter_map(|ranked| one(ranked.agent)).collect()
        }
    }
}
