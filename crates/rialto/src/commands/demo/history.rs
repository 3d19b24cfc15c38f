//! The hub's history: what happened to jobs, independent of what the agents report.

use rialto_client::CallError;
use rialto_core::event::Event;
use rialto_core::id::{AgentId, EventId, JobId};
use rialto_core::job::{Requester, State};
use rialto_core::money::Credits;
use rialto_engine::Engine;
use rialto_engine::store::{PageQuery, Row};
use serde::Serialize;

use super::balance::{Amount, unreadable};
use super::demo_agent::DemoAgents;
use super::role::Role;

/// Maximum number of lines read; the demo has a few dozen.
const LINES_MAX: usize = 10_000;

/// One event in the life of a job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fact {
    /// The hub's id of the job.
    pub job: String,
    /// The requester.
    #[serde(rename = "of")]
    pub requester: Role,
    #[serde(rename = "what")]
    pub kind: FactKind,
    /// The agent that did this, or the worker of a job that ended.
    pub by: Option<Role>,
    /// What was paid at the end.
    pub paid: Option<Amount>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FactKind {
    Deferred,
    Offered,
    Declined,
    Completed,
    Failed,
    /// Ended in a way that is not planned.
    #[serde(rename = "broken")]
    Unplanned,
}

/// The whole history, oldest first.
pub async fn read_history(engine: &Engine, people: &DemoAgents) -> Result<Vec<Fact>, CallError> {
    let page = PageQuery::Lines { after: EventId(0), limit: LINES_MAX };
    let rows =
        engine.load_page(page).await.map_err(|_| unreadable("the history cannot be read"))?;
    let mut facts = Vec::new();
    for row in rows {
        let Row::Line(line) = row else { continue };
        for event in &line.events {
            facts.extend(fact(engine, people, event).await);
        }
    }
    Ok(facts)
}

async fn fact(engine: &Engine, people: &DemoAgents, event: &Event) -> Option<Fact> {
    let (id, what, by, paid) = event_parts(event)?;
    let job = engine.load_job(id).await.ok().flatten()?;
    let Requester::Agent(of) = job.request.requester else { return None };
    let by = by.or_else(|| job.worker());
    Some(Fact {
        job: job.uuid.to_string(),
        requester: role_of(people, of)?,
        kind: what,
        by: by.and_then(|by| role_of(people, by)),
        paid: paid.map(Amount),
    })
}

type EventParts = (JobId, FactKind, Option<AgentId>, Option<Credits>);

fn event_parts(event: &Event) -> Option<EventParts> {
    Some(match event {
        Event::JobDeferred { job, .. } => (*job, FactKind::Deferred, None, None),
        Event::JobOffered { job, by } => (*job, FactKind::Offered, Some(*by), None),
        Event::JobDeclined { job, worker } => (*job, FactKind::Declined, Some(*worker), None),
        Event::JobEnded { job, state, paid, .. } => {
            let what = match state {
                State::Completed => FactKind::Completed,
                State::Failed => FactKind::Failed,
                _ => FactKind::Unplanned,
            };
            (*job, what, None, Some(*paid))
        }
        _ => return None,
    })
}

fn role_of(people: &DemoAgents, id: AgentId) -> Option<Role> {
    people.iter().find(|(_, person)| person.id == id).map(|(who, _)| *who)
}
