//! Readiness: whether an agent can take a job, and when it can start.
//!
//! Applies what an agent reports about itself (availability, terms, expected durations) to jobs of
//! every protocol.

use std::sync::Arc;

use super::open::HOPS_MAX;
use super::{Job, Selection, State};
use crate::agent::Agent;
use crate::agent::presence::Availability;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::message;
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::{Millis, Timestamp};
use crate::world::World;

/// The window in which started jobs are counted for agents that limit them.
pub const START_RATE_WINDOW: Millis = Millis::minutes(1);

/// Jobs that may wait for one agent to be back.
pub const WAITING_MAX: usize = 256;

/// How many of them one requester may have without paying.
pub const FREE_WAITING_MAX: usize = 64;

/// Free jobs of one requester assigned to one worker.
pub const FREE_WORK_MAX: usize = 1_024;

/// Whether one more job may wait.
pub fn has_waiting_capacity<'j>(waiting: impl Iterator<Item = &'j Arc<Job>>, job: &Job) -> bool {
    let (mut all, mut free) = (0, 0);
    for other in waiting.take(WAITING_MAX) {
        all += 1;
        free += usize::from(
            other.payment.budget.is_zero() && other.request.requester == job.request.requester,
        );
    }
    all < WAITING_MAX && (!job.payment.budget.is_zero() || free < FREE_WAITING_MAX)
}

/// When an agent can start a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartCondition {
    Now,
    /// When it is back.
    OnReturn(Timestamp),
    /// Once the job is approved.
    AfterApproval,
    /// Never: the input is invalid, and the agent is available to be told so.
    Never,
}

/// How soon a worker has to be able to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readiness {
    Immediate,
    /// At once, or as soon as it is approved.
    AfterApproval,
}

/// When the agent can start the job, or why it cannot: presence, then load, then time.
pub fn start_condition(
    draft: &Draft<'_>,
    job: &Job,
    agent: AgentId,
) -> Result<StartCondition, Refusal> {
    let named = draft.agent(agent).filter(|agent| agent.active).ok_or(Refusal::NoSuchAgent)?;
    // To others a suspended agent is offline, whatever it promised before.
    if job.candidates.declined.contains(&agent) || draft.is_suspended(agent) {
        return Err(Refusal::Offline);
    }
    // An agent that made an offer itself has committed to be there. One whose listed price was
    // offered by the hub has not.
    let named_a_price = job.candidates.offers.iter().any(|offer| offer.by == agent)
        && super::price_agreement::fixed_price(draft, job, agent).is_none();
    // An agent that its protocol calls cannot fetch the job once it is back.
    let may_wait = job.policy.named_worker.may_be_offline && !named.is_called_by_protocol();
    let there = match presence_or_return_time(draft, named) {
        _ if named_a_price => None,
        Err(Refusal::Offline) if may_wait => None,
        there => there?,
    };
    // Calling it is one more bridge.
    if named.is_called_by_protocol() && job.request.hops >= HOPS_MAX {
        return Err(Refusal::BridgeLoop { max: HOPS_MAX });
    }
    let held = job.policy.named_worker.not_before.filter(|moment| *moment > draft.now);
    if let Some(back) = there.max(held) {
        // All waiting jobs are checked in one command when the agent is back.
        let own = job.candidates.pending_assignment.is_some_and(|waits| waits.worker == agent);
        if !own && !has_waiting_capacity(draft.world.deferred_jobs_for(agent), job) {
            return Err(Refusal::AtCapacity);
        }
        return Ok(StartCondition::OnReturn(back));
    }
    if job.request.input_error.is_some() {
        return Ok(StartCondition::Never);
    }
    // The input was not checked against this agent's schema.
    let unseen = named.registered_at > job.request.opened_at && named.home != job.request.origin;
    if unseen && named.terms.intake.strict_input {
        return Err(Refusal::Offline);
    }
    check_load(draft, named)?;
    check_free_work(draft, job, agent)?;
    // An agent that made an offer itself expects the notice.
    let asked_elsewhere =
        matches!(job.selection, Selection::Invited { .. }) && named.home != job.request.origin;
    if (!named_a_price || asked_elsewhere) && !message::can_receive_work(draft, agent, job) {
        return Err(Refusal::InboxFull);
    }
    let skill = named.skill_for(job);
    let takes = skill.and_then(|skill| skill.expected_duration).unwrap_or_default();
    let by = job.request.wanted_by.unwrap_or(job.request.deadline).min(job.request.deadline);
    if draft.now >= job.request.deadline || draft.now.plus(takes) > by {
        return Err(Refusal::DeadlineTooSoon);
    }
    let agreed = job
        .candidates
        .pending_assignment
        .is_some_and(|waits| waits.approved && waits.worker == agent);
    let asks = skill.is_some_and(|skill| skill.needs_approval) && !agreed;
    Ok(if asks { StartCondition::AfterApproval } else { StartCondition::Now })
}

