//! `GET /requests/{id}`: the state of a request, for its parties.

use std::sync::Arc;

use axum::extract::{RawQuery, State};
use rialto_core::alias::{ClaimTarget, claim};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Requester, request};
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::{json_response, query};
use crate::adapter::request::PathParam;
use crate::agora::AgoraContext;
use crate::agora::ID;
use crate::agora::auth::InboxReader;
use crate::agora::errors::{self, ErrorResponse, HandlerResult};
use crate::agora::translate::{foreign_id, request_state};
use crate::agora::wire::error::{Code, Failure};
use crate::agora::wire::responses::{OfferView, RequestView};
use crate::kit::ed25519::PublicKey;
use crate::kit::rfc3339;

/// The most requests shown for one id.
const LISTED_MAX: usize = 16;

/// Shows a request. If several requesters used the id, `?requester=` selects one. Without it, all
/// unfinished ones are shown, oldest first.
pub async fn show(
    State(context): State<AgoraContext>,
    InboxReader(token): InboxReader,
    PathParam(id): PathParam,
    RawQuery(raw): RawQuery,
) -> HandlerResult {
    let failed = |failure| ErrorResponse::new(&context, errors::from_engine(&failure));
    let query = query(&context, raw.as_deref())?;
    let requester = query.text("requester").map(PublicKey::parse).transpose();
    let requester = requester.map_err(|bad| {
        ErrorResponse::new(&context, Failure::bad_request(format!("requester {bad}")))
    })?;
    let only = match requester {
        Some(_) => None,
        None => find_request(&context, token.agent, &id).await.map_err(failed)?,
    };
    let is_shared = only.is_none();
    let jobs = match (only, requester) {
        (Some(job), _) => vec![job],
        (None, Some(key)) => asked_by(&context, token.agent, key, &id).await.map_err(failed)?,
        (None, None) => context.engine.with_world(|world| all_live(world, token.agent, &id)),
    };
    let views = context.engine.with_world(|world| {
        let shown = jobs.iter().map(|job| request_view(world, job, token.agent, is_shared));
        shown.collect::<Vec<_>>()
    });
    let mut views = views.into_iter();
    let unknown = || {
        let text = "no request with this id, or you are not a party of it";
        let hint = "if several requesters used this id, add ?requester=did:key:… to select one";
        ErrorResponse::new(&context, Failure::new(Code::NotFound, text).with_hint(hint))
    };
    let mut first = views.next().ok_or_else(unknown)?;
    first.others = views.collect();
    Ok(json_response(200, serde_json::to_string(&first).unwrap_or_default()))
}

/// The request with that id from a given requester to the reader.
async fn asked_by(
    context: &AgoraContext,
    reader: AgentId,
    requester: PublicKey,
    id: &str,
) -> Result<Vec<Arc<Job>>, rialto_engine::Failure> {
    let own = context.engine.with_world(|world| {
        let requester = world.agent_by_alias(ID, &requester.did())?;
        request::requester_job_name(world, requester, id)
    });
    let Some((origin, id)) = own else { return Ok(Vec::new()) };
    let job = context.engine.find_job(&JobRef::Foreign { origin, id }).await?;
    let concerns = |job: &Arc<Job>| job.is_requested_by(reader) || request::involves(job, reader);
    Ok(job.filter(concerns).into_iter().collect())
}

/// The unfinished requests with that id to the reader, oldest first.
fn all_live(world: &World, reader: AgentId, id: &str) -> Vec<Arc<Job>> {
    request::jobs_named(world, reader, id).take(LISTED_MAX).cloned().collect()
}

/// The request that an agent made, else one made to it, else a job from another protocol.
pub async fn find_request(
    context: &AgoraContext,
    agent: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, rialto_engine::Failure> {
    let engine = &context.engine;
    let own = engine.with_world(|world| request::requester_job_name(world, agent, id));
    if let Some((origin, id)) = own
        && let Some(job) = engine.find_job(&JobRef::Foreign { origin, id }).await?
    {
        return Ok(Some(job));
    }
    let name = claim::invited_job(agent, id);
    if let Some(ClaimTarget::Job(job)) = engine.claim_target(name).await? {
        return engine.load_job(job).await;
    }
    let Ok(uuid) = id.parse() else { return Ok(None) };
    let job = engine.find_job(&JobRef::Uuid(uuid)).await?;
    Ok(job.filter(|job| job.worker() == Some(agent)))
}

/// The request as one party may see it. An offer is visible only to its maker and the requester.
fn request_view(world: &World, job: &Job, reader: AgentId, is_shared: bool) -> RequestView {
    let did = |agent| world.alias_of(agent, ID).unwrap_or_default().to_owned();
    let shown = job
        .candidates
        .offers
        .iter()
        .filter(|offer| job.is_requested_by(reader) || offer.by == reader);
    let offers = shown.map(|offer| {
        let (name, eta) = (offer.name.clone(), offer.eta.unwrap_or(Millis(0)));
        OfferView::new(name, did(offer.by), offer.price, eta, offer.valid_until)
    });
    let alone =
        job.candidates.invited.first().filter(|_| job.candidates.invited.len() == 1).copied();
    RequestView {
        request_id: foreign_id(job).into_owned(),
        state: request_state(job.state),
        provider: job.worker().or(alone).map(did),
        offers: offers.collect(),
        deadline: Some(rfc3339::format_millis(job.request.deadline)),
        requester: is_shared.then(|| requester(world, job)).flatten(),
        others: Vec::new(),
    }
}

fn requester(world: &World, job: &Job) -> Option<String> {
    match job.request.requester {
        Requester::Agent(agent) => world.alias_of(agent, ID).map(str::to_owned),
        Requester::Guest(_) => None,
    }
}
