//! All jobs of the hub for the operator: parties, skill and state, but no content.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::id::JobId;
use rialto_core::job::Job;
use rialto_core::world::World;
use rialto_engine::Engine;
use rialto_engine::store::{self, Row};
use rialto_protocols::adapter::Floor;

use crate::v1::response::{Answered, ok};
use crate::v1::jobs::view::{Eyes, JobView};
use crate::v1::page::{self, Cursor, Page, choice};
use crate::v1::problem::Problem;
use crate::v1::auth::AsOperator;

/// The lists' tags in cursors.
const LIVE: char = 'L';
const ENDED: char = 'E';
/// Ended jobs read at once: input and result may each have a megabyte.
const SLICE: usize = 16;

/// `GET /v1/operator/jobs`: live jobs, oldest first; with `state=ended` ended jobs, newest first.
pub async fn list(
    State(floor): State<Floor>,
    _by: AsOperator,
    RawQuery(raw): RawQuery,
) -> Answered {
    let query = page::query(raw.as_deref(), &["state", "limit", "cursor"])?;
    let ended = choice(&query, "state", &[("live", false), ("ended", true)])?.unwrap_or(false);
    let limit = page::limit(&query)?;
    let (mut jobs, list) = match ended {
        false => {
            let after = page::place(&query, LIVE)?.map_or(0, |[after]| after);
            (floor.engine.look(|world| live(world, JobId(after), limit + 1)), LIVE)
        }
        true => {
            let before = page::place(&query, ENDED)?.map_or(u64::MAX, |[before]| before);
            (over(&floor.engine, JobId(before), limit + 1).await?, ENDED)
        }
    };
    let more = jobs.len() > limit;
    jobs.truncate(limit);
    let last = jobs.last().filter(|_| more);
    let next_cursor = last.map(|last| Cursor::new(list, [last.id.0]));
    let items: Vec<_> = jobs.iter().map(|job| JobView::outline(job, Eyes::Operator)).collect();
    Ok(ok(&Page { items, next_cursor }))
}

/// The first `count` live jobs after a given one; never more than that in memory.
fn live(world: &World, after: JobId, count: usize) -> Vec<Arc<Job>> {
    let mut found = BTreeMap::new();
    for job in world.live_jobs().filter(|job| job.id > after) {
        found.insert(job.id, job);
        if found.len() > count {
            found.pop_last();
        }
    }
    found.into_values().cloned().collect()
}

async fn over(engine: &Engine, mut before: JobId, count: usize) -> Result<Vec<Arc<Job>>, Problem> {
    let mut jobs = Vec::new();
    while jobs.len() < count {
        let limit = SLICE.min(count - jobs.len());
        let rows = engine.page(store::Page::Jobs { before, limit }).await?;
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
