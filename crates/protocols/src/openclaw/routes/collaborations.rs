//! Shows one collaboration to its two parties.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::{Target, claim};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, State as JobState};
use rialto_core::world::World;
use uuid::Uuid;

use super::about;
use crate::adapter::caller::Caller;
use crate::adapter::{Floor, shown_jobs};
use crate::kit::raw_json;
use crate::openclaw::collaboration::{Listed, View};
use crate::openclaw::common::Common;
use crate::openclaw::failure::Failure;
use crate::openclaw::proof::{Known, Named};
use crate::openclaw::say::{self, Answered};
use crate::openclaw::{ID, refusals, view};

/// `GET /collaborations/{id}`.
pub async fn show(State(floor): State<Floor>, known: Known, Named(id): Named) -> Answered {
    let refuse = |failure| about(&floor, failure, None);
    let unknown = || refuse(Failure::not_found("collaboration"));
    let own = match known.0.caller {
        Caller::Agent(agent) => Some(agent),
        // Only the two parties may read input and output (R91).
        Caller::Operator => return Err(unknown()),
        Caller::Nobody | Caller::Former(_) => None,
    };
    let job = find(&floor, own, id.ok_or_else(unknown)?).await.map_err(refuse)?;
    let job = job.filter(|job| own.is_some() || is_open(&floor, job)).ok_or_else(unknown)?;
    if let Some(agent) = own {
        shown_jobs::note(&floor, agent, [&job]).await;
    }
    let Listed { collaboration_id, state, request, response, result } = listed(&floor, &job);
    let common =
        Common { correlation_id: view::ids(&job).correlation_id, timestamp: floor.engine.now() };
    let shown = View::new(common, collaboration_id, state, request, response, result);
    Ok(say::json(200, &shown))
}

/// Whether the collaboration can be read without a key, on an open hub.
fn is_open(floor: &Floor, job: &Job) -> bool {
    let home = |world: &World, agent: AgentId| world.agent(agent).map(|agent| agent.home);
    let ours = |world: &World| job.for_whom().is_none_or(|agent| home(world, agent) == Some(ID));
    job.origin == ID && floor.engine.look(ours)
}

/// A collaboration as its parties see it.
pub fn listed(floor: &Floor, job: &Job) -> Listed {
    let at = job.accepted_at.or(job.ended_at).unwrap_or(job.opened_at);
    let response = view::response(floor, job, at).map(|response| response.write());
    let accepted = job.accepted_at.is_some() || job.ended_at.is_some();
    Listed {
        collaboration_id: accepted.then(|| view::ids(job).collaboration_id.to_string()),
        state: view::state(job),
        request: raw_json::verbatim(&view::request(floor, job)),
        response: response.as_deref().map(raw_json::verbatim),
        result: view::result(floor, job).as_deref().map(raw_json::verbatim),
    }
}

/// A collaboration by its own id or its request's id. With `own`, only those of that agent.
pub async fn find(
    floor: &Floor,
    own: Option<AgentId>,
    id: Uuid,
) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| refusals::failed(&failure);
    let party =
        |job: &Arc<Job>| own.is_none_or(|own| job.asked_by(own) || view::is_responder(job, own));
    let by_id = floor.engine.find_job(&JobRef::Uuid(id)).await.map_err(failed)?;
    if let Some(job) = by_id.filter(party) {
        return Ok(Some(job));
    }
    let text = id.to_string();
    let named = |job: &&Arc<Job>| job.origin == ID && request_of(&job.foreign) == Some(&text);
    let Some(own) = own else {
        // For an operator, or any caller on an open hub. Two requesters may use the same request
        // id, which is then ambiguous.
        let live = floor.engine.look(|world| {
            let mut live = world.live_jobs().filter(named);
            live.next().filter(|_| live.next().is_none()).cloned()
        });
        return match live {
            Some(job) => Ok(Some(job)),
            None => by_request(floor, &text).await,
        };
    };
    let live = floor.engine.look(|world| {
        let asked = world.asked_by(own).filter(named).last().cloned();
        let mut work = world.work_of(own).chain(world.waiting_for(own));
        asked.or_else(|| work.find(named).cloned())
    });
    if live.is_some() {
        return Ok(live);
    }
    if let Some(job) = by_request(floor, &text).await?.filter(party) {
        return Ok(Some(job));
    }
    // The requester's own name for the job still finds it when another requester uses the same id,
    // and for requests from before the id index existed.
    let name = floor.engine.look(|world| world.name_of(own, ID).map(|name| format!("{name}/{id}")));
    let Some(name) = name else { return Ok(None) };
    let wanted = JobRef::Foreign { origin: ID, id: name };
    let found = floor.engine.find_job(&wanted).await.map_err(failed)?;
    Ok(found.filter(|job| job.asked_by(own)))
}

/// The job that a request id leads to, including ended jobs.
async fn by_request(floor: &Floor, id: &str) -> Result<Option<Arc<Job>>, Failure> {
    let failed = |failure| refusals::failed(&failure);
    let found = floor.engine.claim(claim::request(ID, id)).await.map_err(failed)?;
    let Some(Target::Job(job)) = found else { return Ok(None) };
    let job = floor.engine.job(job).await.map_err(failed)?;
    Ok(job.filter(|job| job.state != JobState::Withdrawn))
}

/// The request id inside the requester's name for the job.
fn request_of(name: &str) -> Option<&str> {
    let (_, request) = name.split_once('/')?;
    request.split('#').next()
}
