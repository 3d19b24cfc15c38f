//! The operations of the message unit.

use axum::extract::{RawQuery, State};
use axum::http::HeaderValue;

use super::{Answered, Named, Sent, text};
use crate::clara::failure::Failure;
use crate::clara::{ID, answers, intake, query};
use crate::adapter::Floor;
use crate::adapter::peer::Peer;
use crate::kit::ans104::Id;
use rialto_core::alias::claim;

/// The header with the id of the job that an answer is about (B18).
const JOB_HEADER: &str = "rialto-job";

/// `POST /mu`: a signed item, or with a query the assignment of a known message.
pub async fn post(
    State(floor): State<Floor>,
    Peer(peer): Peer,
    RawQuery(raw): RawQuery,
    Sent(body): Sent,
) -> Answered {
    if let Some(assign) = query::assign(raw.as_deref().unwrap_or_default())? {
        return assigned(&floor, assign.message, assign.process).await;
    }
    let taken = intake::take(&floor, body, peer).await?;
    let mut answer = text(202, answers::taken(taken.id));
    if let Some(value) = taken.job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        answer.headers_mut().insert(JOB_HEADER, value);
    }
    Ok(answer)
}

/// A known message can only be assigned to the process it was sent to.
async fn assigned(floor: &Floor, message: Id, process: Id) -> Answered {
    floor.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let known = floor.engine.claim(claim::posted(ID, &message.to_string())).await;
    match known.map_err(|failure| intake::failed(&failure))? {
        Some(_) => Ok(text(202, answers::assigned(message))),
        None => Err(Failure::unknown_message()),
    }
}

/// `POST` and `DELETE /mu/monitor/{process}`: no effect, because every process here runs by itself.
pub async fn monitor(State(floor): State<Floor>, Named(process): Named) -> Answered {
    let known = Id::read(&process).and_then(|process| floor.clara.processes.dialect(process));
    known.ok_or_else(Failure::unknown_process)?;
    Ok(text(200, answers::monitored()))
}

/// `GET /clara`: the market's process id and the paths of its units.
pub async fn overview(State(floor): State<Floor>) -> Answered {
    Ok(text(200, answers::overview(floor.clara.processes.spec)))
}
