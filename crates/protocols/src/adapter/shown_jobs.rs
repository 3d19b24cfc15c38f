//! Marks jobs that their worker has read in a list as handed over.
//!
//! A worker that fetches its jobs knows the state of all of them, also when there are none, so
//! notices about work need not wait for it any longer.

use std::sync::Arc;

use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;

use super::HubContext;

/// Records that the agent fetched its work and was shown these jobs, or none. Writes nothing when
/// there is nothing to record.
pub async fn note_fetch(
    context: &HubContext,
    agent: AgentId,
    jobs: impl IntoIterator<Item = &Arc<Job>>,
) {
    let jobs = news(agent, jobs);
    if !jobs.is_empty() || context.engine.with_world(|world| world.inbox(agent).work_waiting > 0) {
        show(context, agent, jobs).await;
    }
}

/// Records that the agent was shown those of these jobs that are its work and are new to it.
pub async fn mark_jobs_shown(
    context: &HubContext,
    agent: AgentId,
    jobs: impl IntoIterator<Item = &Arc<Job>>,
) {
    let jobs = news(agent, jobs);
    if !jobs.is_empty() {
        show(context, agent, jobs).await;
    }
}

/// The jobs that are the agent's work and were not handed to it before.
fn news<'j>(agent: AgentId, jobs: impl IntoIterator<Item = &'j Arc<Job>>) -> Vec<JobId> {
    let is_news = |job: &&Arc<Job>| {
        let turn = job.assignment.filter(|_| job.active_worker() == Some(agent));
        turn.is_some_and(|turn| turn.received_at.is_none())
    };
    jobs.into_iter().filter(is_news).map(|job| job.id).collect()
}

async fn show(context: &HubContext, agent: AgentId, jobs: Vec<JobId>) {
    // The agent gets its answer even if this fails.
    if let Err(failure) = context.engine.run(Command::MarkShown { agent, jobs }).await {
        tracing::debug!(%agent, %failure, "recording viewed jobs failed");
    }
}
