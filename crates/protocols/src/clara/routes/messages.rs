//! The operations of the message unit.

use axum::extract::{RawQuery, State};
use axum::http::HeaderValue;

use super::{BodyBytes, HandlerResult, PathParam, json_response};
use crate::adapter::HubContext;
use crate::adapter::peer::Peer;
use crate::clara::failure::Failure;
use crate::clara::{ID, answers, intake, query};
use crate::kit::ans104::ItemId;
use rialto_core::alias::claim;

/// The header with the id of the job that an answer is about (B18).
const JOB_HEADER: &str = "rialto-job";

/// `POST /mu`: a signed item, or with a query the assignment of a known message.
pub async fn post_item(
    State(context): State<HubContext>,
    Peer(peer): Peer,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    if let Some(assign) = query::read_assign(raw.as_deref().unwrap_or_default())? {
        return assigned(&context, assign.message, assign.process).await;
    }
    let taken = intake::accept_item(&context, body, peer).await?;
    let mut answer = json_response(202, answers::message_accepted_body(taken.id));
    if let Some(value) = taken.job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        answer.headers_mut().insert(JOB_HEADER, value);
    }
    Ok(answer)
}

/// A known message can only be assigned to the process it was sent to.
async fn assigned(context: &HubContext, message: ItemId, process: ItemId) -> HandlerResult {
    context.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let known = context.engine.claim_target(claim::market_order(ID, &message.to_string())).await;
    match known.map_err(|failure| intake::from_engine(&failure))? {
        Some(_) => Ok(json_response(202, answers::assignment_accepted_body(message))),
        None => Err(Failure::unknown_message()),
    }
}

/// `POST` and `DELETE /mu/monitor/{process}`: no effect, because every process here runs by itself.
pub async fn monitor(
    State(context): State<HubContext>,
    PathParam(process): PathParam,
) -> HandlerResult {
    let known = ItemId::read(&process).and_then(|process| context.clara.processes.dialect(process));
    known.ok_or_else(Failure::unknown_process)?;
    Ok(json_response(200, answers::monitor_body()))
}

/// `GET /clara`: the market's process id and the paths of its units.
pub async fn overview(State(context): State<HubContext>) -> HandlerResult {
    Ok(json_response(200, answers::overview_body(context.clara.processes.spec)))
}
