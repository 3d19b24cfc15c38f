//! The caller's jobs, in pages: live ones oldest first, then ended ones newest first.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_engine::Engine;
use rialto_engine::run::Side;
use rialto_protocols::adapter::{Floor, shown_jobs};

use super::eyes;
use super::view::JobView;
use crate::v1::response::{Answered, ok};
use crate::v1::page::{self, Cursor, Page, choice};
use crate::v1::problem::Problem;
use crate::v1::auth::AsAgent;

/// The lists' tags in cursors.
const LIVE: char = 'l';
const ENDED: char = 'e';
const ALL: char = 'b';
/// Ended jobs read at once: input and result may each have a megabyte.
const SLICE: usize = 16;
/// Slices read for one page, because the chain of requested jobs also contains live jobs.
const SLICES_MAX: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Live,
    Ended,
    All,
}

/// The jobs of one state, and where to continue.
struct Part {
    items: Vec<JobView>,
    next: Option<JobId>,
}

impl Part {
    fn page(self, list: char) -> Page<JobView> {
        let next_cursor = self.next.map(|next| Cursor::new(list, [next.0]));
        Page { items: self.items, next_cursor }
    }
}

/// `GET /v1/jobs`: the caller's own jobs.
pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref(), &["side", "state", "limit", "cursor"])?;
    let sides = [("asked", Side::Asked), ("worked", Side::Worked)];
    let side = choice(&query, "side", &sides)?.unwrap_or(Side::Asked);
    let stages = [("live", Stage::Live), ("ended", Stage::Ended), ("all", Stage::All)];
    let stage = choice(&query, "state", &stages)?.unwrap_or(Stage::Live);
    let limit = page::limit(&query)?;
    let whose = (by.id, side);
    if side == Side::Worked {
        shown_jobs::note_fetch(&floor, by.id, []).await;
    }
    let page = match stage {
        Stage::Live => {
            let after = page::place(&query, LIVE)?.map_or(0, |[after]| after);
            live(&floor.engine, whose, JobId(after), limit).page(LIVE)
        }
        Stage::Ended => {
            let from = page::place(&query, ENDED)?.map(|[from]| JobId(from));
            ended(&floor.engine, whose, from, limit).await?.page(ENDED)
        }
        Stage::All => {
            let place = page::place(&query, ALL)?.unwrap_or_default();
            all(&floor.engine, whose, place, limit).await?
        }
    };
    Ok(ok(&page))
}

/// Both lists, one after the other. The first number says in which one to continue: 0 is the live
/// one.
async fn all(
    engine: &Engine,
    whose: (AgentId, Side),
    [stage, at]: [u64; 2],
    limit: usize,
) -> Result<Page<JobView>, Problem> {
    let cursor = |stage: u64| move |at: JobId| Cursor::new(ALL, [stage, at.0]);
    let mut items = Vec::new();
    if stage == 0 {
        let live = live(engine, whose, JobId(at), limit);
        let next_cursor = live.next.map(cursor(0)).or_else(|| {
            let full = live.items.len() == limit;
            newest(engine, whose).filter(|_| full).map(cursor(1))
        });
        items = live.items;
        if next_cursor.is_some() || items.len() == limit {
            return Ok(Page { items, next_cursor });
        }
    }
    let from = (stage != 0).then_some(JobId(at));
    let ended = ended(engine, whose, from, limit - items.len()).await?;
    items.extend(ended.items);
    Ok(Page { items, next_cursor: ended.next.map(cursor(1)) })
}

fn live(engine: &Engine, whose: (AgentId, Side), after: JobId, limit: usize) -> Part {
    let (agent, side) = whose;
    let fitting = |job: &&Arc<Job>| job.id > after;
    let mut jobs: Vec<Arc<Job>> = engine.look(|world| match side {
        Side::Asked => world.asked_by(agent).filter(fitting).take(limit + 1).cloned().collect(),
        Side::Worked => world.work_of(agent).filter(fitting).take(limit + 1).cloned().collect(),
    });
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|last| last.id);
    let items = jobs.iter().map(|job| JobView::outline(job, eyes(job, agent))).collect();
    Part { items, next }
}

/// The newest job the agent requested, or the newest one it has finished.
fn newest(engine: &Engine, (agent, side): (AgentId, Side)) -> Option<JobId> {
    engine.look(|world| {
        let desk = world.desk(agent)?;
        match side {
            Side::Asked => desk.last_asked,
            Side::Worked => desk.last_worked,
        }
    })
}

async fn ended(
    engine: &Engine,
    whose: (AgentId, Side),
    from: Option<JobId>,
    limit: usize,
) -> Result<Part, Problem> {
    let (agent, side) = whose;
    let mut at = from.or_else(|| newest(engine, whose));
    let mut items = Vec::new();
    for _ in 0..SLICES_MAX {
        if at.is_none() || items.len() == limit {
            break;
        }
        let slice = engine.jobs_of(side, at, SLICE.min(limit - items.len())).await?;
        if !slice.rows.iter().all(|job| is_own(job, agent, side)) {
            // A forged cursor points to another agent's jobs: treat it as the end of the list.
            at = None;
            break;
        }
        let over = slice.rows.iter().filter(|job| job.state.is_final());
        items.extend(over.map(|job| JobView::outline(job, eyes(job, agent))));
        at = slice.next.map(JobId);
    }
    Ok(Part { items, next: at })
}

fn is_own(job: &Job, agent: AgentId, side: Side) -> bool {
    match side {
        Side::Asked => job.asked_by(agent),
        Side::Worked => job.worker() == Some(agent),
    }
}
