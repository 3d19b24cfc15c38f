//! Connects the agent's handlers to the envelope service: each REQUEST becomes a job.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::Code;

use super::serve::route;
use super::service::EnvelopeService;
use crate::agent::direct::PeerIdentity;
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::request_key::RequestKey;
use crate::agent::direct::router::{ProtocolEndpoint, ResponseFuture};
use crate::agent::direct::worker_pool::WorkerPool;
use crate::agent::{self, JobRefusal, Outcome, Skill};
use crate::agora::handler::{Handler, Job, Progress, Terms, WorkError};
use crate::clock;
use crate::http_server::BodyError;

/// How long an offer is valid.
const OFFER_TTL: Duration = Duration::from_secs(60);

/// The agora endpoint of an agent that its peers call.
pub(crate) struct DirectEndpoint(Arc<EnvelopeService<PoolHandler>>);

/// Runs the work in the worker pool.
struct PoolHandler(Arc<WorkerPool>);

/// Creates the agora endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &PeerIdentity,
    bench: &Arc<WorkerPool>,
    before: (Journal, Vec<Entry>),
) -> impl ProtocolEndpoint + use<> {
    let hands = Arc::new(PoolHandler(Arc::clone(bench)));
    let bench = Some(Arc::clone(bench));
    DirectEndpoint(Arc::new(EnvelopeService::new(identity.signer().clone(), hands, bench, before)))
}

impl ProtocolEndpoint for DirectEndpoint {
    fn name(&self) -> &'static str {
        "agora"
    }

    fn path(&self) -> &'static str {
        "/agora"
    }

    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a> {
        Box::pin(route(&self.0, head, body))
    }
}

impl PoolHandler {
    /// The skill for a resource: `agora:NAME:v1`, or the name itself.
    fn skill(&self, resource: &str) -> Option<&Skill> {
        let name = resource.strip_prefix("agora:").and_then(|rest| rest.strip_suffix(":v1"));
        let shop = self.0.handlers();
        shop.skill(resource).or_else(|| name.and_then(|name| shop.skill(name)))
    }
}

impl Handler for PoolHandler {
    async fn terms(&self, job: &Job) -> Terms {
        let Some(skill) = self.skill(&job.resource) else {
            return Terms::unsupported(&job.resource);
        };
        if let Err(why @ JobRefusal::InvalidInput(_)) =
            self.0.handlers().check_input(&skill.name, &job.params)
        {
            return Terms::Decline(WorkError::new(Code::BadRequest, why.to_string()));
        }
        if self.0.busy_count() >= self.0.handlers().concurrency() {
            return Terms::Decline(WorkError::new(Code::Unavailable, "the agent is at capacity"));
        }
        let cost = skill.price_for(&job.params);
        match cost.is_zero() {
            true => Terms::Work,
            false => Terms::Offer { cost, ttl: OFFER_TTL, eta: skill.time_limit },
        }
    }

    async fn work(&self, job: Job, _: Progress) -> Result<String, WorkError> {
        let Some(skill) = self.skill(&job.resource) else {
            return Err(WorkError::new(Code::NotFound, JobRefusal::UnknownSkill.to_string()));
        };
        let full = || WorkError::new(Code::Unavailable, "the agent is at capacity");
        let place = self.0.try_enqueue().ok_or_else(full)?;
        let cost = skill.price_for(&job.params);
        let requester = job.requester.did();
        let job = agent::Job {
            // Ids are unique only per sender (R3).
            id: RequestKey::new("agora", &requester, &job.request_id).job_id().to_string(),
            epoch: 0,
            skill: skill.name.clone(),
            input: job.params,
            requester,
            budget: job.max.unwrap_or(cost),
            deadline: job.timeout.map(|left| after(clock::now(), left)),
            time_limit: Duration::MAX,
        };
        let _seat = place.seat().await.ok_or_else(full)?;
        match self.0.handlers().run_job(job).await {
            Outcome::Done(output) => Ok(output),
            Outcome::Failed(why) => Err(WorkError::new(Code::Internal, why)),
            Outcome::Declined(why) => Err(WorkError::new(Code::Unavailable, why)),
            Outcome::InvalidInput(why) => Err(WorkError::new(Code::BadRequest, why)),
        }
    }
}

fn after(now: Timestamp, left: Duration) -> Timestamp {
    now.plus(Millis(i64::try_from(left.as_millis()).unwrap_or(i64::MAX)))
}
