//! Finds the agent for a request: asks the named one, or chooses one for a request that names none
//! (R84). Capability, status and input are checked here, the rest by the core (R83).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::agent::Agent;
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, State, readiness};
use rialto_core::refusal::Refusal;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::Failure as EngineFailure;
use tokio::time::Instant;
use uuid::Uuid;

use super::OpenclawContext;
use super::errors::{self, RejectionContext};
use super::operations::requests::PendingRequest;
use super::operations::run_blocking_limited;
use super::translate::{self, JobOrder};
use super::wire::Rejection;
use super::wire::error::{Failure, Rejected};
use super::wire::words::Status;
use super::{ID, directory};

/// How long accepted work may take that has neither a deadline nor an estimate (R82), unless the
/// operator sets it.
const LEASE: Millis = Millis::hours(1);
/// The most agents considered for one request, the most agents asked, and the time limit for
/// asking.
const LOOKED_AT_MAX: usize = 1_024;
const ASKED_MAX: usize = 16;
const TIME_LIMIT: Duration = Duration::from_secs(3);

/// Asks the best agent that can start now. If there is none, asks the best that needs approval,
/// then the one that returns first from maintenance, as if it had been named.
pub async fn ask_best_agent(
    context: &OpenclawContext,
    asking: &PendingRequest,
) -> Result<AskOutcome, Failure> {
    let mut best: Option<Rejection> = None;
    let (mut now, mut agreed, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut later: Vec<(Timestamp, Arc<Agent>)> = Vec::new();
    for agent in ranked(context, &asking.message.body.capability_id) {
        match looks_fit(context, asking, &agent) {
            Ok(Readiness::Now) => now.push(agent),
            Ok(Readiness::Approved) => agreed.push(agent),
            Ok(Readiness::Later(until)) => later.push((until, agent)),
            Err(Unsuitable::Away(why)) => hope(&mut best, why),
            Err(Unsuitable::Refused(why)) => refused.push((agent, why)),
            Err(Unsuitable::Unasked(AskError::Known)) => return Ok(AskOutcome::AlreadyAsked),
            Err(Unsuitable::Unasked(AskError::Failed(failure))) => return Err(failure),
            Err(Unsuitable::Unasked(AskError::Rejected(why))) => hope(&mut best, why),
        }
        // No more candidates are needed than can be asked.
        if now.len() >= ASKED_MAX {
            break;
        }
    }
    let until = Instant::now() + TIME_LIMIT;
    for agent in now.into_iter().chain(agreed).take(ASKED_MAX) {
        if Instant::now() >= until {
            break;
        }
        match ask_agent(context, asking, &agent).await {
            Ok(job) => return Ok(AskOutcome::Job(job)),
            Err(AskError::Known) => return Ok(AskOutcome::AlreadyAsked),
            Err(AskError::Failed(failure)) => return Err(failure),
            // The input violates its schema, or its capacity was taken meanwhile: try the next
            // agent.
            Err(AskError::Rejected(why)) => hope(&mut best, why),
        }
    }
    for (place, (agent, why)) in refused.into_iter().enumerate() {
        // Violations of the input schema take precedence over refusals of the core (R83).
        let looked_at = place < ASKED_MAX && Instant::now() < until;
        let flaw = if looked_at { input_rejection(context, asking, &agent).await } else { None };
        hope(&mut best, flaw.unwrap_or(why));
    }
    // If a retry can succeed before the first agent returns, the rejection says so instead.
    later.sort_by_key(|(until, _)| *until);
    for (back, agent) in later.into_iter().take(ASKED_MAX) {
        let seconds = seconds_to(back, context.engine.now());
        let sooner = best.as_ref().is_some_and(|best| hopeful(best) < (0, seconds));
        if sooner || Instant::now() >= until {
            break;
        }
        match ask_agent(context, asking, &agent).await {
            Ok(job) => return Ok(AskOutcome::Job(job)),
            Err(AskError::Known) => return Ok(AskOutcome::AlreadyAsked),
            Err(AskError::Failed(failure)) => return Err(failure),
            Err(AskError::Rejected(why)) => hope(&mut best, why),
        }
    }
    let nobody = || {
        let text = "No agent offers this capability";
        Rejection::new(Rejected::CapabilityNotAvailable, text)
    };
    Ok(AskOutcome::Rejected(best.unwrap_or_else(nobody), Some(context.state.hub_id)))
}

/// Keeps the rejection that is easier to overcome.
fn hope(best: &mut Option<Rejection>, other: Rejection) {
    let better = best.as_ref().is_none_or(|best| hopeful(&other) < hopeful(best));
    if better {
        *best = Some(other);
    }
}

/// Lower is easier to overcome: first what passes by itself, then what a changed request avoids.
fn hopeful(rejection: &Rejection) -> (u8, u32) {
    let place = match rejection.code {
        Rejected::ResourceExhausted => 0,
        Rejected::DeadlineTooSoon => 1,
        Rejected::PolicyViolation => 2,
        Rejected::InvalidInput => 3,
        Rejected::CapabilityNotAvailable => 4,
    };
    (place, rejection.retry_after_seconds.unwrap_or(u32::MAX))
}

fn seconds_to(at: Timestamp, now: Timestamp) -> u32 {
    u32::try_from(at.since(now).0.max(0).unsigned_abs().div_ceil(1_000)).unwrap_or(u32::MAX)
}

/// When an agent can start on a request.
enum Readiness {
    Now,
    Approved,
    /// When it returns from maintenance.
    Later(Timestamp),
}

/// Why an agent cannot accept a request.
enum Unsuitable {
    /// It does not have the capability, or is not available.
    Away(Rejection),
    /// The core refuses.
    Refused(Rejection),
    Unasked(AskError),
}

/// Checks on a snapshot, without the commit lane, whether the core would assign the request to this
/// agent.
fn looks_fit(
    context: &OpenclawContext,
    asking: &PendingRequest,
    agent: &Arc<Agent>,
) -> Result<Readiness, Unsuitable> {
    check_presence(context, asking, agent).map_err(|unasked| match unasked {
        AskError::Rejected(why) => Unsuitable::Away(why),
        other => Unsuitable::Unasked(other),
    })?;
    let command = open_job_command(context, asking, agent, None, true);
    let now = context.engine.now();
    let decided = context.engine.with_world(|world| rialto_core::decide(world, command, now));
    match decided {
        Ok((_, Answer::Job { job, .. })) => {
            Ok(match (job.state, job.candidates.pending_assignment) {
                (State::Deferred { .. }, Some(waits)) if waits.needs_approval => {
                    Readiness::Approved
                }
                (State::Deferred { until }, _) => Readiness::Later(until),
                _ => Readiness::Now,
            })
        }
        Ok(_) => Ok(Readiness::Now),
        Err(refusal) => Err(match refusal_error(context, agent, &refusal) {
            AskError::Rejected(why) => Unsuitable::Refused(why),
            other => Unsuitable::Unasked(other),
        }),
    }
}

/// All agents with the capability: idle before busy, then by score, then by registration.
fn ranked(context: &OpenclawContext, capability: &str) -> Vec<Arc<Agent>> {
    let scale = context.state.settings.response_scale;
    context.engine.with_world(|world| {
        let place = |id: AgentId| {
            let agent = world.agent(id).filter(|agent| agent.active)?;
            let busy = directory::effective_status(world, agent) != Status::Idle;
            let score =
                world.agent_state(id).map_or(0, |agent_state| directory::rank(agent_state, scale));
            Some(((busy, Reverse(score), id), agent.clone()))
        };
        let found = world.skills.all_by_rank(capability).take(LOOKED_AT_MAX);
        let mut found: Vec<_> = found.filter_map(place).collect();
        found.sort_unstable_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, agent)| agent).collect()
    })
}

