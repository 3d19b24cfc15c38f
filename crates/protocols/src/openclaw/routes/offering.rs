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

use super::aside::run_blocking_limited;
use super::ask::PendingRequest;
use crate::adapter::HubContext;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::Rejection;
use crate::openclaw::refusals::{self, RejectionContext};
use crate::openclaw::translate::{self, JobOrder};
use crate::openclaw::{ID, fitting};

/// The outcome of asking an agent.
pub enum AskOutcome {
    Job(Arc<Job>),
    Rejected(Rejection, Option<Uuid>),
    /// The same request was already made.
    AlreadyAsked,
}

pub async fn ask_named_agent(
    context: &HubContext,
    asking: &PendingRequest,
    responder: Uuid,
) -> Result<AskOutcome, Failure> {
    let agent = context.engine.with_world(|world| {
        let id = world.agent_by_alias(ID, &responder.to_string())?;
        world.agent(id).filter(|agent| agent.active).cloned()
    });
    let Some(agent) = agent else { return no(context, &Refusal::NoSuchAgent, None) };
    let by = Some(responder);
    match ask_agent(context, asking, &agent).await {
        Ok(job) => Ok(AskOutcome::Job(job)),
        Err(AskError::Rejected(rejection)) => Ok(AskOutcome::Rejected(rejection, by)),
        Err(AskError::Known) => Ok(AskOutcome::AlreadyAsked),
        Err(AskError::Failed(failure)) => Err(failure),
    }
}

fn no(context: &HubContext, refusal: &Refusal, by: Option<Uuid>) -> Result<AskOutcome, Failure> {
    let now = context.engine.now();
    let rejection = context.engine.with_world(|world| {
        refusals::rejection(refusal, RejectionContext { world, agent: None, now })
    })?;
    Ok(AskOutcome::Rejected(rejection, by))
}

/// Why an agent was not asked.
pub enum AskError {
    Rejected(Rejection),
    Known,
    Failed(Failure),
}

/// Assigns a request to an agent. Capability, status and input are checked here, the rest by the
/// core (R83).
pub async fn ask_agent(
    context: &HubContext,
    asking: &PendingRequest,
    agent: &Arc<Agent>,
) -> Result<Arc<Job>, AskError> {
    let away = check_presence(context, asking, agent)?;
    let flaw = input_rejection(context, asking, agent).await;
    // An agent in maintenance is asked later, and violations of the input are reported then.
    if let (Some(flaw), None) = (&flaw, away) {
        return Err(AskError::Rejected(flaw.clone()));
    }
    let command = open_job_command(context, asking, agent, flaw.as_ref(), false);
    let refused = match context.engine.run_once(command, Some(asking.idempotency)).await {
        Ok(ran) if ran.replayed => return Err(AskError::Known),
        Ok(ran) => match ran.answer {
            Done::Job { job, .. } => return Ok(job),
            _ => return Err(AskError::Failed(Failure::not_found("collaboration"))),
        },
        Err(EngineFailure::Refused(Refusal::SameIdOtherContent) | EngineFailure::StillRunning)
            if context.engine.has_idempotency_record(asking.idempotency.scope) =>
        {
            return Err(AskError::Known);
        }
        Err(failure) => failure,
    };
    Err(match refused {
        EngineFailure::Refused(refusal) => refusal_error(context, agent, &refusal),
        failure => AskError::Failed(refusals::from_engine(&failure)),
    })
}

/// Checks that the agent has the capability and is available; if it is in maintenance, until when.
pub fn check_presence(
    context: &HubContext,
    asking: &PendingRequest,
    agent: &Arc<Agent>,
) -> Result<Option<Timestamp>, AskError> {
    if agent.skill(&asking.message.body.capability_id).is_none() {
        return Err(refusal_error(context, agent, &Refusal::SkillNotOffered));
    }
    if asking.requester == Requester::Agent(agent.id) {
        return Err(refusal_error(context, agent, &Refusal::BridgeLoop { max: 0 }));
    }
    let now = context.engine.now();
    let away = context.engine.with_world(|world| readiness::return_time(world, agent, now));
    away.map_err(|refusal| refusal_error(context, agent, &refusal))
}

/// The command that assigns a request to an agent, or only tests whether the core would accept it.
pub fn open_job_command(
    context: &HubContext,
    asking: &PendingRequest,
    agent: &Agent,
    flaw: Option<&Rejection>,
    probe: bool,
) -> Command {
    let skill = agent.skill(&asking.message.body.capability_id);
    let order = JobOrder {
        request: &asking.message,
        content: asking.idempotency.request,
        dry_run: probe,
        requester: asking.requester.clone(),
        worker: agent.id,
        takes: skill.and_then(|skill| skill.expected_duration),
        free: skill.is_some_and(|skill| skill.price.is_zero() && !skill.by_offer),
        uuid: context.engine.random().new_uuid(),
        name: asking.name.clone(),
        flaw,
    };
    translate::open_job(order, &context.openclaw.settings, context.engine.now())
}

/// The violations of the capability's input schema (R62).
pub async fn input_rejection(
    context: &HubContext,
    asking: &PendingRequest,
    agent: &Arc<Agent>,
) -> Option<Rejection> {
    let (context, agent, message) = (context.clone(), agent.clone(), asking.message.clone());
    let checked = run_blocking_limited(move || {
        let said = &message.body;
        let told =
            fitting::input_violations(&context, &agent, &said.capability_id, &said.input_data);
        (!told.is_empty()).then(|| Rejection::invalid_input(told.iter().map(String::as_str)))
    });
    checked.await.flatten()
}

/// A refusal of the core, as the answer to a request where possible.
pub fn refusal_error(context: &HubContext, agent: &Agent, refusal: &Refusal) -> AskError {
    let now = context.engine.now();
    let asked = |world: &_| {
        refusals::rejection(refusal, RejectionContext { world, agent: Some(agent), now })
    };
    match context.engine.with_world(asked) {
        Ok(rejection) => AskError::Rejected(rejection),
        Err(failure) => AskError::Failed(failure),
    }
}
