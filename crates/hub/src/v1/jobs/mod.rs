//! Jobs, for their requester and their worker.

pub mod cancel;
pub mod list;
pub mod offers;
pub mod open;
pub mod progress;
pub mod questions;
pub mod result;
pub mod trace;
pub mod view;

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::Job;
use rialto_protocols::adapter::request::PathParam;
use rialto_protocols::adapter::{HubContext, fidelity};
use uuid::Uuid;

use super::auth::{AuthenticatedCaller, KeyHolder};
use super::problem::Problem;
use super::response::{HandlerResult, ok_response};
use super::{page, wait};
use crate::v1::params::WaitSeconds;
use view::{JobView, Viewer};

rialto_protocols::request_members! {
    /// How long to wait for the end of a job.
    WaitQuery {
        wait: Option<WaitSeconds>,
    }
}

/// The view of a party: the requester sees more than the worker.
pub fn viewer_of(job: &Job, agent: AgentId) -> Viewer {
    if job.is_requested_by(agent) { Viewer::Requester } else { Viewer::Worker }
}

/// `GET /v1/jobs/{id}`: everything for its two parties, who may wait for its end; everything but
/// the content for the operator.
pub async fn show_job(
    State(context): State<HubContext>,
    known: KeyHolder,
    PathParam(id): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let at_most = wait::parse_wait(&page::parse_query(raw.as_deref(), WaitQuery::MEMBERS)?)?;
    let view = match known.key.caller {
        AuthenticatedCaller::Operator => {
            let job = context.engine.find_job(&JobRef::Uuid(parse_job_id(&id)?)).await?;
            JobView::summary(&*job.ok_or_else(Problem::not_found)?, Viewer::Operator)
        }
        AuthenticatedCaller::Agent(agent) => {
            let job = match offers::find_open_invitation(&context, agent, &id).await? {
                // An agent that was only asked for an offer cannot wait for the end.
                Some(job) => job,
                None => {
                    let job = find_party_job(&context, agent, &id).await?;
                    let job = wait::wait_until_ended(&context, agent, job, at_most).await?;
                    // While it waited, the job may have been assigned to another worker.
                    if !job.is_requested_by(agent) && job.worker() != Some(agent) {
                        return Err(Problem::not_found());
                    }
                    job
                }
            };
            let parts = progress::load_parts(&context, &job).await?;
            JobView::full(&job, viewer_of(&job, agent)).with_parts(parts)
        }
    };
    Ok(ok_response(&view))
}

/// The job of a party, by the hub's id or by the party's own; other callers get a 404.
pub async fn find_party_job(
    context: &HubContext,
    by: AgentId,
    id: &str,
) -> Result<Arc<Job>, Problem> {
    fidelity::find_job(context, by, id).await?.ok_or_else(Problem::not_found)
}

/// Parses a job's public id from a path.
pub fn parse_job_id(text: &str) -> Result<Uuid, Problem> {
    let form = text.parse::<uuid::fmt::Hyphenated>().map(uuid::fmt::Hyphenated::into_uuid);
    form.map_err(|_| Problem::invalid_field("job", "the job id must be a UUID"))
}
