//! Delivery: sends due notices to URLs, retries, and records the results.
//!
//! The world holds what is due; this module only sends it. The recipient's protocol encodes it
//! through `DeliveryEncoder`. The result of an attempt is a new command.

pub mod egress;
pub mod retry;
pub mod signature;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use rialto_core::alias::Protocol;
use rialto_core::command::{Command, PushEnd};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::job::Job;
use rialto_core::notice::{News, Push};
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use tokio::sync::Semaphore;

use crate::run::{Engine, Failure};
use crate::store::{Key, Row};
use egress::{Answer, Egress, SendError};
use signature::WebhookSecret;

/// Deliveries in flight in total and to one host, so that a host that does not answer cannot block
/// deliveries to others.
const UNDER_WAY: usize = 512;
const TO_ONE_HOST: usize = 16;
/// Bytes of the response to a job: as much as a job may have.
pub const JOB_ANSWER_MAX: usize = 1 << 20;
/// Bytes of any other response.
pub const ANSWER_MAX: usize = 64 << 10;

/// A delivery encoded in the recipient's protocol.
#[derive(Clone, Debug)]
pub struct Letter {
    pub url: String,
    pub body: Bytes,
    /// The same for every attempt, so that the receiver can detect a repeat.
    pub id: String,
    /// Headers that the protocol adds.
    pub headers: Vec<(String, String)>,
    pub answer_max: usize,
}

/// A protocol's part of delivery.
pub trait Courier: Send + Sync {
    /// Encodes the delivery for its URL, whether or not it is to be sent.
    fn worded(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter>;

    /// Encodes the delivery for sending, or returns `None` if there is no longer anything to send.
    fn letter(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        self.worded(engine, push, job)
    }

    /// Whether a notice that an open stream will carry is not also sent.
    fn prefers_streams(&self) -> bool {
        false
    }

    /// What the response means: whether the delivery succeeded, and the commands that follow from
    /// it.
    fn verdict(
        &self,
        engine: &Engine,
        push: &Push,
        job: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict;
}

/// The result of an attempt.
#[derive(Debug)]
pub struct Verdict {
    pub arrived: Arrived,
    /// The commands that follow from the response.
    pub commands: Vec<Command>,
}

/// Whether the delivery is finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// Delivered, with the response body if the protocol keeps it.
    Yes { reply: Option<String> },
    /// Not delivered, and a retry is pointless.
    Over,
    /// To be retried with backoff.
    No(String),
    /// The endpoint is gone permanently.
    Gone,
}

/// The deliveries in flight.
#[derive(Default)]
struct UnderWay {
    notices: HashSet<NoticeId>,
    hosts: HashMap<String, usize>,
}

impl UnderWay {
    /// Starts a delivery, unless it is in flight already or its host is at a limit.
    fn take_up(&mut self, push: &Push, has_turn: impl FnOnce() -> bool) -> bool {
        let host = host(&push.url);
        let busy = self.hosts.get(host).is_some_and(|count| *count >= TO_ONE_HOST);
        if busy || self.notices.contains(&push.notice) || !has_turn() {
            return false;
        }
        *self.hosts.entry(host.to_owned()).or_default() += 1;
        self.notices.insert(push.notice)
    }

