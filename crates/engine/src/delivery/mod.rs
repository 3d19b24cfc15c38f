//! Delivery: sends due notices to URLs, retries, and records the results.
//!
//! The world holds what is due; this module only sends it. The recipient's protocol encodes it
//! through `DeliveryEncoder`. The result of an attempt is a new command.

pub mod egress;
pub mod retry;
pub mod signature;

use std::collections::{HashMap, HashSet};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rialto_core::alias::Protocol;
use rialto_core::answer::Answer;
use rialto_core::command::{Command, DeliveryResult, WorkerReport};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::{Job, Requester};
use rialto_core::notice::{Delivery, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::Semaphore;

use crate::run::{Engine, Failure};
use crate::store::{Row, RowKey};
use egress::{Egress, HttpResponse, SendError};
use signature::WebhookSecret;

/// Deliveries in flight in total and to one host, so that a host that does not answer cannot block
/// deliveries to others.
const IN_FLIGHT_MAX: usize = 512;
const IN_FLIGHT_PER_HOST_MAX: usize = 16;
/// Bytes of the response to a job: as much as a job may have.
pub const JOB_RESPONSE_BYTES_MAX: usize = 1 << 20;
/// Bytes of any other response.
pub const RESPONSE_BYTES_MAX: usize = 64 << 10;

/// A delivery encoded in the recipient's protocol.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    pub url: String,
    pub body: Bytes,
    /// The same for every attempt, so that the receiver can detect a repeat.
    pub id: String,
    /// Headers that the protocol adds.
    pub headers: Vec<(String, String)>,
    pub response_max: usize,
}

/// Requests being encoded; `None` if there is no longer anything to send.
pub type RequestsFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Option<Vec<OutboundRequest>>, Failure>> + Send + 'a>>;

/// A protocol's part of delivery.
pub trait DeliveryEncoder: Send + Sync {
    /// Encodes the delivery for its URL, whether or not it is to be sent.
    fn encode(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest>;

    /// Encodes the delivery for sending, or returns `None` if there is no longer anything to send.
    fn encode_if_due(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
    ) -> Option<OutboundRequest> {
        self.encode(engine, push, job)
    }

    /// All requests of the delivery, to be sent one after the other. A retry sends all of them again.
    fn encode_all<'a>(
        &'a self,
        engine: &'a Engine,
        push: &'a Delivery,
        job: Option<&'a Job>,
    ) -> RequestsFuture<'a> {
        let one = self.encode_if_due(engine, push, job).map(|request| vec![request]);
        Box::pin(std::future::ready(Ok(one)))
    }

    /// Whether a notice that an open stream will carry is not also sent.
    fn prefers_streams(&self) -> bool {
        false
    }

    /// What the response means: whether the delivery succeeded, and what it says about the job.
    fn interpret_response(
        &self,
        engine: &Engine,
        push: &Delivery,
        job: Option<&Job>,
        answer: &Result<HttpResponse, SendError>,
    ) -> AttemptResult;
}

/// The result of an attempt.
#[derive(Debug)]
pub struct AttemptResult {
    pub status: AttemptStatus,
    /// What the response says about the job that was delivered.
    pub report: Option<WorkerReport>,
}

/// Whether the delivery is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AttemptStatus {
    /// Delivered, with the response body if the protocol keeps it.
    Delivered { reply: Option<String> },
    /// Not delivered, and a retry is pointless.
    Obsolete,
    /// To be retried with backoff.
    Failed(String),
    /// The endpoint is gone permanently.
    EndpointGone,
}

/// The deliveries in flight.
#[derive(Default)]
struct InFlight {
    notices: HashSet<NoticeId>,
    hosts: HashMap<String, usize>,
}

impl InFlight {
    /// Starts a delivery, unless it is in flight already or its host is at a limit.
    fn try_start(&mut self, push: &Delivery, has_turn: impl FnOnce() -> bool) -> bool {
        let host = host(&push.url);
        let busy = self.hosts.get(host).is_some_and(|count| *count >= IN_FLIGHT_PER_HOST_MAX);
        if busy || self.notices.contains(&push.notice) || !has_turn() {
            return false;
        }
        *self.hosts.entry(host.to_owned()).or_default() += 1;
        self.notices.insert(push.notice)
    }

    fn finish(&mut self, push: &Delivery) {
        self.notices.remove(&push.notice);
        if let Some(count) = self.hosts.get_mut(host(&push.url)) {
            *count -= 1;
            if *count == 0 {
                self.hosts.remove(host(&push.url));
            }
        }
    }
}

/// The host and port of a URL.
fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// Sends deliveries until the engine stops.
pub struct Deliverer {
    engine: Engine,
    egress: Arc<Egress>,
    encoders: HashMap<Protocol, Arc<dyn DeliveryEncoder>>,
    in_flight: Mutex<InFlight>,
    slots: Arc<Semaphore>,
}

