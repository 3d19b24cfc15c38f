//! Connects the agent's handlers to the envelope service: each REQUEST becomes a job.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::Code;

use super::service::Desk;
use super::serve::route;
use crate::agent::direct::Identity;
use crate::agent::direct::worker_pool::Bench;
use crate::agent::direct::router::{Answering, Endpoint};
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::request_key::Scope;
use crate::agent::{self, Outcome, Refused, Skill};
use crate::agora::handler::{Broken, Handler, Job, Progress, Terms};
use crate::clock;
use crate::http_server::NoBody;

/// How long an offer is valid.
const OFFER_TTL: Duration = Duration::from_secs(60);

/// The agora endpoint of an agent that its peers call.
pub(crate) struct Works(Arc<Desk<Hands>>);

/// Runs the work in the worker pool.
struct Hands(Arc<Bench>);

/// Creates the agora endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &Identity,
    bench: &Arc<Bench>,
    before: (Journal, Vec<Entry>),
) -> impl Endpoint + use<> {
    let hands = Arc::new(Hands(Arc::clone(bench)));
    let bench = Some(Arc::clone(bench));
    Works(Arc::new(Desk::new(identity.signs().clone(), hands, bench, before)))
}

impl Endpoint for Works {
    fn name(&self) -> &'static str {
        "agora"
    }

    fn path(&self) -> &'static str {
        "/agora"
    }

    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a> {
        Box::pin(route(&self.0, head, body))
    }
}

impl Hands {
    /// The skill for a resource: `agora:NAME:v1`, or the name itself.
    fn skill(&self, resource: &str) -> Option<&Skill> {
        let name = resource.strip_prefix("agora:").and_then(|rest| rest.strip_suffix(":v1"));
        let shop = self.0.shop();
        shop.skill(resource).or_else(|| name.and_then(|name| shop.skill(name)))
    }
}

impl Handler for Hands {
    async fn terms(&self, job: &Job) -> Terms {
        let Some(skill) = self.skill(&job.resource) else {
            return Terms::unsupported(&job.resource);
        };
        if let Err(why @ Refused::Unfit(_)) = self.0.shop().fits(&skill.name, &job.params) {
            return Terms::Decline(Broken::new(Code::BadRequest, why.to_string()));
        }
        if self.0.busy() >= self.0.shop().at_once() {
            return Terms::Decline(Broken::new(Code::Unavailable, "the agent is at capacity"));
        }
        let cost = skill.price_of(&job.params);
        match cost.is_zero() {
            true => Terms::Work,
            false => Terms::Offer { cost, ttl: OFFER_TTL, eta: skill.time_limit },
        }
    }

    async fn work(&self, job: Job, _: Progress) -> Result<String, Broken> {
        let Some(skill) = self.skill(&job.resource) else {
            return Err(Broken::new(Code::NotFound, Refused::NoSkill.to_string()));
        };
        let full = || Broken::new(Code::Unavailable, "the agent is at capacity");
        let place = self.0.place().ok_or_else(full)?;
        let cost = skill.price_of(&job.params);
        let requester = job.requester.did();
        let job = agent::Job {
            // Ids are unique only per sender (R3).
            id: Scope::of("agora", &requester, &job.request_id).job_id().to_string(),
            turn: 0,
            skill: skill.name.clone(),
            input: job.params,
            requester,
            budget: job.max.unwrap_or(cost),
            deadline: job.timeout.map(|left| after(clock::now(), left)),
            time_limit: Duration::MAX,
        };
        let _seat = place.seat().await.ok_or_else(full)?;
        match self.0.shop().work(job).await {
            Outcome::Done(output) => Ok(output),
            Outcome::Failed(why) => Err(Broken::new(Code::Internal, why)),
            Outcome::Declined(why) => Err(Broken::new(Code::Unavailable, why)),
            Outcome::Unfit(why) => Err(Broken::new(Code::BadRequest, why)),
        }
    }
}

fn after(now: Timestamp, left: Duration) -> Timestamp {
    now.plus(Millis(i64::try_from(left.as_millis()).unwrap_or(i64::MAX)))
}
