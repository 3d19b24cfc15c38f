//! The registry endpoint: `POST /jobs` and `GET /jobs/{id}`. Each job runs once, and repeats get
//! its result.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http::request::Parts;
use rialto_protocols::registry::wire::{JobPost, read_path_uuid};
use serde::{Deserialize, Serialize};
use tokio::time::timeout;
use url::Origin;
use uuid::Uuid;

use super::answers::{JobRef, Refusal};
use super::callback::Callback;
use crate::agent::direct::{OpenedJournal, PeerIdentity, ProtocolEndpoint, ResponseFuture};
use crate::agent::{Dialogue, Job};
use crate::http_server::{BodyError, HttpResponse, PeerIp, has_content_encoding};
use crate::ids;
use crate::worker::journal::Entry;
use crate::worker::pool::WorkerPool;
use crate::worker::request_log::{
    Fingerprint, PeerRequest, RequestKey, RequestLog, TrackedRequest,
};

/// The path for jobs.
const PATH: &str = "/jobs";
/// Maximum length of a callback URL, which is kept as long as the job.
const CALLBACK_MAX: usize = 2 << 10;
/// How long a caller with a callback waits. Hubs wait for half a minute.
const WAIT: Duration = Duration::from_secs(25);
/// Approximate size of a tracked job besides its texts.
const JOB_BYTES: usize = 512;
/// The name of a requester that does not identify itself.
const ANONYMOUS: &str = "anonymous";

/// The registry endpoint of an agent that its peers call.
struct JobEndpoint {
    agent_id: Uuid,
    trusted: Vec<Origin>,
    log: Arc<RequestLog<PostedJob>>,
}

/// A job that was received.
struct PostedJob {
    job_id: Uuid,
    orchestrator: Option<String>,
    callback: Option<Callback>,
}

type TrackedJob = TrackedRequest<PostedJob>;

/// The journal's note of a job.
#[derive(Serialize, Deserialize)]
struct Note {
    job_id: Uuid,
    orchestrator: Option<String>,
    result: Option<String>,
}

/// Creates the registry endpoint for these handlers.
pub(crate) fn endpoint(
    identity: &PeerIdentity,
    pool: &Arc<WorkerPool>,
    journal: OpenedJournal,
) -> impl ProtocolEndpoint + use<> {
    let (log, _) = RequestLog::open(Arc::clone(pool), journal, PostedJob::restore);
    let trusted = identity.callback_origins().to_vec();
    JobEndpoint { agent_id: identity.id(), trusted, log: Arc::new(log) }
}

impl ProtocolEndpoint for JobEndpoint {
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
                id => self.status(id).unwrap_or_else(|refusal| refusal.into_response(None)),
            }
        })
    }
}

impl JobEndpoint {
    async fn post(&self, head: &Parts, body: Result<Bytes, BodyError>) -> HttpResponse {
        let (post, job_id) = match read(head, body) {
            Ok(read) => read,
            Err(refusal) => return refusal.into_response(None),
        };
        let from = head.extensions.get::<PeerIp>().map(|PeerIp(ip)| *ip);
        match self.admit(job_id, post, from) {
            Ok(tracked) => self.answer(&tracked).await,
            Err(refusal) => refusal.into_response(Some((job_id, self.agent_id))),
        }
    }

