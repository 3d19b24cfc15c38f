//! Asks one agent: capability, status and input are checked here, the rest by the core (R83).

use std::sync::Arc;

use rialto_core::agent::Agent;
use rialto_core::answer::Answer as Done;
use rialto_core::command::Command;
use rialto_core::job::{Job, Requester, readiness};
use rialto_core::refusal::Refusal;
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use uuid::Uuid;

use super::aside::aside;
use super::ask::Asking;
use crate::adapter::Floor;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::Rejection;
use crate::openclaw::refusals::{self, Asked};
use crate::openclaw::translate::{self, Order};
use crate::openclaw::{ID, fitting};

/// The outcome of asking an agent.
pub enum Tried {
    Job(Arc<Job>),
    No(Rejection, Option<Uuid>),
    /// The same request was already made.
    Known,
}

pub async fn direct(floor: &Floor, asking: &Asking, responder: Uuid) -> Result<Tried, Failure> {
    let agent = floor.engine.look(|world| {
        let id = world.agent_named(ID, &responder.to_string())?;
        world.agent(id).filter(|agent| agent.active).cloned()
    });
    let Some(agent) = agent else { return no(floor, &Refusal::NoSuchAgent, None) };
    let by = Some(responder);
    match offer(floor, asking, &agent).await {
        Ok(job) => Ok(Tried::Job(job)),
        Err(Unasked::Rejected(rejection)) => Ok(Tried::No(rejection, by)),
        Err(Unasked::Known) => Ok(Tried::Known),
        Err(Unasked::Failed(failure)) => Err(failure),
    }
}

fn no(floor: &Floor, refusal: &Refusal, by: Option<Uuid>) -> Result<Tried, Failure> {
    let now = floor.engine.now();
    let rejection = floor
        .engine
        .look(|world| refusals::rejection(refusal, Asked { world, agent: None, now }))?;
    Ok(Tried::No(rejection, by))
}

/// Why an agent was not asked.
pub enum Unasked {
    Rejected(Rejection),
    Known,
    Failed(Failure),
}

/// Assigns a request to an agent. Capability, status and input are checked here, the rest by the
/// core (R83).
pub async fn offer(
    floor: &Floor,
    asking: &Asking,
    agent: &Arc<Agent>,
) -> Result<Arc<Job>, Unasked> {
    let away = presence(floor, asking, agent)?;
    let flaw = flaw(floor, asking, agent).await;
    // An agent in maintenance is asked later, and violations of the input are reported then.
    if let (Some(flaw), None) = (&flaw, away) {
        return Err(Unasked::Rejected(flaw.clone()));
    }
    let command = order(floor, asking, agent, flaw.as_ref(), false);
    let refused = match floor.engine.run_once(command, Some(asking.once)).await {
        Ok(ran) if ran.replayed => return Err(Unasked::Known),
        Ok(ran) => match ran.answer {
            Done::Job { job, .. } => return Ok(job),
            _ => return Err(Unasked::Failed(Failure::not_found("collaboration"))),
        },
        Err(EngineFailure::Refused(Refusal::SameIdOtherContent) | EngineFailure::StillRunning)
            if floor.engine.is_kept(asking.once.scope) =>
        {
            return Err(Unasked::Known);
        }
        Err(failure) => failure,
    };
    Err(match refused {
        EngineFailure::Refused(refusal) => because(floor, agent, &refusal),
        failure => Unasked::Failed(refusals::failed(&failure)),
    })
}

/// Checks that the agent has the capability and is available; if it is in maintenance, until when.
pub fn presence(
    floor: &Floor,
    asking: &Asking,
    agent: &Arc<Agent>,
) -> Result<Option<Timestamp>, Unasked> {
    if agent.skill(&asking.message.said.capability_id).is_none() {
        return Err(because(floor, agent, &Refusal::SkillNotOffered));
    }
    if asking.requester == Requester::Agent(agent.id) {
        return Err(because(floor, agent, &Refusal::BridgeLoop { max: 0 }));
    }
    let now = floor.engine.now();
    let away = floor.engine.look(|world| readiness::away(world, agent, now));
    away.map_err(|refusal| because(floor, agent, &refusal))
}

/// The command that assigns a request to an agent, or only tests whether the core would accept it.
pub fn order(
    floor: &Floor,
    asking: &Asking,
    agent: &Agent,
    flaw: Option<&Rejection>,
    probe: bool,
) -> Command {
    let skill = agent.skill(&asking.message.said.capability_id);
    let order = Order {
        request: &asking.message,
        content: asking.once.request,
        probe,
        requester: asking.requester.clone(),
        worker: agent.id,
        takes: skill.and_then(|skill| skill.takes),
        free: skill.is_some_and(|skill| skill.price.is_zero() && !skill.by_offer),
        uuid: floor.engine.ids().uuid(),
        name: asking.name.clone(),
        flaw,
    };
    translate::open_job(order, &floor.openclaw.settings, floor.engine.now())
}

/// The violations of the capability's input schema (R62).
pub async fn flaw(floor: &Floor, asking: &Asking, agent: &Arc<Agent>) -> Option<Rejection> {
    let (floor, agent, message) = (floor.clone(), agent.clone(), asking.message.clone());
    let checked = aside(move || {
        let said = &message.said;
        let told = fitting::violations(&floor, &agent, &said.capability_id, &said.input_data);
        (!told.is_empty()).then(|| Rejection::invalid_input(told.iter().map(String::as_str)))
    });
    checked.await.flatten()
}

/// A refusal of the core, as the answer to a request where possible.
pub fn because(floor: &Floor, agent: &Agent, refusal: &Refusal) -> Unasked {
    let now = floor.engine.now();
    let asked = |world: &_| refusals::rejection(refusal, Asked { world, agent: Some(agent), now });
    match floor.engine.look(asked) {
        Ok(rejection) => Unasked::Rejected(rejection),
        Err(failure) => Unasked::Failed(failure),
    }
}
