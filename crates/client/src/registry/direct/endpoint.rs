//! The registry endpoint: routes requests and parses their bodies.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::registry::wire::{JobPost, path_uuid};
use url::Origin;
use uuid::Uuid;

use super::callback::Callback;
use super::service::Desk;
use super::refusal::Refusal;
use crate::agent::direct::Identity;
use crate::agent::direct::worker_pool::Bench;
use crate::agent::direct::router::{Answering, Endpoint};
use crate::agent::direct::journal::{Entry, Journal};
use crate::http_server::{Answer, Caller, NoBody, is_encoded};
use crate::ids;

/// The path for jobs.
const PATH: &str = "/jobs";
/// Maximum length of a callback URL, which is kept as long as the job.
const CALLBACK_MAX: usize = 2 << 10;

/// The registry endpoint of an agent that its peers call.
pub(crate) struct Works {
    desk: Arc<Desk>,
    agent_id: Uuid,
    trusted: Vec<Origin>,
}

/// Creates the registry endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &Identity,
    bench: &Arc<Bench>,
    before: (Journal, Vec<Entry>),
) -> impl Endpoint + use<> {
    let (agent_id, trusted) = (identity.id(), identity.callbacks().to_vec());
    Works { desk: Arc::new(Desk::new(agent_id, Arc::clone(bench), before)), agent_id, trusted }
}

impl Endpoint for Works {
    fn name(&self) -> &'static str {
        "registry"
    }

    fn path(&self) -> &'static str {
        PATH
    }

    fn answer<'a>(&'a self, head: &'a Parts, body: Result<Bytes, NoBody>) -> Answering<'a> {
        Box::pin(async move {
            let below = head.uri.path().strip_prefix(PATH).unwrap_or_default();
            match below.trim_matches('/') {
                "" if head.method == Method::POST => self.post(head, body).await,
                "" => Refusal::method("POST").answer(None),
                _ if head.method != Method::GET => Refusal::method("GET").answer(None),
                id => self.show(id).unwrap_or_else(|refusal| refusal.answer(None)),
            }
        })
    }
}

impl Works {
    async fn post(&self, head: &Parts, body: Result<Bytes, NoBody>) -> Answer {
        let (post, job_id) = match read(head, body) {
            Ok(read) => read,
            Err(refusal) => return refusal.answer(None),
        };
        let from = head.extensions.get::<Caller>().map(|Caller(ip)| *ip);
        let callback = self.callback(&post, from);
        match self.desk.take(job_id, post, callback).await {
            Ok(answer) => answer,
            Err(refusal) => refusal.answer(Some((job_id, self.agent_id))),
        }
    }

    fn callback(&self, post: &JobPost, from: Option<IpAddr>) -> Option<Callback> {
        Callback::of(post.callback_url.as_deref()?, from?, &self.trusted)
    }

    fn show(&self, id: &str) -> Result<Answer, Refusal> {
        self.desk.show(path_uuid(id, "job_id")?)
    }
}

/// Parses a body into a job and its id.
fn read(head: &Parts, body: Result<Bytes, NoBody>) -> Result<(JobPost, Uuid), Refusal> {
    let body = body?;
    if is_encoded(&head.headers) {
        return Err(Refusal::encoded());
    }
    let post = JobPost::read(&body)?;
    if post.callback_url.as_ref().is_some_and(|url| url.len() > CALLBACK_MAX) {
        return Err(Refusal::long("callback_url", CALLBACK_MAX));
    }
    let job_id = match post.job_id {
        Some(id) => id,
        None => ids::id().map_err(|error| Refusal::broken(error.to_string()))?,
    };
    Ok((post, job_id))
}
