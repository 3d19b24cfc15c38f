//! `GET /v1/jobs/{id}/trace`: a job as each side saw it, and how every field was translated (B11,
//! B18).

use axum::extract::State;
use rialto_core::command::JobRef;
use rialto_protocols::adapter::HubContext;
use rialto_protocols::adapter::fidelity::{self, Viewer};
use rialto_protocols::adapter::request::PathParam;

use crate::v1::auth::{AuthenticatedCaller, ReadOnlyCaller};
use crate::v1::problem::Problem;
use crate::v1::response::{HandlerResult, ok_response};

/// The path of traces. They also accept read-only credentials.
pub const PATH: &str = "/v1/jobs/{id}/trace";

/// Shows the trace, by the hub's id of the job or by the caller's own id.
pub async fn show_trace(
    State(context): State<HubContext>,
    ReadOnlyCaller(who): ReadOnlyCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let (job, eyes) = match who {
        AuthenticatedCaller::Agent(agent) => {
            let job = fidelity::find_job(&context, agent, &id).await?;
            let job = job.ok_or_else(Problem::not_found)?;
            let eyes = if job.is_requested_by(agent) { Viewer::Requester } else { Viewer::Worker };
            (job, eyes)
        }
        // Two requesters may use the same id, so an operator must use the hub's id.
        AuthenticatedCaller::Operator => {
            let wanted = JobRef::Uuid(id.parse().map_err(|_| Problem::not_found())?);
            let job = context.engine.find_job(&wanted).await?;
            (job.ok_or_else(Problem::not_found)?, Viewer::Operator)
        }
    };
    Ok(ok_response(&fidelity::trace(&context, &job, eyes).await?))
}