    fn put_down(&mut self, push: &Push) {
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
pub struct Delivery {
    engine: Engine,
    egress: Arc<Egress>,
    couriers: HashMap<Protocol, Arc<dyn Courier>>,
    under_way: Mutex<UnderWay>,
    slots: Arc<Semaphore>,
}

impl Delivery {
    pub fn new(
        engine: Engine,
        egress: Arc<Egress>,
        couriers: HashMap<Protocol, Arc<dyn Courier>>,
    ) -> Arc<Self> {
        let slots = Arc::new(Semaphore::new(UNDER_WAY));
        Arc::new(Self { engine, egress, couriers, under_way: Mutex::default(), slots })
    }

    /// Waits for due deliveries and sends them.
    pub async fn work(self: Arc<Self>) {
        /// The most a missed hint can delay a delivery.
        const LOOK_AGAIN: Duration = Duration::from_secs(1);
        let mut hints = self.engine.pushes();
        loop {
            hints.borrow_and_update();
            let now = self.engine.now();
            for push in self.due(now) {
                let Ok(slot) = self.slots.clone().acquire_owned().await else { return };
                let way = Way { delivery: self.clone(), push };
                tokio::spawn(async move {
                    way.delivery.carry(&way.push).await;
                    drop((way, slot));
                });
            }
            let next = self.engine.look(|world| world.next_push());
            let wait = next.filter(|at| *at > now).map_or(LOOK_AGAIN, |at| {
                Duration::from_millis(at.since(now).0.unsigned_abs()).min(LOOK_AGAIN)
            });
            tokio::select! {
                changed = hints.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// The due deliveries that are not in flight yet.
    fn due(&self, now: Timestamp) -> Vec<Arc<Push>> {
        // A result that cannot be recorded would make the hub send the delivery again and again.
        if !self.engine.is_writable() {
            return Vec::new();
        }
        if self.engine.look(|world| world.next_push()).is_none_or(|at| at > now) {
            return Vec::new();
        }
        let heard = self.engine.heard();
        let mut under_way = self.under_way.lock();
        self.engine.look(|world| {
            let due = world.pushes_due(now).filter(|push| !self.is_streamed(world, push, &heard));
            let mut due: Vec<&Arc<Push>> = due.collect();
            // The most urgent first, and among equals the longest due.
            due.sort_by_key(|push| priority(world, push));
            // A host at its rate limit is not checked again for each of its deliveries. They stay
            // due, and no failure is recorded.
            let mut sated = HashSet::new();
            let mut has_turn = |push: &Push| {
                let host = host(&push.url);
                let turn = !sated.contains(host) && self.egress.take_turn(&push.url, now).is_ok();
                turn || {
                    sated.insert(host.to_owned());
                    false
                }
            };
            let fresh = due.into_iter().filter(|push| under_way.take_up(push, || has_turn(push)));
            fresh.take(UNDER_WAY).cloned().collect()
        })
    }

    /// Whether a stream will carry the notice to the agent. If the stream ends first, it is sent
    /// after all.
    fn is_streamed(&self, world: &World, push: &Push, heard: &HashSet<AgentId>) -> bool {
        let Some(agent) = push.to.filter(|to| heard.contains(to)) else { return false };
        let home = world.agent(agent).and_then(|agent| self.couriers.get(&agent.home));
        let streams = home.is_some_and(|courier| courier.prefers_streams());
        streams && world.mailbox(agent).read() < push.position
    }

    async fn carry(&self, push: &Push) {
        // Without the text there is no attempt. The delivery stays due.
        let Some(push) = &with_text(&self.engine, push).await else { return };
        let job = match push.news.job() {
            Some(job) => self.engine.job(job).await.ok().flatten(),
            None => None,
        };
        let courier = self.courier(push, job.as_deref());
        let letter = courier.and_then(|courier| courier.letter(&self.engine, push, job.as_deref()));
        let (Some(courier), Some(letter)) = (courier, letter) else {
            let over = Verdict { arrived: Arrived::Over, commands: Vec::new() };
            record(&self.engine, push, over).await;
            return;
        };
        let answer = post(&self.engine, &self.egress, push.to, letter).await;
        let verdict = courier.verdict(&self.engine, push, job.as_deref(), &answer);
        record(&self.engine, push, verdict).await;
    }

    fn courier(&self, push: &Push, job: Option<&Job>) -> Option<&Arc<dyn Courier>> {
        worded_by(&self.engine, push, job).and_then(|protocol| self.couriers.get(&protocol))
    }
}

/// The worker's protocol encodes work; the requester's protocol encodes the end of a job.
pub fn worded_by(engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Protocol> {
    let home = |id| engine.look(|world| world.agent(id).map(|agent| agent.home));
    match push.news {
        News::Ended { .. } => job.map(|job| job.origin),
        _ => push.to.and_then(home),
    }
}

/// Loads the text of a message delivery, which stays in the store until an attempt is made. `None`
/// if it cannot be read, which is logged.
pub async fn with_text(engine: &Engine, push: &Push) -> Option<Push> {
    if !matches!(push.news, News::Message { .. }) {
        return Some(push.clone());
    }
    match engine.row(Key::Notice(push.notice)).await {
        Ok(Some(Row::Notice(notice))) => Some(Push { news: notice.news, ..push.clone() }),
        other => {
            let failure = other.err().unwrap_or(Failure::Fault);
            tracing::warn!(notice = %push.notice, %failure, "message text of a delivery could not be read");
            None
        }
    }
}

/// The priority of the job that a delivery is about.
fn priority(world: &World, push: &Push) -> u8 {
    let job = push.news.job().and_then(|job| world.job(job));
    job.map_or(rialto_core::job::PRIORITY, |job| job.priority)
}

/// Signs a request to an agent and sends it.
pub async fn post(
    engine: &Engine,
    egress: &Egress,
    to: Option<AgentId>,
    letter: Letter,
) -> Result<Answer, SendError> {
    let headers = headers(engine, to, &letter);
    egress.post(&letter.url, headers, letter.body, letter.answer_max).await
}

/// The headers of a request: its type, its signatures and those of the protocol.
pub fn headers(engine: &Engine, to: Option<AgentId>, letter: &Letter) -> Vec<(String, String)> {
    let mut headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    if let Some(secrets) = to.and_then(|agent| secrets(engine, agent)) {
        let secrets: Vec<&WebhookSecret> = secrets.iter().collect();
        let signed = signature::sign_with_each(&secrets, &letter.id, engine.wall(), &letter.body);
        headers.extend(signed);
    }
    headers.extend_from_slice(&letter.headers);
    headers
}

/// The secrets an agent's receiver may verify with now, the newest first.
fn secrets(engine: &Engine, agent: AgentId) -> Option<Vec<WebhookSecret>> {
    let now = engine.now();
    let good = |world: &World| Some(world.agent(agent)?.secrets(now).collect::<Vec<u32>>());
    let secret = |generation| engine.secret().webhook_secret(agent, generation);
    Some(engine.look(good)?.into_iter().map(secret).collect())
}

/// Records the result of an attempt: first the commands from the response, then the end of the
/// delivery. A crash in between repeats the delivery.
pub async fn record(engine: &Engine, push: &Push, verdict: Verdict) {
    for command in verdict.commands {
        if let Err(failure) = engine.run(command).await {
            tracing::debug!(notice = %push.notice, %failure, "command from a delivery response was refused");
        }
    }
    let ended = match verdict.arrived {
        Arrived::Yes { reply } => PushEnd::Delivered { reply },
        Arrived::Over => PushEnd::Over,
        Arrived::Gone => PushEnd::Gone,
        Arrived::No(why) => {
            let next_try = retry::next_try(push.attempts + 1, engine.now());
            PushEnd::Failed { why, next_try }
        }
    };
    let done = Command::PushDone { notice: push.notice, ended };
    if let Err(failure) = engine.run(done).await {
        tracing::warn!(notice = %push.notice, %failure, "result of a delivery could not be recorded");
    }
}

/// Marks a delivery as in flight until dropped, also when an encoder panics.
struct Way {
    delivery: Arc<Delivery>,
    push: Arc<Push>,
}

impl Drop for Way {
    fn drop(&mut self) {
        self.delivery.under_way.lock().put_down(&self.push);
    }
}
