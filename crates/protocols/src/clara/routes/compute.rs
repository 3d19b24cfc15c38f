//! The operations of the compute unit.

use axum::extract::{RawQuery, State};

use super::{Answered, Named, Sent, text};
use crate::clara::failure::Failure;
use crate::clara::paging::Paging;
use crate::clara::{compute, intake, query};
use crate::adapter::{Floor, RowsRead};
use crate::kit::ans104::Id;

/// `GET /cu/result/{id}?process-id=`.
pub async fn result(
    State(floor): State<Floor>,
    Named(id): Named,
    RawQuery(raw): RawQuery,
) -> Answered {
    let process = query::process(raw.as_deref().unwrap_or_default())?;
    floor.clara.processes.dialect(process).ok_or_else(Failure::unknown_process)?;
    let found = compute::result(&floor, &id).await;
    let found = found.map_err(|failure| intake::failed(&failure))?;
    found.map(|found| text(200, found)).ok_or_else(Failure::unknown_message)
}

/// `GET /cu/results/{process}`.
pub async fn results(
    State(floor): State<Floor>,
    Named(process): Named,
    RawQuery(raw): RawQuery,
) -> Answered {
    let known = Id::read(&process).and_then(|process| floor.clara.processes.dialect(process));
    known.ok_or_else(Failure::unknown_process)?;
    let paging = Paging::read(raw.as_deref().unwrap_or_default())?;
    let page = compute::results(&floor, &paging).await;
    let (page, looked_at) = page.map_err(|failure| intake::failed(&failure))?;
    let mut answer = text(200, page);
    answer.extensions_mut().insert(RowsRead(looked_at));
    Ok(answer)
}

/// `POST /cu/dry-run?process-id=`.
pub async fn dry_run(
    State(floor): State<Floor>,
    RawQuery(raw): RawQuery,
    Sent(body): Sent,
) -> Answered {
    let raw = raw.unwrap_or_default();
    Ok(text(200, intake::dry_run(&floor, &raw, &body).await?))
}
