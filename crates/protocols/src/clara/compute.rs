//! The compute unit's side: what came of a message, and pages of all results.

use std::time::Duration;

use rialto_core::alias::{Target, claim};
use rialto_core::command::JobRef;
use rialto_core::id::PostingId;
use rialto_core::job::{Job, Selection, State};
use rialto_core::market::Posting;
use rialto_core::time::Timestamp;
use rialto_engine::Failure as EngineFailure;
use rialto_engine::store::{Key, Page, Row};
use tokio::time::Instant;

use super::fault::Fault;
use super::paging::{Cursor, Mark, Paging, Sort};
use super::{ID, result};
use crate::face::Floor;
use crate::kit::ijson::{self, Json, Kind};

/// How much longer than its window an auction is waited for (2.7).
const GRACE: Duration = Duration::from_secs(1);
/// How often it is looked whether an auction has closed.
const LOOK: Duration = Duration::from_millis(20);
/// Postings read at a time for a page of results.
const STEP: usize = 256;

/// What came of a message; `None` if there was none. An auction is waited for.
pub async fn result(floor: &Floor, id: &str) -> Result<Option<String>, EngineFailure> {
    let Some(posting) = posted(floor, claim::posted(ID, id)).await? else { return Ok(None) };
    let wanted = JobRef::Foreign { origin: ID, id: id.to_owned() };
    let job = floor.engine.find_job(&wanted).await?;
    let auction = job.filter(|job| matches!(job.selection, Selection::Auction { .. }));
    match auction {
        Some(job) => closed(floor, id, &job, posting).await.map(Some),
        None => Ok(Some(posting.text)),
    }
}

async fn posted(
    floor: &Floor,
    name: rialto_core::alias::Digest,
) -> Result<Option<Posting>, EngineFailure> {
    let Some(Target::Posting(id)) = floor.engine.claim(name).await? else { return Ok(None) };
    Ok(match floor.engine.row(Key::Posting(id)).await? {
        Some(Row::Posting(posting)) => Some(Posting::clone(&posting)),
        _ => None,
    })
}

/// The final result of an auction: the outcome first, then who was asked (2.7).
async fn closed(
    floor: &Floor,
    id: &str,
    job: &Job,
    asked: Posting,
) -> Result<String, EngineFailure> {
    let window = floor.clara.auction_window.0.unsigned_abs();
    let until = Instant::now() + Duration::from_millis(window) + GRACE;
    loop {
        if let Some(outcome) = posted(floor, claim::closed(ID, id)).await? {
            let now = floor.engine.job(job.id).await?;
            let won = now.is_none_or(|now| now.epoch > 0 || !now.state.is_final());
            return Ok(match won {
                true => joined(&outcome.text, &asked.text),
                false => result::error(&Fault::NoOffers(id.to_owned()).to_string()),
            });
        }
        let open = floor
            .engine
            .look(|world| world.job(job.id).is_some_and(|job| job.state == State::Negotiating));
        if Instant::now() >= until || !open && Instant::now() + GRACE >= until {
            return Ok(asked.text);
        }
        tokio::time::sleep(LOOK).await;
    }
}

/// One result with the messages of two.
fn joined(first: &str, second: &str) -> String {
    let texts = [first, second];
    let read: Vec<_> = texts.iter().map(|text| ijson::read(text.as_bytes()).ok()).collect();
    let messages: Vec<&str> = read.iter().flatten().flat_map(messages).collect();
    result::sent(&messages)
}

fn messages<'j>(result: &'j Json<'_>) -> Vec<&'j str> {
    match result.get("Messages").map(Json::kind) {
        Some(Kind::List(items)) => items.iter().map(Json::raw).collect(),
        _ => Vec::new(),
    }
}

/// A page of results.
pub async fn results(floor: &Floor, paging: &Paging) -> Result<String, EngineFailure> {
    let newest_first = paging.sort == Sort::Descending;
    let place = |mark: Option<Mark>| match mark {
        Some(Mark::Cursor(cursor)) => Some(cursor.place),
        _ => None,
    };
    let mut after = PostingId(place(paging.from).unwrap_or(0));
    let end = place(paging.to).map_or(u64::MAX >> 1, |place| place.saturating_add(1));
    let mut before = PostingId(end);
    let mut found: Vec<(String, Cursor)> = Vec::new();
    loop {
        let page = Page::Postings { after, before, newest_first, limit: STEP };
        let rows = floor.engine.page(page).await?;
        let whole = rows.len() == STEP;
        for row in rows {
            let Row::Posting(posting) = row else { continue };
            match newest_first {
                true => before = posting.id,
                false => after = posting.id,
            }
            let cursor = Cursor { at: Timestamp(posting.at.0), place: posting.id.0 };
            if posting.shown && paging.contains(cursor) {
                found.push((posting.text.clone(), cursor));
            }
            if found.len() > paging.limit {
                found.truncate(paging.limit);
                return Ok(result::page(&found, true));
            }
        }
        if !whole {
            return Ok(result::page(&found, false));
        }
    }
}
