//! Finds agents whose input schemas the input of a job of another protocol would violate, before
//! the job is opened.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::command::UnfitAgent;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use tokio::sync::Semaphore;

use super::{HubContext, ProtocolAdapter};

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
pub async fn find_unfit_agents(context: &HubContext, wanted: &InputCheck<'_>) -> Vec<UnfitAgent> {
    let strict = context.engine.with_world(|world| strict(world, wanted));
    if strict.is_empty() {
        return Vec::new();
    }
    let Ok(_turn) = AT_ONCE.acquire().await else { return Vec::new() };
    let (context, input) = (context.clone(), wanted.input.to_owned());
    let check = move || {
        let misfit =
            |(adapter, agent, skill): (&'static dyn ProtocolAdapter, Arc<Agent>, String)| {
                let why = adapter.input_error(&context, &agent, &skill, &input)?;
                Some(UnfitAgent { agent: agent.id, reason: why })
            };
        // An agent that was not checked does not get the job.
        let unseen = |(_, agent, _): &(_, Arc<Agent>, _)| {
            let why = "too many agents offer this skill to check all of them".to_owned();
            UnfitAgent { agent: agent.id, reason: why }
        };
        let mut strict = strict;
        let rest = strict.split_off(strict.len().min(LOOKED_AT_MAX));
        let unseen: Vec<UnfitAgent> = rest.iter().map(unseen).collect();
        strict.into_iter().filter_map(misfit).chain(unseen).collect()
    };
    tokio::task::spawn_blocking(check).await.unwrap_or_default()
}

/// Agents that may be asked and whose protocol checks input, each with the name of the matching
/// skill.
fn strict(
    world: &World,
    wanted: &InputCheck<'_>,
) -> Vec<(&'static dyn ProtocolAdapter, Arc<Agent>, String)> {
    let looks = |home: Protocol| {
        let other = home != wanted.origin;
        crate::ALL
            .iter()
            .copied()
            .find(|adapter| other && adapter.id() == home && adapter.checks_input())
    };
    let one = |id: AgentId| {
        let agent = world.agent(id).filter(|agent| agent.active)?;
        let adapter = looks(agent.home)?;
        let name = wanted.skill_names.iter().find(|name| agent.skill(name).is_some())?;
        Some((adapter, agent.clone(), (*name).to_owned()))
    };
    match wanted.agent {
        Some(id) => one(id).into_iter().collect(),
        None => {
            let all =
                wanted.skill_names.iter().flat_map(|name| world.skills.online_by_rank(name, None));
            all.take(SCANNED_MAX).filter_map(|found| one(found.agent)).collect()
        }
    }
}
