//! The caller's jobs, in pages: live ones oldest first, then ended ones newest first.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_engine::Engine;
use rialto_engine::run::JobRole;
use rialto_protocols::adapter::{HubContext, shown_jobs};

use super::view::JobView;
use super::viewer_of;
use crate::v1::auth::AgentCaller;
use crate::v1::page::{self, Cursor, Page, parse_choice};
use crate::v1::params::{PageCursor, PageLimit};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};

/// The lists' tags in cursors.
const LIVE_LIST: char = 'l';
const ENDED_LIST: char = 'e';
const FULL_LIST: char = 'b';
/// Ended jobs read at once: input and result may each have a megabyte.
const SLICE: usize = 16;
/// Slices read for one page, because the chain of requested jobs also contains live jobs.
const SLICES_MAX: usize = 64;

/// Whether live or ended jobs are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobStateFilter {
    Live,
    Ended,
    All,
}

/// The jobs of one state, and where to continue.
struct JobSlice {
    items: Vec<Arc<Job>>,
    next: Option<JobId>,
}

impl JobSlice {
    fn into_page(self, list: char) -> Page<Arc<Job>> {
        let next_cursor = self.next.map(|next| Cursor::new(list, [next.0]));
        Page { items: self.items, next_cursor }
    }
}

rialto_protocols::words! {
    /// The caller's side of a job.
    Side: "asked" | "worked"
}

rialto_protocols::words! {
    /// Whether jobs have ended.
    Stage: "live" | "ended" | "all"
}

rialto_protocols::request_members! {
    /// Which jobs of the caller to list.
    JobsQuery {
        /// Jobs that it requested, which is the default, or jobs that it worked on.
        side: Option<Side>,
        /// Live jobs, which is the default, ended ones, or both.
        state: Option<Stage>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/jobs`: the caller's own jobs.
pub async fn list_jobs(
    State(context): State<HubContext>,
    by: AgentCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), JobsQuery::MEMBERS)?;
    let sides = [("asked", JobRole::Requester), ("worked", JobRole::Worker)];
    let side = parse_choice(&query, "side", &sides)?.unwrap_or(JobRole::Requester);
    let stages = [
        ("live", JobStateFilter::Live),
        ("ended", JobStateFilter::Ended),
        ("all", JobStateFilter::All),
    ];
    let stage = parse_choice(&query, "state", &stages)?.unwrap_or(JobStateFilter::Live);
    let limit = page::parse_limit(&query)?;
    let whose = (by.id, side);
    if side == JobRole::Worker {
        shown_jobs::note_fetch(&context, by.id, []).await;
    }
    let page = load_page(&context.engine, whose, stage, query.text("cursor"), limit).await?;
    let items = page.items.iter().map(|job| JobView::summary(job, viewer_of(job, by.id))).collect();
    Ok(ok_response(&Page { items, next_cursor: page.next_cursor }))
}

/// A page of an agent's jobs on one side. `cursor` is that of the page before.
pub async fn load_page(
    engine: &Engine,
    whose: (AgentId, JobRole),
    stage: JobStateFilter,
    cursor: Option<&str>,
    limit: usize,
) -> Result<Page<Arc<Job>>, Problem> {
    Ok(match stage {
        JobStateFilter::Live => {
            let after = page::read_cursor(cursor, LIVE_LIST)?.map_or(0, |[after]| after);
            load_live(engine, whose, JobId(after), limit).into_page(LIVE_LIST)
        }
        JobStateFilter::Ended => {
            let from = page::read_cursor(cursor, ENDED_LIST)?.map(|[from]| JobId(from));
            load_ended(engine, whose, from, limit).await?.into_page(ENDED_LIST)
        }
        JobStateFilter::All => {
            let place = page::read_cursor(cursor, FULL_LIST)?.unwrap_or_default();
            load_all(engine, whose, place, limit).await?
        }
    })
}

/// Both lists, one after the other. The first number says in which one to continue: 0 is the live
/// one.
async fn load_all(
    engine: &Engine,
    whose: (AgentId, JobRole),
    [stage, at]: [u64; 2],
    limit: usize,
) -> Result<Page<Arc<Job>>, Problem> {
    let cursor = |stage: u64| move |at: JobId| Cursor::new(FULL_LIST, [stage, at.0]);
    let mut items = Vec::new();
    if stage == 0 {
        let live = load_live(engine, whose, JobId(at), limit);
        let next_cursor = live.next.map(cursor(0)).or_else(|| {
            let full = live.items.len() == limit;
            newest_job(engine, whose).filter(|_| full).map(cursor(1))
        });
        items = live.items;
        if next_cursor.is_some() || items.len() == limit {
            return Ok(Page { items, next_cursor });
        }
    }
    let from = (stage != 0).then_some(JobId(at));
    let ended = load_ended(engine, whose, from, limit - items.len()).await?;
    items.extend(ended.items);
    Ok(Page { items, next_cursor: ended.next.map(cursor(1)) })
}

fn load_live(engine: &Engine, whose: (AgentId, JobRole), after: JobId, limit: usize) -> JobSlice {
    let (agent, side) = whose;
    let fitting = |job: &&Arc<Job>| job.id > after;
    let mut jobs: Vec<Arc<Job>> = engine.with_world(|world| match side {
        JobRole::Requester => {
            world.jobs_requested_by(agent).filter(fitting).take(limit + 1).cloned().collect()
        }
        JobRole::Worker => {
            world.assigned_jobs(agent).filter(fitting).take(limit + 1).cloned().collect()
        }
    });
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let next = jobs.last().filter(|_| more).map(|last| last.id);
    JobSlice { items: jobs, next }
}

/// The newest job the agent requested, or the newest one it has finished.
fn newest_job(engine: &Engine, (agent, side): (AgentId, JobRole)) -> Option<JobId> {
    engine.with_world(|world| {
        let agent_state = world.agent_state(agent)?;
        match side {
            JobRole::Requester => agent_state.last_requested,
            JobRole::Worker => agent_state.last_worked,
        }
    })
}

async fn load_ended(
    engine: &Engine,
    whose: (AgentId, JobRole),
    from: Option<JobId>,
    limit: usize,
) -> Result<JobSlice, Problem> {
    let (agent, side) = whose;
    let mut at = from.or_else(|| newest_job(engine, whose));
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
        at = slice.next.map(JobId);
        items.extend(slice.rows.into_iter().filter(|job| job.state.is_final()));
    }
    Ok(JobSlice { items, next: at })
}

fn is_own(job: &Job, agent: AgentId, side: JobRole) -> bool {
    match side {
        JobRole::Requester => job.is_requested_by(agent),
        JobRole::Worker => job.worker() == Some(agent),
    }
}
