//! Jobs, for their requester and their worker.

pub mod open;
pub mod cancel;
pub mod list;
pub mod offers;
pub mod result;
pub mod trace;
pub mod view;

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use rialto_core::command::JobRef;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_protocols::adapter::{Floor, fidelity};
use uuid::Uuid;

use super::response::{Answered, ok};
use super::problem::Problem;
use super::auth::{Known, Part, Who};
use super::{page, wait};
use view::{Eyes, JobView};

/// The view of a party: the requester sees more than the worker.
fn eyes(job: &Job, agent: AgentId) -> Eyes {
    if job.asked_by(agent) { Eyes::Requester } else { Eyes::Worker }
}

/// `GET /v1/jobs/{id}`: everything for its two parties, who may wait for its end; everything but
/// the content for the operator.
pub async fn show(
    State(floor): State<Floor>,
    known: Known,
    Part(id): Part,
    RawQuery(raw): RawQuery,
) -> Answered {
    let at_most = wait::wanted(&page::query(raw.as_deref(), &["wait"])?)?;
    let view = match known.proven.who {
        Who::Operator => {
            let job = floor.engine.find_job(&JobRef::Uuid(uuid(&id)?)).await?;
            JobView::outline(&*job.ok_or_else(Problem::not_found)?, Eyes::Operator)
        }
        Who::Agent(agent) => {
            let job = match offers::invited(&floor, agent, &id).await? {
                // An agent that was only asked for an offer cannot wait for the end.
                Some(job) => job,
                None => {
                    let job = party(&floor, agent, &id).await?;
                    let job = ended(&floor, agent, job, at_most).await?;
                    // While it waited, the job may have been assigned to another worker.
                    match job.asked_by(agent) || job.worker() == Some(agent) {
                        true => job,
                        false => return Err(Problem::not_found()),
                    }
                }
            };
            JobView::whole(&job, eyes(&job, agent))
        }
    };
    Ok(ok(&view))
}

/// The job once it has ended, or as it is after the timeout.
async fn ended(
    floor: &Floor,
    party: AgentId,
    job: Arc<Job>,
    at_most: Duration,
) -> Result<Arc<Job>, Problem> {
    if job.state.is_final() || at_most.is_zero() {
        return Ok(job);
    }
    let is_over = || floor.engine.look(|world| is_over(world.job(job.id))).then_some(());
    wait::until(floor, party, at_most, is_over).await?;
    now(floor, job.id).await
}

/// A job that is not in memory any more has ended.
fn is_over(job: Option<&Arc<Job>>) -> bool {
    job.is_none_or(|job| job.state.is_final())
}

/// The current job.
async fn now(floor: &Floor, id: JobId) -> Result<Arc<Job>, Problem> {
    floor.engine.job(id).await?.ok_or_else(Problem::not_found)
}

/// The job of a party, by the hub's id or by the party's own; other callers get a 404.
async fn party(floor: &Floor, by: AgentId, id: &str) -> Result<Arc<Job>, Problem> {
    fidelity::find(floor, by, id).await?.ok_or_else(Problem::not_found)
}

/// Parses a job's public id from a path.
pub fn uuid(text: &str) -> Result<Uuid, Problem> {
    let form = text.parse::<uuid::fmt::Hyphenated>().map(uuid::fmt::Hyphenated::into_uuid);
    form.map_err(|_| Problem::field("job", "the job id must be a UUID"))
}
