//! Accepts envelopes, and optionally waits for the answer.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::Response;
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, request};
use rialto_core::notice::{Notice, NoticeKind};

use super::{json_response, malformed, query};
use crate::adapter::inbox_stream::load_jobs;
use crate::adapter::open_job::set_job_header;
use crate::adapter::peer::Peer;
use crate::adapter::request::{BodyBytes, PathParam};
use crate::adapter::shutdown::Shutdown;
use crate::agora::AgoraContext;
use crate::agora::delivery::notice_envelope_among;
use crate::agora::envelope::{AcceptedEnvelope, EnvelopeSource, accept_envelope, request_id_of};
use crate::agora::errors::{ErrorResponse, HandlerResult};
use crate::agora::wire::envelope::{Envelope, MessageType, read_json};
use crate::agora::wire::error::{Code, Failure};
use crate::agora::wire::payload::Payload;
use crate::kit::ed25519::PublicKey;

/// The longest wait.
const WAIT_MS_MAX: i64 = 30_000;
/// How many notices a repeated request searches for its answer.
const LOOK_BACK: u64 = 256;
const PAGE: usize = 64;

/// `POST /envelopes` and `POST /agora`: any signed envelope.
pub async fn post_envelope(
    State(context): State<AgoraContext>,
    Peer(peer): Peer,
    stopping: Shutdown,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let way = EnvelopeSource { peer, ..EnvelopeSource::default() };
    answer(&context, raw.as_deref(), stopping, &body, way).await
}

/// `POST /agents/{id}`: an envelope for the agent that the path names.
pub async fn post_envelope_to_agent(
    State(context): State<AgoraContext>,
    PathParam(id): PathParam,
    Peer(peer): Peer,
    stopping: Shutdown,
    RawQuery(raw): RawQuery,
    BodyBytes(body): BodyBytes,
) -> HandlerResult {
    let unknown = |_| ErrorResponse::new(&context, agent_not_found());
    let to = PublicKey::parse(&id).map_err(unknown)?;
    let way = EnvelopeSource { path_agent: Some(to), peer, ..EnvelopeSource::default() };
    answer(&context, raw.as_deref(), stopping, &body, way).await
}

/// The error for a key that no agent has.
pub fn agent_not_found() -> Failure {
    Failure::new(Code::NotFound, "no agent has that key")
}

async fn answer(
    context: &AgoraContext,
    raw: Option<&str>,
    stopping: Shutdown,
    body: &[u8],
    way: EnvelopeSource,
) -> HandlerResult {
    let wait = query(context, raw)?.integer("wait", 0..=WAIT_MS_MAX);
    let wait = wait.map_err(|bad| malformed(context, bad))?.unwrap_or(0);
    let taken = accept_envelope(context, body, way).await;
    let taken = taken.map_err(|error| ErrorResponse::new(context, error))?;
    if wait == 0 || !taken.expects_answer {
        return Ok(shown(taken));
    }
    let wait = Duration::from_millis(wait.unsigned_abs());
    let heard = tokio::time::timeout(wait, heard(context, &taken, stopping)).await;
    match heard.ok().flatten() {
        Some(envelope) => {
            let job = taken.job;
            let mut answer = json_response(200, envelope);
            set_job_header(&mut answer, job);
            Ok(answer)
        }
        None => Ok(shown(taken)),
    }
}

fn shown(taken: AcceptedEnvelope) -> Response {
    let mut answer = json_response(taken.status, taken.text);
    set_job_header(&mut answer, taken.job);
    answer
}

/// The first envelope that answers, as it was signed. It also stays in the inbox.
async fn heard(
    context: &AgoraContext,
    taken: &AcceptedEnvelope,
    mut stopping: Shutdown,
) -> Option<String> {
    let request_id = taken.request_id.as_deref()?;
    let asks = taken.job.is_some();
    let job = own_job(context, taken.sender, request_id).await?;
    let bell = context.engine.subscribe_agent(taken.sender);
    let look_back = if taken.repeated { LOOK_BACK } else { 0 };
    let mut after = taken.inbox_head.saturating_sub(look_back);
    loop {
        let told = bell.notified();
        tokio::pin!(told);
        // From here on no notification is missed, so the state is checked after this.
        told.as_mut().enable();
        while let page = context.engine.load_notices(taken.sender, after, PAGE).await.ok()?
            && let Some(last) = page.last()
        {
            after = last.position;
            if let Some(found) = answering(context, page, request_id, &job, asks).await {
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
async fn own_job(context: &AgoraContext, by: AgentId, id: &str) -> Option<Arc<Job>> {
    let (origin, id) =
        context.engine.with_world(|world| request::requester_job_name(world, by, id))?;
    context.engine.find_job(&JobRef::Foreign { origin, id }).await.ok().flatten()
}

async fn answering(
    context: &AgoraContext,
    page: Vec<Notice>,
    request_id: &str,
    own: &Job,
    asks: bool,
) -> Option<String> {
    let page: Vec<_> = page.into_iter().map(Arc::new).collect();
    let jobs = load_jobs(&context.engine, &page).await.ok()?;
    page.iter().find_map(|notice| {
        // Another requester may use the same id for another request.
        let concerns = match &notice.news {
            NoticeKind::Message { from, .. } => {
                from.is_some_and(|from| request::involves(own, from))
            }
            news => news.job() == Some(own.id),
        };
        if !concerns {
            return None;
        }
        let outbound = notice_envelope_among(context, notice, &jobs)?;
        let json = read_json(outbound.envelope.as_bytes()).ok()?;
        let envelope = Envelope::read(&json).ok()?;
        let answers = match envelope.message_type {
            // A party that accepts has already received its offers.
            MessageType::Offer => asks,
            kind => matches!(kind, MessageType::Result | MessageType::Error),
        };
        let payload = Payload::read(&envelope).ok()?;
        let same = request_id_of(&envelope, &payload) == Some(request_id);
        (answers && same).then(|| outbound.envelope.to_string())
    })
}