/// Whether an agent is available now, before other checks; if it announced when it is back, that
/// time.
pub fn return_time(
    world: &World,
    agent: &Agent,
    now: Timestamp,
) -> Result<Option<Timestamp>, Refusal> {
    presence_or_return_time(&Draft::new(world, now), agent)
}

/// Whether the agent is available; if it announced when it is back, that time.
fn presence_or_return_time(draft: &Draft<'_>, agent: &Agent) -> Result<Option<Timestamp>, Refusal> {
    let presence = draft.agent_state(agent.id).map(|agent_state| agent_state.presence);
    let availability = presence.map_or(Availability::Idle, |presence| presence.availability);
    let back = presence.and_then(|presence| presence.until).filter(|until| *until > draft.now);
    if draft.is_suspended(agent.id) {
        return Err(Refusal::Offline);
    }
    match availability {
        Availability::Broken => return Err(Refusal::AgentBroken),
        Availability::Maintenance if back.is_some() => return Ok(back),
        _ => {}
    }
    if !draft.is_online(agent.id) {
        return Err(Refusal::Offline);
    }
    Ok(None)
}

/// Whether its terms allow one more job.
fn check_load(draft: &Draft<'_>, agent: &Agent) -> Result<(), Refusal> {
    if agent.terms.is_default() {
        return Ok(());
    }
    let rate = agent.terms.capacity.max_starts_per_minute;
    if rate.is_some_and(|max| draft.recent_start_count(agent.id) >= max as usize) {
        return Err(Refusal::AtRateLimit);
    }
    if !agent.terms.has_capacity(draft.assigned_job_count(agent.id)) {
        return Err(Refusal::AtCapacity);
    }
    Ok(())
}

/// Whether free work leaves the agent capacity for others: a requester that pays nothing gets at
/// most `FREE_WORK_MAX` jobs at a time.
fn check_free_work(draft: &Draft<'_>, job: &Job, agent: AgentId) -> Result<(), Refusal> {
    if !job.payment.budget.is_zero() || draft.world.assigned_job_count(agent) < FREE_WORK_MAX {
        return Ok(());
    }
    let same = |other: &&Arc<Job>| {
        other.payment.budget.is_zero() && other.request.requester == job.request.requester
    };
    match draft.world.assigned_jobs(agent).filter(same).nth(FREE_WORK_MAX - 1) {
        Some(_) => Err(Refusal::AtCapacity),
        None => Ok(()),
    }
}

/// Whether the agent could start as soon as required.
pub fn can_start(draft: &Draft<'_>, job: &Job, agent: AgentId, ready: Readiness) -> bool {
    match start_condition(draft, job, agent) {
        Ok(StartCondition::Now) => true,
        Ok(StartCondition::AfterApproval) => ready == Readiness::AfterApproval,
        Ok(StartCondition::OnReturn(_) | StartCondition::Never) | Err(_) => false,
    }
}

/// Defers a job before it is assigned.
pub fn defer(draft: &mut Draft<'_>, job: &mut Job, worker: AgentId, when: StartCondition) {
    let (until, approval) = match when {
        StartCondition::Now => return,
        StartCondition::OnReturn(until) => (until, false),
        StartCondition::AfterApproval => (draft.now.plus(draft.world.rules.approval_timeout), true),
        // Not assigned: what is wrong with the input is reported at the next check.
        StartCondition::Never => (draft.now, false),
    };
    let agreed = job
        .candidates
        .pending_assignment
        .is_some_and(|waits| waits.approved && waits.worker == worker);
    job.state = State::Deferred { until };
    job.unassign();
    job.candidates.pending_assignment =
        Some(super::PendingAssignment { worker, needs_approval: approval, approved: agreed });
    job.pending = true;
    draft.add_event(Event::JobDeferred { job: job.id, until });
    if approval {
        let url = draft.agent(worker).and_then(Agent::delivery_url);
        draft.notify(Some(worker), NoticeKind::ApprovalRequested { job: job.id, until }, url);
    }
}