/// The outcome of asking an agent.
pub enum AskOutcome {
    Job(Arc<Job>),
    Rejected(Rejection, Option<Uuid>),
    /// The same request was already made.
    AlreadyAsked,
}

pub async fn ask_named_agent(
    context: &OpenclawContext,
    asking: &PendingRequest,
    responder: Uuid,
) -> Result<AskOutcome, Failure> {
    let agent = context.engine.with_world(|world| {
        let id = world.agent_by_alias(ID, &responder.to_string())?;
        world.agent(id).filter(|agent| agent.active).cloned()
    });
    let Some(agent) = agent else {
        let now = context.engine.now();
        let rejection = context.engine.with_world(|world| {
            let asked = RejectionContext { world, agent: None, now };
            errors::rejection(&Refusal::NoSuchAgent, asked)
        })?;
        return Ok(AskOutcome::Rejected(rejection, None));
    };
    let by = Some(responder);
    match ask_agent(context, asking, &agent).await {
        Ok(job) => Ok(AskOutcome::Job(job)),
        Err(AskError::Rejected(rejection)) => Ok(AskOutcome::Rejected(rejection, by)),
        Err(AskError::Known) => Ok(AskOutcome::AlreadyAsked),
        Err(AskError::Failed(failure)) => Err(failure),
    }
}

/// Why an agent was not asked.
enum AskError {
    Rejected(Rejection),
    Known,
    Failed(Failure),
}

/// Assigns a request to an agent. Capability, status and input are checked here, the rest by the
/// core (R83).
async fn ask_agent(
    context: &OpenclawContext,
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
            Answer::Job { job, .. } => return Ok(job),
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
        failure => AskError::Failed(errors::from_engine(&failure)),
    })
}

/// Checks that the agent has the capability and is available; if it is in maintenance, until when.
fn check_presence(
    context: &OpenclawContext,
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
fn open_job_command(
    context: &OpenclawContext,
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
    let lease = context.settings.lease_or(LEASE);
    translate::open_job(order, lease, context.engine.now())
}

/// The violations of the capability's input schema (R62).
async fn input_rejection(
    context: &OpenclawContext,
    asking: &PendingRequest,
    agent: &Arc<Agent>,
) -> Option<Rejection> {
    let (context, agent, message) = (context.clone(), agent.clone(), asking.message.clone());
    let checked = run_blocking_limited(move || {
        let said = &message.body;
        let told = translate::input_violations(
            &context.state,
            &agent,
            &said.capability_id,
            &said.input_data,
        );
        (!told.is_empty()).then(|| Rejection::invalid_input(told.iter().map(String::as_str)))
    });
    checked.await.flatten()
}

/// A refusal of the core, as the answer to a request where possible.
fn refusal_error(context: &OpenclawContext, agent: &Agent, refusal: &Refusal) -> AskError {
    let now = context.engine.now();
    let asked =
        |world: &_| errors::rejection(refusal, RejectionContext { world, agent: Some(agent), now });
    match context.engine.with_world(asked) {
        Ok(rejection) => AskError::Rejected(rejection),
        Err(failure) => AskError::Failed(failure),
    }
}
