//! Long polling: a request may wait for a result.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Duration;

use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_core::refusal::Refusal;
use rialto_engine::key_use;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;

use super::errors;
use super::problem::Problem;

/// The longest wait, in seconds.
const WAIT_MAX: i64 = 30;

/// `?wait=`: how long the caller wants to wait, in seconds; 0 by default.
pub fn parse_wait(query: &Query) -> Result<Duration, Malformed> {
    let seconds = query.integer("wait", 0..=WAIT_MAX)?.unwrap_or(0);
    Ok(Duration::from_secs(seconds.unsigned_abs()))
}

/// How many requests of one agent may wait at the same time: each is an open connection.
const WAITS_MAX: u32 = 64;

/// One waiting request.
pub struct WaitPermit<'a> {
    context: &'a HubContext,
    agent: AgentId,
}

impl<'a> WaitPermit<'a> {
    /// Counts one more waiting request of an agent.
    pub fn acquire(context: &'a HubContext, agent: AgentId) -> Result<Self, Problem> {
        let mut all = lock(context);
        let count = all.entry(agent).or_default();
        if *count >= WAITS_MAX {
            let text = format!("the agent already has {WAITS_MAX} waiting requests");
            return Err(Problem::new(&errors::RATE_LIMITED, text).with_retry_after(1));
        }
        *count += 1;
        Ok(Self { context, agent })
    }
}

impl Drop for WaitPermit<'_> {
    fn drop(&mut self) {
        let mut all = lock(self.context);
        match all.get_mut(&self.agent) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(all.remove(&self.agent)),
        }
    }
}

fn lock(context: &HubContext) -> MutexGuard<'_, BTreeMap<AgentId, u32>> {
    context.pending_waits.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job once it has ended or waits for its requester, or as it is after the timeout.
pub async fn wait_until_ended(
    context: &HubContext,
    party: AgentId,
    job: Arc<Job>,
    at_most: Duration,
) -> Result<Arc<Job>, Problem> {
    if job.state.is_final() || at_most.is_zero() {
        return Ok(job);
    }
    let _permit = WaitPermit::acquire(context, party)?;
    let mut shutdown = context.shutdown.clone();
    let ended = tokio::select! {
        ended = context.engine.wait_until_ended(job.id, at_most) => ended?,
        () = shutdown.wait() => context.engine.load_job(job.id).await?,
    };
    ended.ok_or_else(Problem::not_found)
}

/// Refuses a request whose key was revoked while it waited.
pub fn ensure_key_is_valid(context: &HubContext) -> Result<(), Problem> {
    let Some(used) = key_use::current() else { return Ok(()) };
    let now = context.engine.now();
    let is_valid = context.engine.with_world(|world| {
        let mut keys = world.keys_of(used.agent);
        keys.any(|key| key.id == used.key && key.is_valid(now))
    });
    if is_valid { Ok(()) } else { Err(Refusal::NotAuthenticated.into()) }
}

/// Calls `look` at every notice of an agent until it returns something, at most this long. Ends early
/// when the hub stops.
pub async fn wait_until<T>(
    context: &HubContext,
    agent: AgentId,
    at_most: Duration,
    look: impl Fn() -> Option<T>,
) -> Result<Option<T>, Problem> {
    if at_most.is_zero() {
        return Ok(look());
    }
    let _waits = WaitPermit::acquire(context, agent)?;
    let until = tokio::time::Instant::now() + at_most;
    let mut shutdown = context.shutdown.clone();
    loop {
        let news = context.engine.subscribe_agent(agent);
        let told = news.notified();
        tokio::pin!(told);
        // The waiter is registered now, so checking after this cannot miss a signal.
        told.as_mut().enable();
        if let Some(found) = look() {
            return Ok(Some(found));
        }
        tokio::select! {
            () = told => {}
            () = tokio::time::sleep_until(until) => return Ok(None),
            () = shutdown.wait() => return Ok(None),
        }
    }
}
