//! Jobs, for whoever asked for them or works on them.

pub mod trace;
pub mod view;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_engine::Engine;
use rialto_engine::run::Side;
use rialto_protocols::face::Floor;
use uuid::Uuid;

use super::answer::{Answered, ok};
use super::page::{self, Cursor, Page, choice};
use super::problem::Problem;
use super::proof::{AsAgent, Known, Part, Who};
use view::{Eyes, JobView};

/// The two lists, as their cursors name them.
const LIVE: char = 'l';
const ENDED: char = 'e';
/// Ended jobs read at once: each may carry a megabyte either way.
const SLICE: usize = 16;
/// Slices read for one page, since the chain of what was asked also leads over live jobs.
const SLICES_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    Ended,
}

/// `GET /v1/jobs`: the caller's own, live ones oldest first, ended ones newest first.
pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref())?;
    let sides = [("asked", Side::Asked), ("worked", Side::Worked)];
    let side = choice(&query, "side", &sides)?.unwrap_or(Side::Asked);
    let stages = [("live", Stage::Live), ("ended", Stage::Ended)];
    let stage = choice(&query, "state", &stages)?.unwrap_or(Stage::Live);
    let limit = page::limit(&query)?;
    let page = match stage {
        Stage::Live => {
            let after = page::place(&query, LIVE)?.map_or(0, |[after]| after);
            live(&floor.engine, by.id, side, JobId(after), limit)
        }
        Stage::Ended => {
            let from = page::place(&query, ENDED)?.map(|[from]| JobId(from));
            ended(&floor.engine, by.id, side, from, limit).await?
        }
    };
    Ok(ok(&page))
}

fn live(engine: &Engine, agent: AgentId, side: Side, after: JobId, limit: usize) -> Page<JobView> {
    let fitting = |job: &&Arc<Job>| job.id > after;
    let mut jobs: Vec<Arc<Job>> = engine.look(|world| match side {
        Side::Asked => world.asked_by(agent).filter(fitting).take(limit + 1).cloned().collect(),
        Side::Worked => world.work_of(agent).filter(fitting).take(limit + 1).cloned().collect(),
    });
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next_cursor = jobs.last().filter(|_| more).map(|last| Cursor::new(LIVE, [last.id.0]));
    let items = jobs.iter().map(|job| JobView::outline(job, eyes(job, agent))).collect();
    Page { items, next_cursor }
}

async fn ended(
    engine: &Engine,
    agent: AgentId,
    side: Side,
    from: Option<JobId>,
    limit: usize,
) -> Result<Page<JobView>, Problem> {
    let newest = engine.look(|world| {
        let desk = world.desk(agent)?;
        match side {
            Side::Asked => desk.last_asked,
            Side::Worked => desk.last_worked,
        }
    });
    let mut at = from.or(newest);
    let mut items = Vec::new();
    for _ in 0..SLICES_MAX {
        if at.is_none() || items.len() == limit {
            break;
        }
        let slice = engine.jobs_of(side, at, SLICE.min(limit - items.len())).await?;
        if !slice.rows.iter().all(|job| is_own(job, agent, side)) {
            // A made-up cursor leads to somebody else's jobs: as good as nowhere.
            at = None;
            break;
        }
        let over = slice.rows.iter().filter(|job| job.state.is_final());
        items.extend(over.map(|job| JobView::outline(job, eyes(job, agent))));
        at = slice.next.map(JobId);
    }
    Ok(Page { items, next_cursor: at.map(|at| Cursor::new(ENDED, [at.0])) })
}

fn is_own(job: &Job, agent: AgentId, side: Side) -> bool {
    match side {
        Side::Asked => job.asked_by(agent),
        Side::Worked => job.worker() == Some(agent),
    }
}

/// Whose eyes a party has: who asked knows more than who works.
fn eyes(job: &Job, agent: AgentId) -> Eyes {
    if job.asked_by(agent) { Eyes::Requester } else { Eyes::Worker }
}

/// `GET /v1/jobs/{uuid}`: everything for its two parties, and what is no content for the operator.
pub async fn show(State(floor): State<Floor>, known: Known, Part(id): Part) -> Answered {
    let wanted = JobRef::Uuid(uuid(&id)?);
    let job = floor.engine.find_job(&wanted).await?.ok_or_else(Problem::not_found)?;
    let view = match known.proven.who {
        Who::Operator => JobView::outline(&job, Eyes::Operator),
        Who::Agent(agent) if job.asked_by(agent) || job.worker() == Some(agent) => {
            JobView::whole(&job, eyes(&job, agent))
        }
        Who::Agent(_) => return Err(Problem::not_found()),
    };
    Ok(ok(&view))
}

/// A job's public id in a path.
pub fn uuid(text: &str) -> Result<Uuid, Problem> {
    let form = text.parse::<uuid::fmt::Hyphenated>().map(uuid::fmt::Hyphenated::into_uuid);
    form.map_err(|_| Problem::field("job", "a job is named by its UUID"))
}
