//! Finds agents whose input schemas the input of a job of another protocol would violate, before
//! the job is opened.

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::alias::Protocol;
use rialto_core::command::Unfit;
use rialto_core::id::AgentId;
use rialto_core::world::World;
use tokio::sync::Semaphore;

use super::{Face, Floor};

/// How many agents' schemas are checked for a job that names no agent, and how many agents are
/// scanned to find them.
const LOOKED_AT_MAX: usize = 64;
const SCANNED_MAX: usize = 4_096;
/// Inputs that are checked at the same time; more wait.
static AT_ONCE: Semaphore = Semaphore::const_new(2);

/// A job's input, and the agents it may go to.
pub struct Wanted<'a> {
    /// The protocol the job is requested in. It checks its own agents itself.
    pub by: Protocol,
    /// The names the skill may have.
    pub names: &'a [&'a str],
    /// The one agent the job is for, if it names one.
    pub of: Option<AgentId>,
    pub input: &'a str,
}

/// The agents that cannot use the input.
pub async fn unfit(floor: &Floor, wanted: &Wanted<'_>) -> Vec<Unfit> {
    let strict = floor.engine.look(|world| strict(world, wanted));
    if strict.is_empty() {
        return Vec::new();
    }
    let Ok(_turn) = AT_ONCE.acquire().await else { return Vec::new() };
    let (floor, input) = (floor.clone(), wanted.input.to_owned());
    let check = move || {
        let misfit = |(face, agent, skill): (&'static dyn Face, Arc<Agent>, String)| {
            let why = face.misfit(&floor, &agent, &skill, &input)?;
            Some(Unfit { agent: agent.id, why })
        };
        // An agent that was not checked does not get the job.
        let unseen = |(_, agent, _): &(_, Arc<Agent>, _)| {
            let why = "too many agents offer this skill to check all of them".to_owned();
            Unfit { agent: agent.id, why }
        };
        let mut strict = strict;
        let rest = strict.split_off(strict.len().min(LOOKED_AT_MAX));
        let unseen: Vec<Unfit> = rest.iter().map(unseen).collect();
        strict.into_iter().filter_map(misfit).chain(unseen).collect()
    };
    tokio::task::spawn_blocking(check).await.unwrap_or_default()
}

/// Agents that may be asked and whose protocol checks input, each with the name of the matching
/// skill.
fn strict(world: &World, wanted: &Wanted<'_>) -> Vec<(&'static dyn Face, Arc<Agent>, String)> {
    let looks = |home: Protocol| {
        let other = home != wanted.by;
        crate::ALL.iter().copied().find(|face| other && face.id() == home && face.checks_input())
    };
    let one = |id: AgentId| {
        let agent = world.agent(id).filter(|agent| agent.active)?;
        let face = looks(agent.home)?;
        let name = wanted.names.iter().find(|name| agent.skill(name).is_some())?;
        Some((face, agent.clone(), (*name).to_owned()))
    };
    match wanted.of {
        Some(id) => one(id).into_iter().collect(),
        None => {
            let all = wanted.names.iter().flat_map(|name| world.skills.ranked(name, None));
            all.take(SCANNED_MAX).filter_map(|found| one(found.agent)).collect()
        }
    }
}
