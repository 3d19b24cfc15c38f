//! Work: what is in the caller's hands, at once or as soon as that changes.

mod view;

use std::collections::HashSet;
use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::answer::Answer;
use rialto_core::command::Command;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, State as JobState};
use rialto_core::world::World;
use rialto_protocols::face::Floor;
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::query::Query;
use serde::Serialize;
use uuid::Uuid;

use super::answer::{Answered, ok, time};
use super::problem::Problem;
use super::proof::AsAgent;
use super::{page, wait};
use view::WorkView;

/// Jobs given to a worker at once.
const LISTED_MAX: i64 = 50;
/// Jobs a worker may say it has.
const KNOWN_MAX: usize = 200;

#[derive(Serialize)]
struct Work {
    jobs: Vec<WorkView>,
    /// What time it is here, since deadlines are told by this clock.
    now: String,
}

/// `GET /v1/work`: all the caller is to do, oldest first. With `wait` the answer comes once there is
/// something on the list that is not among `known`, or something of `known` is the caller's no more.
pub async fn list(State(floor): State<Floor>, by: AsAgent, RawQuery(raw): RawQuery) -> Answered {
    let query = page::query(raw.as_deref())?;
    let at_most = wait::wanted(&query)?;
    let limit = query.integer("limit", 1..=LISTED_MAX)?.unwrap_or(LISTED_MAX) as usize;
    let known = known(&query)?;
    floor.engine.seen(by.id);
    let changed = || floor.engine.look(|world| is_news(world, by.id, &known, limit)).then_some(());
    wait::until(&floor.engine, by.id, at_most, changed).await;
    let jobs = hand_over(&floor, by.id, limit).await?;
    let shown = |world: &World| jobs.iter().filter_map(|job| WorkView::of(world, job)).collect();
    Ok(ok(&Work { jobs: floor.engine.look(shown), now: time(floor.engine.now()) }))
}

/// `?known=`: the jobs the caller has already, by the hub's ids.
fn known(query: &Query) -> Result<HashSet<Uuid>, Malformed> {
    let fail = |message: String| Malformed { field: "?known".to_owned(), message };
    let given = query.text("known").filter(|text| !text.is_empty());
    let ids: Vec<&str> = given.map(|text| text.split(',').collect()).unwrap_or_default();
    if ids.len() > KNOWN_MAX {
        return Err(fail(format!("known names more than {KNOWN_MAX} jobs")));
    }
    let read = |id: &str| id.parse::<uuid::fmt::Hyphenated>().map(Uuid::from);
    let ids: Result<HashSet<Uuid>, _> = ids.into_iter().map(read).collect();
    ids.map_err(|_| fail("known must be UUIDs with commas between them".to_owned()))
}

/// What an agent has now and may report about, oldest first.
fn in_hand(world: &World, agent: AgentId) -> impl Iterator<Item = &Arc<Job>> {
    let held = |job: &&Arc<Job>| matches!(job.state, JobState::Assigned | JobState::Running);
    world.work_of(agent).filter(held)
}

/// Whether the list says something new. What is beyond its end is no news: it would be said again
/// and again without ever being told.
fn is_news(world: &World, agent: AgentId, known: &HashSet<Uuid>, limit: usize) -> bool {
    let fresh = in_hand(world, agent).take(limit).any(|job| !known.contains(&job.uuid));
    fresh || in_hand(world, agent).filter(|job| known.contains(&job.uuid)).count() < known.len()
}

/// The oldest jobs in the agent's hands; those it has not seen are marked as handed over first.
async fn hand_over(floor: &Floor, agent: AgentId, limit: usize) -> Result<Vec<Arc<Job>>, Problem> {
    let jobs: Vec<Arc<Job>> =
        floor.engine.look(|world| in_hand(world, agent).take(limit).cloned().collect());
    let fresh = |job: &Arc<Job>| job.assignment.is_some_and(|turn| !turn.handed_over);
    if !jobs.iter().any(fresh) {
        return Ok(jobs);
    }
    let jobs = jobs.iter().map(|job| job.id).collect();
    match floor.engine.run(Command::HandOver { agent, jobs }).await? {
        Answer::Jobs(jobs) => Ok(jobs),
        _ => Ok(Vec::new()),
    }
}
