//! The operations of the compute unit.

use axum::extract::{RawQuery, State};

use super::{BodyBytes, HandlerResult, PathParam, json_response};
use crate::adapter::{HubContext, RowsRead};
use crate::clara::failure::Failure;
use crate::clara::paging::Paging;
use crate::clara::{compute, intake, query};
use crate::kit::ans104::ItemId;

/// `GET /cu/result/{id}?process-id=`.
pub async fn result(
    State(context): State<HubContext>,
    PathParam(id): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let process = query::read_process(raw.as_deref().unwrap_or_default())?;
    context.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let found = compute::message_result(&context, &id).await;
    let found = found.map_err(|failure| intake::from_engine(&failure))?;
    found.map(|found| json_response(200, found)).ok_or_else(Failure::unknown_message)
}

/// `GET /cu/results/{process}`.
pub async fn results(
    State(context): State<HubContext>,
    PathParam(process): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let known = ItemId::read(&process).and_then(|process| context.clara.processes.dialect(process));
    known.ok_or_else(Failure::unknown_process)?;
    let paging = Paging::read(raw.as_deref().unwrap_or_default())?;
    let page = compute::results_page(&context, &paging).await;
    let (page, looked_at) = page.map_err(|failure| intake::from_engine(&failure))?;
    let mut answer = json_response(200, page);
    answer.extensions_mut().insert(RowsRead(looked_at));
    Ok(answer)
}

/// `POST /cu/dry-run?process-id=`.
pub async fn dry_run(
    State(context): State<HubContext>,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let raw = raw.unwrap_or_default();
    Ok(json_response(200, intake::evaluate_dry_run(&context, &raw, &body).await?))
}
