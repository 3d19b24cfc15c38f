//! The hub's history: what happened to jobs, independent of what the agents report.

use rialto_client::CallError;
use rialto_core::event::Event;
use rialto_core::id::{AgentId, EventId, JobId};
use rialto_core::job::{Requester, State};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_engine::store::{Page, Row};
use serde::Serialize;

use super::role::Who;
use super::demo_agent::People;
use super::balance::{Amount, unreadable};

/// Maximum number of lines read; the demo has a few dozen.
const LINES_MAX: usize = 10_000;

/// One event in the life of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The hub's id of the job.
    pub job: String,
    /// The requester.
    pub of: Who,
    pub what: What,
    /// The agent that did this, or the worker of a job that ended.
    pub by: Option<Who>,
    /// What was paid at the end.
    pub paid: Option<Amount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    Deferred,
    Offered,
    Declined,
    Completed,
    Failed,
    /// Ended in a way that is not planned.
    Broken,
}

/// The whole history, oldest first.
pub async fn read(engine: &Engine, people: &People) -> Result<Vec<Fact>, CallError> {
    let page = Page::Lines { after: EventId(0), limit: LINES_MAX };
    let rows = engine.page(page).await.map_err(|_| unreadable("the history cannot be read"))?;
    let mut facts = Vec::new();
    for row in rows {
        let Row::Line(line) = row else { continue };
        for event in &line.events {
            facts.extend(fact(engine, people, event).await);
        }
    }
    Ok(facts)
}

async fn fact(engine: &Engine, people: &People, event: &Event) -> Option<Fact> {
    let (id, what, by, paid) = told(event)?;
    let job = engine.job(id).await.ok().flatten()?;
    let Requester::Agent(of) = job.requester else { return None };
    let by = by.or_else(|| job.worker());
    Some(Fact {
        job: job.uuid.to_string(),
        of: who(people, of)?,
        what,
        by: by.and_then(|by| who(people, by)),
        paid: paid.map(Amount),
    })
}

type Told = (JobId, What, Option<AgentId>, Option<Credits>);

fn told(event: &Event) -> Option<Told> {
    Some(match event {
        Event::JobDeferred { job, .. } => (*job, What::Deferred, None, None),
        Event::JobOffered { job, by } => (*job, What::Offered, Some(*by), None),
        Event::JobDeclined { job, worker } => (*job, What::Declined, Some(*worker), None),
        Event::JobEnded { job, state, paid, .. } => {
            let what = match state {
                State::Completed => What::Completed,
                State::Failed => What::Failed,
                _ => What::Broken,
            };
            (*job, what, None, Some(*paid))
        }
        _ => return None,
    })
}

fn who(people: &People, id: AgentId) -> Option<Who> {
    people.iter().find(|(_, person)| person.id == id).map(|(who, _)| *who)
}
