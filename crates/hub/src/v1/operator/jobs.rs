//! All jobs of the hub for the operator: parties, skill and state, but no content.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::JobId;
use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_engine::store::{self, Row};
use rialto_protocols::adapter::HubContext;

use crate::v1::auth::OperatorCaller;
use crate::v1::jobs::view::{JobView, Viewer};
use crate::v1::page::{self, Cursor, Page, parse_choice};
use crate::v1::params::{PageCursor, PageLimit};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};

/// The lists' tags in cursors.
const LIVE: char = 'L';
const ENDED: char = 'E';
/// Ended jobs read at once: input and result may each have a megabyte.
const SLICE: usize = 16;

rialto_protocols::words! {
    /// Whether jobs have ended.
    OperatorStage: "live" | "ended"
}

rialto_protocols::request_members! {
    /// Which jobs to list.
    OperatorJobsQuery {
        /// Live jobs, which is the default, or ended ones.
        state: Option<OperatorStage>,
        limit: Option<PageLimit>,
        cursor: Option<PageCursor>,
    }
}

/// `GET /v1/operator/jobs`: live jobs, oldest first; with `state=ended` ended jobs, newest first.
pub async fn list_jobs(
    State(context): State<HubContext>,
    _by: OperatorCaller,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let query = page::parse_query(raw.as_deref(), OperatorJobsQuery::MEMBERS)?;
    let ended =
        parse_choice(&query, "state", &[("live", false), ("ended", true)])?.unwrap_or(false);
    let limit = page::parse_limit(&query)?;
    let (mut jobs, list) = match ended {
        false => {
            let after = page::parse_cursor(&query, LIVE)?.map_or(0, |[after]| after);
            (context.engine.with_world(|world| load_live(world, JobId(after), limit + 1)), LIVE)
        }
        true => {
            let before = page::parse_cursor(&query, ENDED)?.map_or(u64::MAX, |[before]| before);
            (load_ended(&context.engine, JobId(before), limit + 1).await?, ENDED)
        }
    };
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let last = jobs.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(list, [last.id.0]));
    let items: Vec<_> = jobs.iter().map(|job| JobView::summary(job, Viewer::Operator)).collect();
    Ok(ok_response(&Page { items, next_cursor }))
}

/// The first `count` live jobs after a given one; never more than that in memory.
fn load_live(world: &World, after: JobId, count: usize) -> Vec<Arc<Job>> {
    let mut found = BTreeMap::new();
    for job in world.live_jobs().filter(|job| job.id > after) {
        found.insert(job.id, job);
        if found.len() > count {
            found.pop_last();
        }
    }
    found.into_values().cloned().collect()
}

async fn load_ended(
    engine: &Engine,
    mut before: JobId,
    count: usize,
) -> Result<Vec<Arc<Job>>, Problem> {
    let mut jobs = Vec::new();
    while jobs.len() < count {
        let limit = SLICE.min(count - jobs.len());
        let rows = engine.load_page(store::PageQuery::Jobs { before, limit }).await?;
        let found = rows.len();
        jobs.extend(rows.into_iter().filter_map(|row| match row {
            Row::Job(job) => Some(job),
            _ => None,
        }));
        match jobs.last() {
            Some(last) if found == limit => before = last.id,
            _ => break,
        }
    }
    Ok(jobs)
}
