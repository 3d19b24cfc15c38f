//! Jobs that their worker has read in a list: they count as handed over.
//!
//! Who asks for its work knows how all of it stands, also when there is none, so notices of work do
//! not wait for it any longer.

use std::sync::Arc;

use rialto_core::command::Command;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;

use super::Floor;

/// Notes that the agent asked for its work and was shown these jobs, or none. When there is nothing to
/// note, nothing is written.
pub async fn note_fetch(floor: &Floor, agent: AgentId, jobs: impl IntoIterator<Item = &Arc<Job>>) {
    let jobs = news(agent, jobs);
    if !jobs.is_empty() || floor.engine.look(|world| world.mailbox(agent).work_waiting > 0) {
        show(floor, agent, jobs).await;
    }
}

/// Notes that the agent was shown these jobs, as far as they are its work and that is news.
pub async fn note(floor: &Floor, agent: AgentId, jobs: impl IntoIterator<Item = &Arc<Job>>) {
    let jobs = news(agent, jobs);
    if !jobs.is_empty() {
        show(floor, agent, jobs).await;
    }
}

/// Those that are the agent's work and that it has not had in hand before.
fn news<'j>(agent: AgentId, jobs: impl IntoIterator<Item = &'j Arc<Job>>) -> Vec<JobId> {
    let is_news = |job: &&Arc<Job>| {
        let turn = job.assignment.filter(|_| job.in_hand_of() == Some(agent));
        turn.is_some_and(|turn| turn.handed_at.is_none())
    };
    jobs.into_iter().filter(is_news).map(|job| job.id).collect()
}

async fn show(floor: &Floor, agent: AgentId, jobs: Vec<JobId>) {
    // Whoever looks is answered all the same.
    if let Err(failure) = floor.engine.run(Command::Show { agent, jobs }).await {
        tracing::debug!(%agent, %failure, "recording viewed jobs failed");
    }
}
