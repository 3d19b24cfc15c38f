//! A peer's HTTP routes, which are those of a hub that make sense for a single agent, and the
//! handlers of an agent behind them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::agora::wire::responses::HubInfo;
use rialto_protocols::agora::{BODY_MAX, Code, Failure, VERSION, WINDOW};
use rialto_protocols::kit::ed25519::PublicKey;
use tokio::net::TcpListener;

use super::service::EnvelopeService;
use crate::agent::direct::{OpenedJournal, PeerIdentity, ProtocolEndpoint, ResponseFuture};
use crate::agent::{self, Dialogue, Handlers, JobRefusal, Outcome, Skill};
use crate::agora::handler::{Handler, Job, Progress, Terms, WorkError, millis};
use crate::agora::identity::Identity;
use crate::clock;
use crate::http_server::{self, BodyError, HttpResponse, has_content_encoding};
use crate::worker::journal::Journal;
use crate::worker::pool::WorkerPool;
use crate::worker::request_log::RequestKey;

/// Path for envelopes to one agent; its key follows.
const AGENTS: &str = "/agora/agents/";
/// How long an offer is valid.
const OFFER_TTL: Duration = Duration::from_secs(60);

/// The agora endpoint of an agent that its peers call.
struct EnvelopeEndpoint(Arc<EnvelopeService<PoolHandler>>);

/// Runs the work in the worker pool.
struct PoolHandler(Arc<WorkerPool>);

/// Creates the agora endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &PeerIdentity,
    pool: &Arc<WorkerPool>,
    journal: OpenedJournal,
) -> impl ProtocolEndpoint + use<> {
    let handler = Arc::new(PoolHandler(Arc::clone(pool)));
    let signer = identity.signer().clone();
    EnvelopeEndpoint(Arc::new(EnvelopeService::new(signer, handler, Arc::clone(pool), journal)))
}

impl ProtocolEndpoint for EnvelopeEndpoint {
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
    fn skill(&self, resource: &str) -> Option<Arc<Skill>> {
        let name = resource.strip_prefix("agora:").and_then(|rest| rest.strip_suffix(":v1"));
        let handlers = self.0.handlers();
        handlers.skill(resource).or_else(|| name.and_then(|name| handlers.skill(name)))
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
        if cost.is_zero() {
            return Terms::Work;
        }
        Terms::Offer { cost, ttl: OFFER_TTL, eta: skill.time_limit }
    }

    async fn work(&self, job: Job, _: Progress) -> Result<String, WorkError> {
        let Some(skill) = self.skill(&job.resource) else {
            return Err(WorkError::new(Code::NotFound, JobRefusal::UnknownSkill.to_string()));
        };
        let full = || WorkError::new(Code::Unavailable, "the agent is at capacity");
        let slot = self.0.try_enqueue().ok_or_else(full)?;
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
            deadline: job.timeout.map(|left| clock::now().plus(millis(left))),
            time_limit: Duration::MAX,
            meta: None,
            dialogue: Dialogue::default(),
        };
        let _permit = slot.acquire().await.ok_or_else(full)?;
        match self.0.handlers().run_job(job).await {
            Outcome::Done(output) => Ok(output),
            Outcome::Failed(why) => Err(WorkError::new(Code::Internal, why)),
            Outcome::Declined(why) => Err(WorkError::new(Code::Unavailable, why)),
            Outcome::InvalidInput(why) => Err(WorkError::new(Code::BadRequest, why)),
            Outcome::Refused(why) => Err(WorkError::new(Code::Unauthorized, why)),
        }
    }
}

/// Serves envelopes at `/agora`, `/agora/envelopes` and `/agora/agents/{key}` of `listener` until
/// `stop`; running requests may then finish. Messages are kept in memory only, so envelopes signed
/// before the start are refused.
pub async fn serve<H: Handler>(
    listener: TcpListener,
    identity: Identity,
    handler: Arc<H>,
    stop: impl Future<Output = ()>,
) {
    // The handler does the work itself; the pool only keeps it running when a caller disconnects.
    let pool = Arc::new(WorkerPool::new(Handlers::builder().build(), None));
    let journal = (Journal::disabled(), Vec::new());
    let service = Arc::new(EnvelopeService::new(identity, handler, pool, journal));
    let answer = move |head: Parts, body: Result<Bytes, BodyError>| {
        let service = Arc::clone(&service);
        async move { route(&service, &head, body).await }
    };
    http_server::serve(listener, BODY_MAX, answer, stop).await;
}

/// Handles one request.
async fn route<H: Handler>(
    service: &Arc<EnvelopeService<H>>,
    head: &Parts,
    body: Result<Bytes, BodyError>,
) -> HttpResponse {
    let path = head.uri.path().trim_end_matches('/');
    let to = match path {
        "/agora" | "/agora/envelopes" => None,
        _ => match path.strip_prefix(AGENTS).map(parse_key_segment) {
            Some(Some(key)) => Some(key),
            _ => return service.refuse(&Failure::new(Code::NotFound, "unknown path"), None),
        },
    };
    if head.method == Method::GET && path == "/agora" {
        return about(service.identity());
    }
    if head.method != Method::POST {
        let failure =
            Failure { http_status: 405, ..Failure::bad_request("envelopes are sent with POST") };
        let allow = Some(if path == "/agora" { "GET, POST" } else { "POST" });
        return HttpResponse { allow, ..service.refuse(&failure, None) };
    }
    match body {
        Ok(_) if has_content_encoding(&head.headers) => {
            service.refuse(&Failure::encoded_body(), None)
        }
        Ok(body) => service.answer(&body, to, clock::now()).await,
        Err(error) => service.refuse(&body_failure(error), None),
    }
}

fn body_failure(error: BodyError) -> Failure {
    match error {
        BodyError::TooLong => Failure::too_large(),
        BodyError::Incomplete => Failure::bad_request("the body is incomplete"),
        BodyError::TimedOut => Failure::new(Code::Timeout, "the body took too long"),
    }
}

/// The key in a path. Colons may be escaped; keys contain nothing else to escape.
fn parse_key_segment(segment: &str) -> Option<PublicKey> {
    PublicKey::parse(&segment.replace("%3A", ":").replace("%3a", ":")).ok()
}

/// The agent's own description, in the hub's format: to callers, a peer is a hub with one agent.
fn about(identity: &Identity) -> HttpResponse {
    let endpoints = [("envelopes", "/agora/envelopes"), ("agents", "/agora/agents")];
    let about = HubInfo {
        protocol: VERSION.to_owned(),
        hub: identity.did().to_owned(),
        window_ms: WINDOW.0,
        endpoints: endpoints.map(|(name, path)| (name.to_owned(), path.to_owned())).into(),
    };
    HttpResponse::new(200, serde_json::to_vec(&about).unwrap_or_default())
}
