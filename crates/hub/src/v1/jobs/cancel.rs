//! Cancels jobs.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::answer::Answer;
use rialto_core::command::{Canceller, Command, JobRef};
use rialto_core::job::Job;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::request::{BodyBytes, PathParam};
use rialto_protocols::kit::fields::Malformed;
use rialto_protocols::kit::ijson;

use super::result::TEXT_MAX;
use super::result::parse_text;
use super::view::{JobView, Viewer};
use crate::v1::auth::AgentCaller;
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};
use crate::v1::strict_fields;

rialto_protocols::request_members! {
    /// The body of `POST /v1/jobs/{id}/cancel`.
    #[schemars(deny_unknown_fields)]
    CancelBody {
        /// Why, for the worker.
        #[schemars(length(max = TEXT_MAX))]
        reason: Option<String>,
    }
}

/// `POST /v1/jobs/{id}/cancel`: by the requester, before a worker has started.
pub async fn cancel_job(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(id): PathParam,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let reason = match body.is_empty() {
        true => None,
        false => parse_reason(&body)?,
    };
    let job = cancel(&context, &by, &id, reason).await?;
    Ok(ok_response(&JobView::full(&job, Viewer::Requester)))
}

/// Cancels a job of the requester, by the hub's id or by the requester's own.
pub async fn cancel(
    context: &HubContext,
    by: &AgentCaller,
    id: &str,
    reason: Option<String>,
) -> Result<Arc<Job>, Problem> {
    let job = super::find_party_job(context, by.id, id).await?;
    if !job.is_requested_by(by.id) {
        return Err(Problem::not_found());
    }
    let by_whom = Canceller::Agent(by.id);
    let order = Command::Cancel { job: JobRef::Id(job.id), by: by_whom, reason };
    match context.engine.run_once(order, by.once).await?.answer {
        Answer::Job { job, .. } => Ok(job),
        _ => Err(Problem::not_found()),
    }
}

fn parse_reason(body: &[u8]) -> Result<Option<String>, Malformed> {
    let json = ijson::read(body)?;
    let f = strict_fields::parse_fields(&json, CancelBody::MEMBERS)?;
    parse_text(&f, "reason")
}