impl Deliverer {
    pub fn new(
        engine: Engine,
        egress: Arc<Egress>,
        couriers: HashMap<Protocol, Arc<dyn DeliveryEncoder>>,
    ) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
        Arc::new(Self { engine, egress, encoders: couriers, in_flight: Mutex::default(), slots })
    }

    /// Waits for due deliveries and sends them.
    pub async fn run(self: Arc<Self>) {
        /// The most a missed hint can delay a delivery.
        const POLL_INTERVAL: Duration = Duration::from_secs(1);
        let mut hints = self.engine.subscribe_deliveries();
        loop {
            // Of several nodes, the one that writes sends all deliveries.
            self.engine.until_writer().await;
            hints.borrow_and_update();
            let now = self.engine.now();
            for push in self.take_due(now) {
                let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
                let way = InFlightGuard { delivery: self.clone(), push };
                tokio::spawn(async move {
                    way.delivery.deliver(&way.push).await;
                    drop((way, slot));
                });
            }
            let next = self.engine.with_world(|world| world.next_delivery_at());
            let wait = next.filter(|at| *at > now).map_or(POLL_INTERVAL, |at| {
                Duration::from_millis(at.since(now).0.unsigned_abs()).min(POLL_INTERVAL)
            });
            tokio::select! {
                changed = hints.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// The due deliveries that are not in flight yet.
    fn take_due(&self, now: Timestamp) -> Vec<Arc<Delivery>> {
        // A result that cannot be recorded would make the hub send the delivery again and again.
        if !self.engine.is_writable() {
            return Vec::new();
        }
        if self.engine.with_world(|world| world.next_delivery_at()).is_none_or(|at| at > now) {
            return Vec::new();
        }
        let heard = self.engine.agents_with_readers();
        let mut under_way = self.in_flight.lock();
        self.engine.with_world(|world| {
            let due =
                world.deliveries_due(now).filter(|push| !self.is_streamed(world, push, &heard));
            let mut due: Vec<&Arc<Delivery>> = due.collect();
            // The most urgent first, and among equals the longest due.
            due.sort_by_key(|push| priority(world, push));
            // A host at its rate limit is not checked again for each of its deliveries. They stay
            // due, and no failure is recorded.
            let mut sated = HashSet::new();
            let mut has_turn = |push: &Delivery| {
                let host = host(&push.url);
                let turn =
                    !sated.contains(host) && self.egress.try_acquire_call(&push.url, now).is_ok();
                turn || {
                    sated.insert(host.to_owned());
                    false
                }
            };
            let fresh = due.into_iter().filter(|push| under_way.try_start(push, || has_turn(push)));
            fresh.take(IN_FLIGHT_MAX).cloned().collect()
        })
    }

    /// Whether a stream will carry the notice to the agent. If the stream ends first, it is sent
    /// after all.
    fn is_streamed(&self, world: &World, push: &Delivery, heard: &HashSet<AgentId>) -> bool {
        let Some(agent) = push.to.filter(|to| heard.contains(to)) else { return false };
        let home = world.agent(agent).and_then(|agent| self.encoders.get(&agent.home));
        let streams = home.is_some_and(|encoder| encoder.prefers_streams());
        streams && world.inbox(agent).read_position() < push.position
    }

    async fn deliver(&self, push: &Delivery) {
        // Without the text there is no attempt. The delivery stays due.
        let Some(push) = &load_message_text(&self.engine, push).await else { return };
        let job = match push.kind.job() {
            Some(job) => self.engine.load_job(job).await.ok().flatten(),
            None => None,
        };
        let encoder = self.encoder_for(push, job.as_deref());
        let requests = match encoder {
            Some(encoder) => encoder.encode_all(&self.engine, push, job.as_deref()).await,
            None => Ok(None),
        };
        let requests = match requests {
            Ok(requests) => requests,
            // It stays due.
            Err(failure) => {
                tracing::warn!(notice = %push.notice, %failure, "a delivery could not be encoded");
                return;
            }
        };
        let (Some(encoder), Some(requests)) = (encoder, requests) else {
            let over = AttemptResult { status: AttemptStatus::Obsolete, report: None };
            record_attempt(&self.engine, push, over).await;
            return;
        };
        let signer = signer(push, job.as_deref());
        let delivered = AttemptStatus::Delivered { reply: None };
        let mut verdict = AttemptResult { status: delivered, report: None };
        for request in requests {
            let answer = send_signed(&self.engine, &self.egress, signer, request).await;
            verdict = encoder.interpret_response(&self.engine, push, job.as_deref(), &answer);
            if !matches!(verdict.status, AttemptStatus::Delivered { .. }) {
                break;
            }
        }
        record_attempt(&self.engine, push, verdict).await;
    }

    fn encoder_for(&self, push: &Delivery, job: Option<&Job>) -> Option<&Arc<dyn DeliveryEncoder>> {
        encoding_protocol(&self.engine, push, job).and_then(|protocol| self.encoders.get(&protocol))
    }
}

/// The agent with whose secret a delivery is signed. A webhook of a job belongs to its requester.
fn signer(push: &Delivery, job: Option<&Job>) -> Option<AgentId> {
    match (&push.kind, job.map(|job| &job.request.requester)) {
        (NoticeKind::LogEntry { .. }, Some(Requester::Agent(requester))) => Some(*requester),
        _ => push.to,
    }
}

/// The worker's protocol encodes work; the requester's protocol encodes the end of a job.
pub fn encoding_protocol(engine: &Engine, push: &Delivery, job: Option<&Job>) -> Option<Protocol> {
    let home = |id| engine.with_world(|world| world.agent(id).map(|agent| agent.home));
    match push.kind {
        NoticeKind::Ended { .. } | NoticeKind::LogEntry { .. } => job.map(|job| job.request.origin),
        _ => push.to.and_then(home),
    }
}

/// Loads the text of a message or report, which stays in the store until an attempt is made. `None`
/// if it cannot be read, which is logged.
pub async fn load_message_text(engine: &Engine, push: &Delivery) -> Option<Delivery> {
    let has_text = matches!(
        push.kind,
        NoticeKind::Message { .. }
            | NoticeKind::Progress { .. }
            | NoticeKind::OriginalProgress { .. }
            | NoticeKind::LogEntry { .. }
    );
    if !has_text {
        return Some(push.clone());
    }
    match engine.load_row(RowKey::Notice(push.notice)).await {
        Ok(Some(Row::Notice(notice))) => Some(Delivery { kind: notice.news, ..push.clone() }),
        other => {
            let failure = other.err().unwrap_or(Failure::Fault);
            tracing::warn!(notice = %push.notice, %failure, "message text of a delivery could not be read");
            None
        }
    }
}

/// The priority of the job that a delivery is about.
fn priority(world: &World, push: &Delivery) -> u8 {
    let job = push.kind.job().and_then(|job| world.job(job));
    job.map_or(rialto_core::job::DEFAULT_PRIORITY, |job| job.request.priority)
}

/// Signs a request to an agent and sends it.
pub async fn send_signed(
    engine: &Engine,
    egress: &Egress,
    to: Option<AgentId>,
    envelope: OutboundRequest,
) -> Result<HttpResponse, SendError> {
    let headers = signed_headers(engine, to, &envelope);
    egress.post(&envelope.url, headers, envelope.body, envelope.response_max).await
}

/// The headers of a request: its type, its signatures and those of the protocol.
pub fn signed_headers(
    engine: &Engine,
    to: Option<AgentId>,
    envelope: &OutboundRequest,
) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if let Some(secrets) = to.and_then(|agent| active_secrets(engine, agent)) {
        let secrets: Vec<&WebhookSecret> = secrets.iter().collect();
        let signed =
            signature::sign_with_all(&secrets, &envelope.id, engine.wall_time(), &envelope.body);
        headers.extend(signed);
    }
    headers.extend_from_slice(&envelope.headers);
    headers
}

/// The secrets an agent's receiver may verify with now, the newest first.
fn active_secrets(engine: &Engine, agent: AgentId) -> Option<Vec<WebhookSecret>> {
    let now = engine.now();
    let good = |world: &World| Some(world.agent(agent)?.valid_secrets(now).collect::<Vec<u32>>());
    let secret = |generation| engine.hub_secret().webhook_secret(agent, generation);
    Some(engine.with_world(good)?.into_iter().map(secret).collect())
}

/// Records the result of an attempt, with what the response says about the job, in one commit.
pub async fn record_attempt(engine: &Engine, push: &Delivery, attempt: AttemptResult) {
    let result = match attempt.status {
        AttemptStatus::Delivered { reply } => DeliveryResult::Delivered { reply },
        AttemptStatus::Obsolete => DeliveryResult::Obsolete,
        AttemptStatus::EndpointGone => DeliveryResult::EndpointGone,
        AttemptStatus::Failed(why) => {
            let next_try = retry::next_attempt_at(push.attempts + 1, engine.now());
            DeliveryResult::Failed { why, next_try }
        }
    };
    let (notice, report) = (push.notice, attempt.report);
    match engine.run(Command::RecordDelivery { notice, result, report }).await {
        Ok(Answer::Delivery { refused: Some(refusal) }) => {
            tracing::debug!(%notice, %refusal, "report in a delivery response was refused");
        }
        Ok(_) => {}
        Err(failure) => {
            tracing::warn!(%notice, %failure, "result of a delivery could not be recorded");
        }
    }
}

/// Marks a delivery as in flight until dropped, also when an encoder panics.
struct InFlightGuard {
    delivery: Arc<Deliverer>,
    push: Arc<Delivery>,
}

impl Drop for InFlightGuard {
    fn drop(&mut self) {
        self.delivery.in_flight.lock().finish(&self.push);
    }
}
