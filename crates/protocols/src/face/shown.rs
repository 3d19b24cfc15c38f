//! Work that its worker has looked at, by another way than being handed it: it has it in hand then.

use std::sync::Arc;

use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;

use super::Floor;

/// Notes that the agent was shown these jobs, as far as they are its work and that is news.
pub async fn note(floor: &Floor, agent: AgentId, jobs: impl IntoIterator<Item = &Arc<Job>>) {
    let is_news = |job: &&Arc<Job>| {
        let turn = job.assignment.filter(|_| job.in_hand_of() == Some(agent));
        turn.is_some_and(|turn| turn.handed_at.is_none())
    };
    let jobs: Vec<JobId> = jobs.into_iter().filter(is_news).map(|job| job.id).collect();
    if jobs.is_empty() {
        return;
    }
    // Whoever looks is answered all the same.
    if let Err(failure) = floor.engine.run(Command::Show { agent, jobs }).await {
        tracing::debug!(%agent, %failure, "work that was looked at could not be noted");
    }
}
