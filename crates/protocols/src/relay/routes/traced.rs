//! `GET /messages/{trace_id}`: the state of a message, for its sender and its receiver.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, State as Standing};
use rialto_core::world::World;
use uuid::fmt::Hyphenated;

use super::{HandlerResult, engine_error, error_response, success};
use crate::adapter::HubContext;
use crate::kit::object::ObjectWriter;
use crate::relay::proof::{AgentCaller, PathParam};
use crate::relay::refusals::ErrorResponse;
use crate::relay::{Code, Failure, ID, state, wording};

pub async fn show(
    State(context): State<HubContext>,
    by: AgentCaller,
    PathParam(trace): PathParam,
) -> HandlerResult {
    let unknown = || error_response(&context, Failure::new(Code::NotFound, "message not found"));
    let Some(notice) = context.relay.trace_ids.read_text(&trace) else {
        let job = job(&context, by.id, &trace).await?.ok_or_else(unknown)?;
        let shown = context.engine.with_world(|world| written(world, &job));
        return Ok(success(&context, 200, |out| out.extend_from_slice(shown.as_bytes())));
    };
    let found = state::load_message(&context, notice).await;
    let found = found.map_err(|failure| engine_error(&context, failure))?;
    let message = found.filter(|message| message.is_visible_to(by.id)).ok_or_else(unknown)?;
    let state = state::message_state(&context, notice).await;
    let state = state.map_err(|failure| engine_error(&context, failure))?;
    Ok(success(&context, 200, |out| message.write(out, &context, &trace, &state)))
}

/// A message that is work has the job's id as its trace id, for the job's two parties.
async fn job(
    context: &HubContext,
    reader: AgentId,
    trace: &str,
) -> Result<Option<Arc<Job>>, ErrorResponse> {
    let Ok(uuid) = trace.parse::<Hyphenated>() else { return Ok(None) };
    let found = context.engine.find_job(&JobRef::Uuid(uuid.into_uuid())).await;
    let found = found.map_err(|failure| engine_error(context, failure))?;
    Ok(found.filter(|job| job.is_requested_by(reader) || job.worker() == Some(reader)))
}

fn written(world: &World, job: &Job) -> String {
    let word = match job.state {
        Standing::Open | Standing::Queued | Standing::Negotiating | Standing::Deferred { .. } => {
            "queued"
        }
        Standing::Assigned | Standing::Running | Standing::Completed => "delivered",
        Standing::Failed | Standing::Cancelled | Standing::Withdrawn => "failed",
        Standing::Expired => "expired",
    };
    let voices = wording::party_addresses(world, job);
    ObjectWriter::new()
        .uuid("trace_id", job.uuid)
        .text("sender_id", &voices.requester)
        .text("receiver_id", &voices.worker)
        .text("state", word)
        .time("timestamp", job.opened_at)
        .integer("attempts", 0)
        .maybe_raw("envelope", (job.origin == ID).then_some(job.meta.as_str()))
        .finish()
}