    /// Starts a new job, or finds the one that a repeat is about.
    fn admit(
        &self,
        job_id: Uuid,
        post: JobPost,
        from: Option<IpAddr>,
    ) -> Result<Arc<TrackedJob>, Refusal> {
        if post.agent_id.is_some_and(|agent_id| agent_id != self.agent_id) {
            return Err(Refusal::not_found("agent"));
        }
        // Skill is checked before budget, and both before capacity. A refused job leaves no record.
        let handlers = self.log.pool().handlers();
        let checked = handlers.check_job(&post.skill_name, post.budget, &post.input_data);
        let fingerprint = Fingerprint { key: key(job_id), content: post.content };
        let accept = |_| {
            let price = checked?.price;
            let slot = self.log.pool().try_enqueue().ok_or_else(Refusal::at_capacity)?;
            let url = post.callback_url.as_deref();
            let callback = url.zip(from).and_then(|(url, ip)| Callback::of(url, ip, &self.trusted));
            let orchestrator = post.orchestrator_id.clone();
            Ok((PostedJob { job_id, orchestrator, callback }, (price, slot)))
        };
        let check_repeat = |known: &_| check_same(known, &post);
        let (tracked, details) = self.log.admit(fingerprint, check_repeat, accept)?;
        let Some((price, slot)) = details else { return Ok(tracked) };
        let requester = post.orchestrator_id.unwrap_or_else(|| ANONYMOUS.to_owned());
        let job = Job {
            id: RequestKey::new("registry", &requester, &job_id.to_string()).job_id().to_string(),
            epoch: 0,
            skill: post.skill_name,
            input: post.input_data,
            requester,
            budget: post.budget,
            deadline: None,
            time_limit: Duration::MAX,
            meta: None,
            dialogue: Dialogue::default(),
        };
        // In a separate task: a caller that disconnects may come back for the result.
        let (log, new, job_ref) =
            (Arc::clone(&self.log), Arc::clone(&tracked), self.job_ref(job_id));
        self.log.pool().spawn(async move {
            let result = |outcome: &_, took| Arc::<str>::from(job_ref.result(outcome, price, took));
            let is_promised = log.execute(&new, slot, job, result).await;
            if is_promised
                && let (Some(callback), Some(result)) = (&new.request.callback, new.answer.get())
            {
                callback.deliver(&result).await;
            }
        });
        Ok(tracked)
    }

    /// The result or, for a caller with a callback, that it will be sent later.
    async fn answer(&self, tracked: &TrackedJob) -> HttpResponse {
        if let Some(callback) = &tracked.request.callback
            && timeout(WAIT, tracked.answer.wait()).await.is_err()
            && callback.is_allowed().await
            && tracked.answer.get_or_promise().is_none()
        {
            return self.pending(tracked);
        }
        HttpResponse::new(200, tracked.answer.wait().await.as_bytes())
    }

    /// The state of a job.
    fn status(&self, id: &str) -> Result<HttpResponse, Refusal> {
        let tracked = self.log.find(key(read_path_uuid(id, "job_id")?));
        // An interrupted job is not running until it is sent again.
        let tracked = tracked.filter(|tracked| !tracked.is_interrupted);
        let tracked = tracked.ok_or_else(|| Refusal::not_found("job"))?;
        Ok(match tracked.answer.get() {
            Some(result) => HttpResponse::new(200, result.as_bytes()),
            None => self.pending(&tracked),
        })
    }

    fn pending(&self, tracked: &TrackedJob) -> HttpResponse {
        HttpResponse::new(202, self.job_ref(tracked.request.job_id).pending())
    }

    fn job_ref(&self, job_id: Uuid) -> JobRef {
        JobRef { job_id, agent_id: self.agent_id }
    }
}

impl PostedJob {
    /// Restores a job of an earlier run of this program.
    fn restore(entry: &Entry) -> Option<(Self, Option<Arc<str>>)> {
        let Note { job_id, orchestrator, result } =
            serde_json::from_str(entry.note.as_deref()?).ok()?;
        Some((Self { job_id, orchestrator, callback: None }, result.map(Arc::from)))
    }
}

impl PeerRequest for PostedJob {
    type Answer = Arc<str>;

    fn note(&self, result: Option<&Arc<str>>) -> Option<String> {
        let (job_id, orchestrator) = (self.job_id, self.orchestrator.clone());
        let note = Note { job_id, orchestrator, result: result.map(ToString::to_string) };
        serde_json::to_string(&note).ok()
    }

    fn bytes(&self, result: &Arc<str>) -> usize {
        let orchestrator = self.orchestrator.as_ref().map_or(0, String::len);
        let callback = self.callback.as_ref().map_or(0, Callback::bytes);
        JOB_BYTES + result.len() + orchestrator + callback
    }
}

/// The key of a job. One id is one job here, regardless of its sender (R38).
fn key(job_id: Uuid) -> RequestKey {
    RequestKey::new("registry", "", &job_id.to_string())
}

/// Checks whether a job is a repeat of a known one.
fn check_same(known: &TrackedJob, post: &JobPost) -> Result<(), Refusal> {
    if known.request.orchestrator != post.orchestrator_id {
        return Err(Refusal::id_taken());
    }
    if known.fingerprint.content != post.content {
        return Err(Refusal::content_differs());
    }
    Ok(())
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
