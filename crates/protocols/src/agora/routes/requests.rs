//! `GET /requests/{id}`: how a request stands, for those who are part of it.

use std::sync::Arc;

use axum::extract::State;
use rialto_core::alias::{Target, claim};
use rialto_core::command::JobRef;
use rialto_core::id::AgentId;
use rialto_core::job::{Job, ask};
use rialto_core::time::Millis;
use rialto_core::world::World;

use super::{Answered, Named, Reader, Refused};
use crate::agora::codes::Code;
use crate::agora::failure::Failure;
use crate::agora::intake::foreign_id;
use crate::agora::refusals::{self, state_of};
use crate::agora::thread::{Offered, Thread};
use crate::agora::{ID, say};
use crate::face::Floor;
use crate::kit::stamp;

/// Shows it.
pub async fn show(State(floor): State<Floor>, Reader(token): Reader, Named(id): Named) -> Answered {
    let failed = |failure| Refused::new(&floor, refusals::failed(&failure));
    let job = find(&floor, token.agent, &id).await.map_err(failed)?;
    let unknown = || {
        let text = "no request of that id concerns you";
        Refused::new(&floor, Failure::new(Code::NotFound, text))
    };
    let job = job.ok_or_else(unknown)?;
    let thread = floor.engine.look(|world| thread(world, &job, token.agent));
    Ok(say::json(200, serde_json::to_string(&thread).unwrap_or_default()))
}

/// The request an agent made, else one it was asked for, else work it has from elsewhere.
pub async fn find(
    floor: &Floor,
    agent: AgentId,
    id: &str,
) -> Result<Option<Arc<Job>>, rialto_engine::Failure> {
    let engine = &floor.engine;
    let own = engine.look(|world| ask::own_name(world, agent, id));
    if let Some((origin, id)) = own
        && let Some(job) = engine.find_job(&JobRef::Foreign { origin, id }).await?
    {
        return Ok(Some(job));
    }
    let name = claim::asked(agent, id);
    if let Some(Target::Job(job)) = engine.claim(name).await? {
        return engine.job(job).await;
    }
    let Ok(uuid) = id.parse() else { return Ok(None) };
    let job = engine.find_job(&JobRef::Uuid(uuid)).await?;
    Ok(job.filter(|job| job.worker() == Some(agent)))
}

/// The request as one of its parties may see it: offers are between who made them and who asked.
fn thread(world: &World, job: &Job, reader: AgentId) -> Thread {
    let did = |agent| world.name_of(agent, ID).unwrap_or_default().to_owned();
    let shown = job.offers.iter().filter(|offer| job.asked_by(reader) || offer.by == reader);
    let offers = shown.map(|offer| {
        let (name, eta) = (offer.name.clone(), offer.eta.unwrap_or(Millis(0)));
        Offered::new(name, did(offer.by), offer.price, eta, offer.valid_until)
    });
    let alone = job.asked.first().filter(|_| job.asked.len() == 1).copied();
    Thread {
        request_id: foreign_id(job).into_owned(),
        state: state_of(job.state),
        provider: job.worker().or(alone).map(did),
        offers: offers.collect(),
        deadline: Some(stamp::millis(job.deadline)),
    }
}
