//! The hub's choice, where a request names nobody (R84).

use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

use rialto_core::agent::Agent;
use rialto_core::answer::Answer;
use rialto_core::id::AgentId;
use rialto_core::job::State;
use rialto_core::time::Timestamp;
use tokio::time::Instant;

use super::ask::Asking;
use super::offering::{self, Tried, Unasked};
use crate::face::Floor;
use crate::openclaw::codes::Rejected;
use crate::openclaw::failure::Failure;
use crate::openclaw::message::Rejection;
use crate::openclaw::record;
use crate::openclaw::state::Status;

/// Agents looked at for one request, agents really asked, and how long that may take.
const LOOKED_AT_MAX: usize = 1_024;
const ASKED_MAX: usize = 16;
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the best agent that can do it now; else the best that could if somebody agreed; else whoever is
/// first back from maintenance, as if it had been named.
pub async fn ask_somebody(floor: &Floor, asking: &Asking) -> Result<Tried, Failure> {
    let mut best: Option<Rejection> = None;
    let (mut now, mut agreed, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    let mut later: Vec<(Timestamp, Arc<Agent>)> = Vec::new();
    for agent in ranked(floor, &asking.message.said.capability_id) {
        match looks_fit(floor, asking, &agent) {
            Ok(Fit::Now) => now.push(agent),
            Ok(Fit::Approved) => agreed.push(agent),
            Ok(Fit::Later(until)) => later.push((until, agent)),
            Err(Misfit::Away(why)) => hope(&mut best, why),
            Err(Misfit::Refused(why)) => refused.push((agent, why)),
            Err(Misfit::Unasked(Unasked::Known)) => return Ok(Tried::Known),
            Err(Misfit::Unasked(Unasked::Failed(failure))) => return Err(failure),
            Err(Misfit::Unasked(Unasked::Rejected(why))) => hope(&mut best, why),
        }
        // More than will be asked need not be looked for.
        if now.len() >= ASKED_MAX {
            break;
        }
    }
    let until = Instant::now() + PATIENCE;
    for agent in now.into_iter().chain(agreed).take(ASKED_MAX) {
        if Instant::now() >= until {
            break;
        }
        match offering::offer(floor, asking, &agent).await {
            Ok(job) => return Ok(Tried::Job(job)),
            Err(Unasked::Known) => return Ok(Tried::Known),
            Err(Unasked::Failed(failure)) => return Err(failure),
            // Its schema does not have the input, or somebody else was faster: the next one.
            Err(Unasked::Rejected(why)) => hope(&mut best, why),
        }
    }
    for (place, (agent, why)) in refused.into_iter().enumerate() {
        // The input is looked at before what the rules refuse (R83).
        let looked_at = place < ASKED_MAX && Instant::now() < until;
        let flaw = if looked_at { offering::flaw(floor, asking, &agent).await } else { None };
        hope(&mut best, flaw.unwrap_or(why));
    }
    // Whoever may be asked again before anybody is back is told that instead.
    later.sort_by_key(|(until, _)| *until);
    for (back, agent) in later.into_iter().take(ASKED_MAX) {
        let seconds = seconds_to(back, floor.engine.now());
        let sooner = best.as_ref().is_some_and(|best| hopeful(best) < (0, seconds));
        if sooner || Instant::now() >= until {
            break;
        }
        match offering::offer(floor, asking, &agent).await {
            Ok(job) => return Ok(Tried::Job(job)),
            Err(Unasked::Known) => return Ok(Tried::Known),
            Err(Unasked::Failed(failure)) => return Err(failure),
            Err(Unasked::Rejected(why)) => hope(&mut best, why),
        }
    }
    let nobody = || {
        let text = "Nobody offers this capability";
        Rejection::new(Rejected::CapabilityNotAvailable, text)
    };
    Ok(Tried::No(best.unwrap_or_else(nobody), Some(floor.openclaw.hub_id)))
}

/// Keeps the more hopeful of two rejections.
fn hope(best: &mut Option<Rejection>, other: Rejection) {
    let better = best.as_ref().is_none_or(|best| hopeful(&other) < hopeful(best));
    if better {
        *best = Some(other);
    }
}

/// The lower the more hopeful: what passes by itself, then what a changed request gets round.
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

/// When an agent could take a request on.
enum Fit {
    Now,
    Approved,
    /// When it is back from maintenance.
    Later(Timestamp),
}

/// Why an agent cannot take a request on.
enum Misfit {
    /// It has not the capability, or is not there.
    Away(Rejection),
    /// The rules refuse.
    Refused(Rejection),
    Unasked(Unasked),
}

/// Whether the rules would give it the request as things are, without asking the lane.
fn looks_fit(floor: &Floor, asking: &Asking, agent: &Arc<Agent>) -> Result<Fit, Misfit> {
    offering::presence(floor, asking, agent).map_err(|unasked| match unasked {
        Unasked::Rejected(why) => Misfit::Away(why),
        other => Misfit::Unasked(other),
    })?;
    let command = offering::order(floor, asking, agent, None, true);
    let now = floor.engine.now();
    let decided = floor.engine.look(|world| rialto_core::decide(world, command, now));
    match decided {
        Ok((_, Answer::Job { job, .. })) => Ok(match (job.state, job.waits_for) {
            (State::Deferred { .. }, Some(waits)) if waits.approval => Fit::Approved,
            (State::Deferred { until }, _) => Fit::Later(until),
            _ => Fit::Now,
        }),
        Ok(_) => Ok(Fit::Now),
        Err(refusal) => Err(match offering::because(floor, agent, &refusal) {
            Unasked::Rejected(why) => Misfit::Refused(why),
            other => Misfit::Unasked(other),
        }),
    }
}

/// Everybody with the capability: idle before busy, the better score first, then who came first.
fn ranked(floor: &Floor, capability: &str) -> Vec<Arc<Agent>> {
    let scale = floor.openclaw.settings.response_scale;
    floor.engine.look(|world| {
        let place = |id: AgentId| {
            let agent = world.agent(id).filter(|agent| agent.active)?;
            let busy = record::effective(world, agent) != Status::Idle;
            let score = world.desk(id).map_or(0, |desk| record::rank(desk, scale));
            Some(((busy, Reverse(score), id), agent.clone()))
        };
        let found = world.skills.by_merit(capability).take(LOOKED_AT_MAX);
        let mut found: Vec<_> = found.filter_map(place).collect();
        found.sort_unstable_by_key(|(place, _)| *place);
        found.into_iter().map(|(_, agent)| agent).collect()
    })
}
