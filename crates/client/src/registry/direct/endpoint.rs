//! The registry endpoint: routes requests and parses their bodies.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::registry::wire::{JobPost, read_path_uuid};
use url::Origin;
use uuid::Uuid;

use super::callback::Callback;
use super::refusal::Refusal;
use super::service::JobService;
use crate::agent::direct::PeerIdentity;
use crate::agent::direct::journal::{Entry, Journal};
use crate::agent::direct::router::{ProtocolEndpoint, ResponseFuture};
use crate::agent::direct::worker_pool::WorkerPool;
use crate::http_server::{BodyError, HttpResponse, PeerIp, has_content_encoding};
use crate::ids;

/// The path for jobs.
const PATH: &str = "/jobs";
/// Maximum length of a callback URL, which is kept as long as the job.
const CALLBACK_MAX: usize = 2 << 10;

/// The registry endpoint of an agent that its peers call.
pub(crate) struct DirectEndpoint {
    service: Arc<JobService>,
    agent_id: Uuid,
    trusted: Vec<Origin>,
}

/// Creates the registry endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &PeerIdentity,
    bench: &Arc<WorkerPool>,
    before: (Journal, Vec<Entry>),
) -> impl ProtocolEndpoint + use<> {
    let (agent_id, trusted) = (identity.id(), identity.callback_origins().to_vec());
    DirectEndpoint {
        service: Arc::new(JobService::new(agent_id, Arc::clone(bench), before)),
        agent_id,
        trusted,
    }
}

impl ProtocolEndpoint for DirectEndpoint {
    fn name(&self) -> &'static str {
        "registry"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn handle<'a>(&'a self, head: &'a Parts, body: Result<Bytes, BodyError>) -> ResponseFuture<'a> {
        Box::pin(async move {
            let below = head.uri.path().strip_prefix(PATH).unwrap_or_default();
            match below.trim_matches('/') {
                "" if head.method == Method::POST => self.post(head, body).await,
                "" => Refusal::method_not_allowed("POST").into_response(None),
                _ if head.method != Method::GET => {
                    Refusal::method_not_allowed("GET").into_response(None)
                }
                id => self.show(id).unwrap_or_else(|refusal| refusal.into_response(None)),
            }
        })
    }
}

impl DirectEndpoint {
    async fn post(&self, head: &Parts, body: Result<Bytes, BodyError>) -> HttpResponse {
        let (post, job_id) = match read(head, body) {
            Ok(read) => read,
            Err(refusal) => return refusal.into_response(None),
        };
        let from = head.extensions.get::<PeerIp>().map(|PeerIp(ip)| *ip);
        let callback = self.callback(&post, from);
        match self.service.handle_job(job_id, post, callback).await {
            Ok(answer) => answer,
            Err(refusal) => refusal.into_response(Some((job_id, self.agent_id))),
        }
    }

    fn callback(&self, post: &JobPost, from: Option<IpAddr>) -> Option<Callback> {
        Callback::of(post.callback_url.as_deref()?, from?, &self.trusted)
    }

    fn show(&self, id: &str) -> Result<HttpResponse, Refusal> {
        self.service.job_status(read_path_uuid(id, "job_id")?)
    }
}

/// Parses a body into a job and its id.
fn read(head: &Parts, body: Result<Bytes, BodyError>) -> Result<(JobPost, Uuid), Refusal> {
    let body = body?;
    if has_content_encoding(&head.headers) {
        return Err(Refusal::unsupported_encoding());
    }
    let post = JobPost::read(&body)?;
    if post.callback_url.as_ref().is_some_and(|url| url.len() > CALLBACK_MAX) {
        return Err(Refusal::too_long("callback_url", CALLBACK_MAX));
    }
    let job_id = match post.job_id {
        Some(id) => id,
        None => ids::random_id().map_err(|error| Refusal::internal_error(error.to_string()))?,
    };
    Ok((post, job_id))
}
