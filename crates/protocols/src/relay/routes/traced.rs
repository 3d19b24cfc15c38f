//! `GET /messages/{trace_id}`: the state of a message, for its sender and its receiver.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, State as Standing};
use rialto_core::world::World;
use uuid::fmt::Hyphenated;

use super::{Answered, done, failed, refuse};
use crate::adapter::Floor;
use crate::kit::object::Object;
use crate::relay::proof::{AsAgent, Named};
use crate::relay::refusals::Refused;
use crate::relay::{Code, Failure, ID, state, wording};

pub async fn show(State(floor): State<Floor>, by: AsAgent, Named(trace): Named) -> Answered {
    let unknown = || refuse(&floor, Failure::new(Code::NotFound, "message not found"));
    let Some(notice) = floor.relay.traces.read_text(&trace) else {
        let job = job(&floor, by.id, &trace).await?.ok_or_else(unknown)?;
        let shown = floor.engine.look(|world| written(world, &job));
        return Ok(done(&floor, 200, |out| out.extend_from_slice(shown.as_bytes())));
    };
    let found = state::message(&floor, notice).await;
    let found = found.map_err(|failure| failed(&floor, failure))?;
    let message = found.filter(|message| message.concerns(by.id)).ok_or_else(unknown)?;
    let state = state::of(&floor, notice).await;
    let state = state.map_err(|failure| failed(&floor, failure))?;
    Ok(done(&floor, 200, |out| message.write(out, &floor, &trace, &state)))
}

/// A message that is work has the job's id as its trace id, for the job's two parties.
async fn job(floor: &Floor, reader: AgentId, trace: &str) -> Result<Option<Arc<Job>>, Refused> {
    let Ok(uuid) = trace.parse::<Hyphenated>() else { return Ok(None) };
    let found = floor.engine.find_job(&JobRef::Uuid(uuid.into_uuid())).await;
    let found = found.map_err(|failure| failed(floor, failure))?;
    Ok(found.filter(|job| job.asked_by(reader) || job.worker() == Some(reader)))
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
    let voices = wording::voices(world, job);
    Object::new()
        .id("trace_id", job.uuid)
        .text("sender_id", &voices.requester)
        .text("receiver_id", &voices.worker)
        .text("state", word)
        .time("timestamp", job.opened_at)
        .whole("attempts", 0)
        .maybe_raw("envelope", (job.origin == ID).then_some(job.meta.as_str()))
        .finish()
}
