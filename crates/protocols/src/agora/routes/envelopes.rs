//! Accepts envelopes, and optionally waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, request};
use rialto_core::notice::{News, Notice};

use super::{Answered, Named, Refused, Sent, malformed, query};
use crate::agora::codes::Code;
use crate::agora::envelope::{self, Envelope};
use crate::agora::failure::Failure;
use crate::agora::intake::{self, Taken, Way};
use crate::agora::payload::Payload;
use crate::agora::{Kind, letter, refusals, say};
use crate::adapter::inbox_stream::jobs_of;
use crate::adapter::peer::Peer;
use crate::adapter::shutdown::Stopping;
use crate::adapter::{Answering, Floor, Head, Reading};
use crate::kit::ed25519::PublicKey;

/// The longest wait.
const WAIT_MS_MAX: i64 = 30_000;
/// How many notices a repeated request searches for its answer.
const LOOK_BACK: u64 = 256;
const PAGE: usize = 64;

/// `POST /envelopes` and `POST /agora`: any signed envelope.
pub async fn post(
    State(floor): State<Floor>,
    Peer(peer): Peer,
    stopping: Stopping,
    RawQuery(raw): RawQuery,
    Sent(body): Sent,
) -> Answered {
    let way = Way { peer, ..Way::default() };
    answer(&floor, raw.as_deref(), stopping, &body, way).await
}

/// `POST /agents/{id}`: an envelope for the agent that the path names.
pub async fn post_to(
    State(floor): State<Floor>,
    Named(id): Named,
    Peer(peer): Peer,
    stopping: Stopping,
    RawQuery(raw): RawQuery,
    Sent(body): Sent,
) -> Answered {
    let unknown = |_| Refused::new(&floor, no_such_agent());
    let to = PublicKey::parse(&id).map_err(unknown)?;
    let way = Way { to: Some(to), peer, ..Way::default() };
    answer(&floor, raw.as_deref(), stopping, &body, way).await
}

/// The error for a key that no agent has.
pub fn no_such_agent() -> Failure {
    Failure::new(Code::NotFound, "no agent has that key")
}

/// The fast path for envelopes without a wait.
pub fn express(floor: Floor, head: Head, body: Reading) -> Answering {
    Box::pin(async move {
        let way = Way { peer: head.peer, ..Way::default() };
        let taken = match body.await {
            Ok(body) => intake::take(&floor, &body, way).await,
            Err(trouble) => Err(refusals::trouble(&trouble).into()),
        };
        match taken {
            Ok(taken) => shown(taken),
            Err(untaken) => Refused::untaken(&floor, untaken).into_response(),
        }
    })
}

async fn answer(
    floor: &Floor,
    raw: Option<&str>,
    stopping: Stopping,
    body: &[u8],
    way: Way,
) -> Answered {
    let wait = query(floor, raw)?.integer("wait", 0..=WAIT_MS_MAX);
    let wait = wait.map_err(|bad| malformed(floor, bad))?.unwrap_or(0);
    let taken = intake::take(floor, body, way).await;
    let taken = taken.map_err(|untaken| Refused::untaken(floor, untaken))?;
    if wait == 0 || !taken.awaits {
        return Ok(shown(taken));
    }
    let wait = Duration::from_millis(wait.unsigned_abs());
    let heard = tokio::time::timeout(wait, heard(floor, &taken, stopping)).await;
    match heard.ok().flatten() {
        Some(envelope) => {
            let job = taken.job;
            let mut answer = say::json(200, envelope);
            mark(&mut answer, job);
            Ok(answer)
        }
        None => Ok(shown(taken)),
    }
}

fn shown(taken: Taken) -> Response {
    let mut answer = say::json(taken.status, taken.text);
    mark(&mut answer, taken.job);
    answer
}

/// Adds the hub's id of the opened job (B18).
fn mark(answer: &mut Response, job: Option<uuid::Uuid>) {
    if let Some(value) = job.and_then(|job| HeaderValue::from_str(&job.to_string()).ok()) {
        answer.headers_mut().insert(say::JOB_HEADER, value);
    }
}

/// The first envelope that answers, as it was signed. It also stays in the inbox.
async fn heard(floor: &Floor, taken: &Taken, mut stopping: Stopping) -> Option<String> {
    let request_id = taken.request_id.as_deref()?;
    let asks = taken.job.is_some();
    let job = own_job(floor, taken.by, request_id).await?;
    let bell = floor.engine.news_of(taken.by);
    let mut after = match taken.repeated {
        true => taken.head.saturating_sub(LOOK_BACK),
        false => taken.head,
    };
    loop {
        let told = bell.notified();
        tokio::pin!(told);
        // From here on no notification is missed, so the state is checked after this.
        told.as_mut().enable();
        while let page = floor.engine.notices_of(taken.by, after, PAGE).await.ok()?
            && let Some(last) = page.last()
        {
            after = last.position;
            if let Some(found) = answering(floor, page, request_id, &job, asks).await {
                return Some(found);
            }
        }
        tokio::select! {
            () = told => {}
            () = stopping.wait() => return None,
        }
    }
}

/// The request with the id that its requester gave it.
async fn own_job(floor: &Floor, by: AgentId, id: &str) -> Option<Arc<Job>> {
    let (origin, id) = floor.engine.look(|world| request::own_name(world, by, id))?;
    floor.engine.find_job(&JobRef::Foreign { origin, id }).await.ok().flatten()
}

async fn answering(
    floor: &Floor,
    page: Vec<Notice>,
    request_id: &str,
    own: &Job,
    asks: bool,
) -> Option<String> {
    let page: Vec<_> = page.into_iter().map(Arc::new).collect();
    let jobs = jobs_of(&floor.engine, &page).await.ok()?;
    page.iter().find_map(|notice| {
        // Another requester may use the same id for another request.
        let concerns = match &notice.news {
            News::Message { from, .. } => from.is_some_and(|from| request::concerns(own, from)),
            news => news.job() == Some(own.id),
        };
        if !concerns {
            return None;
        }
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let letter = letter::of(floor, notice, job.map(|job| &**job))?;
        let json = envelope::parse(letter.envelope.as_bytes()).ok()?;
        let envelope = Envelope::read(&json).ok()?;
        let answers = match envelope.kind {
            // A party that accepts has already received its offers.
            Kind::Offer => asks,
            kind => matches!(kind, Kind::Result | Kind::Error),
        };
        let payload = Payload::read(&envelope).ok()?;
        let same = intake::request_id(&envelope, &payload) == Some(request_id);
        (answers && same).then(|| letter.envelope.to_string())
    })
}
