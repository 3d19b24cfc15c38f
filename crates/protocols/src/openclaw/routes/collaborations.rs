//! Shows one collaboration to its two parties.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::{ClaimTarget, claim};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, State as JobState};
use rialto_core::world::World;
use uuid::Uuid;

use super::about;
use crate::adapter::caller::Caller;
use crate::adapter::{HubContext, shown_jobs};
use crate::kit::raw_json;
use crate::openclaw::collaboration::{CollaborationSummary, View};
use crate::openclaw::common::CommonMembers;
use crate::openclaw::failure::Failure;
use crate::openclaw::proof::{KnownCaller, PathParam};
use crate::openclaw::say::{self, HandlerResult};
use crate::openclaw::{ID, refusals, view};

/// `GET /collaborations/{id}`.
pub async fn show(
    State(context): State<HubContext>,
    known: KnownCaller,
    PathParam(id): PathParam,
) -> HandlerResult {
    let refuse = |failure| about(&context, failure, None);
    let unknown = || refuse(Failure::not_found("collaboration"));
    let own = match known.0.caller {
        Caller::Agent(agent) => Some(agent),
        // Only the two parties may read input and output (R91).
        Caller::Operator => return Err(unknown()),
        Caller::Anonymous | Caller::FormerAgent(_) => None,
    };
    let job = find_collaboration(&context, own, id.ok_or_else(unknown)?).await.map_err(refuse)?;
    let job = job.filter(|job| own.is_some() || is_open(&context, job)).ok_or_else(unknown)?;
    if let Some(agent) = own {
        shown_jobs::mark_jobs_shown(&context, agent, [&job]).await;
    }
    let CollaborationSummary { collaboration_id, state, request, response, result } =
        summarize(&context, &job);
    let common = CommonMembers {
        correlation_id: view::collaboration_ids(&job).correlation_id,
        timestamp: context.engine.now(),
    };
    let shown = View::new(common, collaboration_id, state, request, response, result);
    Ok(say::json_response(200, &shown))
}

/// Whether the collaboration can be read without a key, on an open hub.
fn is_open(context: &HubContext, job: &Job) -> bool {
    let home = |world: &World, agent: AgentId| world.agent(agent).map(|agent| agent.home);
    let ours =
        |world: &World| job.intended_worker().is_none_or(|agent| home(world, agent) == Some(ID));
    job.origin == ID && context.engine.with_world(ours)
}

/// A collaboration as its parties see it.
pub fn summarize(context: &HubContext, job: &Job) -> CollaborationSummary {
    let at = job.accepted_at.or(job.ended_at).unwrap_or(job.opened_at);
    let response = view::response(context, job, at).map(|response| response.write());
    let accepted = job.accepted_at.is_some() || job.ended_at.is_some();
    CollaborationSummary {
        collaboration_id: accepted
            .then(|| view::collaboration_ids(job).collaboration_id.to_string()),
        state: view::collaboration_state(job),
        request: raw_json::verbatim(&view::request(context, job)),
        response: response.as_deref().map(raw_json::verbatim),
        result: view::result(context, job).as_deref().map(raw_json::verbatim),
    }
}

/// A collaboration by its own id or its request's id. With `own`, only those of that agent.
pub async fn find_collaboration(
    context: &HubContext,
    own: Option<AgentId>,
    id: Uuid,
) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| refusals::from_engine(&failure);
    let party = |job: &Arc<Job>| {
        own.is_none_or(|own| job.is_requested_by(own) || view::is_responder(job, own))
    };
    let by_id = context.engine.find_job(&JobRef::Uuid(id)).await.map_err(failed)?;
    if let Some(job) = by_id.filter(party) {
        return Ok(Some(job));
    }
    let text = id.to_string();
    let named = |job: &&Arc<Job>| job.origin == ID && request_of(&job.foreign_id) == Some(&text);
    let Some(own) = own else {
        // For an operator, or any caller on an open hub. Two requesters may use the same request
        // id, which is then ambiguous.
        let live = context.engine.with_world(|world| {
            let mut live = world.live_jobs().filter(named);
            live.next().filter(|_| live.next().is_none()).cloned()
        });
        return match live {
            Some(job) => Ok(Some(job)),
            None => by_request(context, &text).await,
        };
    };
    let live = context.engine.with_world(|world| {
        let asked = world.jobs_requested_by(own).filter(named).last().cloned();
        let mut work = world.assigned_jobs(own).chain(world.deferred_jobs_for(own));
        asked.or_else(|| work.find(named).cloned())
    });
    if live.is_some() {
        return Ok(live);
    }
    if let Some(job) = by_request(context, &text).await?.filter(party) {
        return Ok(Some(job));
    }
    // The requester's own name for the job still finds it when another requester uses the same id,
    // and for requests from before the id index existed.
    let name = context
        .engine
        .with_world(|world| world.alias_of(own, ID).map(|name| format!("{name}/{id}")));
    let Some(name) = name else { return Ok(None) };
    let wanted = JobRef::Foreign { origin: ID, id: name };
    let found = context.engine.find_job(&wanted).await.map_err(failed)?;
    Ok(found.filter(|job| job.is_requested_by(own)))
}

/// The job that a request id leads to, including ended jobs.
async fn by_request(context: &HubContext, id: &str) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| refusals::from_engine(&failure);
    let found = context.engine.claim_target(claim::request(ID, id)).await.map_err(failed)?;
    let Some(ClaimTarget::Job(job)) = found else { return Ok(None) };
    let job = context.engine.load_job(job).await.map_err(failed)?;
    Ok(job.filter(|job| job.state != JobState::Withdrawn))
}

/// The request id inside the requester's name for the job.
fn request_of(name: &str) -> Option<&str> {
    let (_, request) = name.split_once('/')?;
    request.split('#').next()
}
