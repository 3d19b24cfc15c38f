//! Delivery: pushing notices to URLs, retrying, and recording what came of it.
//!
//! What is due stands in the world; this room only carries it out. The words are the recipient's
//! protocol's, which is asked through `Courier`. The result of a delivery is a new command.

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

/// Pushes under way at once, and to one host: whoever waits for a host that does not answer must not
/// keep others from being sent to.
const UNDER_WAY: usize = 512;
const TO_ONE_HOST: usize = 16;
/// What a job's answer may have: as much as a job.
pub const JOB_ANSWER_MAX: usize = 1 << 20;
/// What any other answer may have.
pub const ANSWER_MAX: usize = 64 << 10;

/// A push in the recipient's own words.
#[derive(Clone, Debug)]
pub struct Letter {
    pub url: String,
    pub body: Bytes,
    /// The same for every attempt, so that the receiver can tell a repeat.
    pub id: String,
    /// What the protocol adds to the head.
    pub headers: Vec<(String, String)>,
    pub answer_max: usize,
}

/// A protocol's side of delivery.
pub trait Courier: Send + Sync {
    /// The words for the push's URL, whether or not anything is called there.
    fn worded(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter>;

    /// The words that are sent, or nothing when there is no longer anything to say.
    fn letter(&self, engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Letter> {
        self.worded(engine, push, job)
    }

    /// Whether what can be read on an open stream is not sent besides.
    fn prefers_streams(&self) -> bool {
        false
    }

    /// What the answer means, apart from whether the push arrived.
    fn verdict(
        &self,
        engine: &Engine,
        push: &Push,
        job: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict;
}

/// What came of an attempt.
#[derive(Debug)]
pub struct Verdict {
    pub arrived: Arrived,
    /// What the answer says, as commands.
    pub commands: Vec<Command>,
}

/// Whether the push is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// With what was answered, if the protocol keeps it.
    Yes { reply: Option<String> },
    /// It did not, and there is no point in trying again.
    Over,
    /// To be tried again, by the ladder.
    No(String),
    /// The endpoint is gone for good.
    Gone,
}

/// What is being sent now.
#[derive(Default)]
struct UnderWay {
    notices: HashSet<NoticeId>,
    hosts: HashMap<String, usize>,
}

impl UnderWay {
    /// Takes a push up, unless it is under way or its host has enough to do or had enough already.
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

/// The part of a URL that names the machine.
fn host(url: &str) -> &str {
    url.split('/').nth(2).unwrap_or_default()
}

/// Carries pushes out until the engine stops.
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

    /// Watches for what is due and carries it out.
    pub async fn work(self: Arc<Self>) {
        /// A missed hint costs at most this long.
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

    /// What is due and not yet under way.
    fn due(&self, now: Timestamp) -> Vec<Arc<Push>> {
        // What cannot be recorded would be sent again and again.
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
            // Who has had enough this minute is not asked about again for each of its pushes. They
            // stay due, and nothing is recorded against anybody.
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

    /// Whether the agent is about to read it on a stream. If that ends first, it is sent after all.
    fn is_streamed(&self, world: &World, push: &Push, heard: &HashSet<AgentId>) -> bool {
        let Some(agent) = push.to.filter(|to| heard.contains(to)) else { return false };
        let home = world.agent(agent).and_then(|agent| self.couriers.get(&agent.home));
        let streams = home.is_some_and(|courier| courier.prefers_streams());
        streams && world.mailbox(agent).read() < push.position
    }

    async fn carry(&self, push: &Push) {
        // Without its text nothing is tried. It stays due, if the hub goes on at all.
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

/// Work is worded by the worker's protocol, the end of a job by the requester's.
pub fn worded_by(engine: &Engine, push: &Push, job: Option<&Job>) -> Option<Protocol> {
    let home = |id| engine.look(|world| world.agent(id).map(|agent| agent.home));
    match push.news {
        News::Ended { .. } => job.map(|job| job.origin),
        _ => push.to.and_then(home),
    }
}

/// A push as it is sent: with the text of its message, which waits in the store until an attempt is made.
/// `None` when it cannot be read, which is logged.
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

/// How urgent the job is that a push is about.
fn priority(world: &World, push: &Push) -> u8 {
    let job = push.news.job().and_then(|job| world.job(job));
    job.map_or(rialto_core::job::PRIORITY, |job| job.priority)
}

/// Signs a letter to an agent and posts it.
pub async fn post(
    engine: &Engine,
    egress: &Egress,
    to: Option<AgentId>,
    letter: Letter,
) -> Result<Answer, SendError> {
    let headers = headers(engine, to, &letter);
    egress.post(&letter.url, headers, letter.body, letter.answer_max).await
}

/// What a letter's head says: what it is, and that it is from us.
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

/// What an agent's receiver may check with now, the newest first.
fn secrets(engine: &Engine, agent: AgentId) -> Option<Vec<WebhookSecret>> {
    let now = engine.now();
    let good = |world: &World| Some(world.agent(agent)?.secrets(now).collect::<Vec<u32>>());
    let secret = |generation| engine.secret().webhook_secret(agent, generation);
    Some(engine.look(good)?.into_iter().map(secret).collect())
}

/// Records what came of an attempt. First what the answer says, then that the push is over: a crash
/// in between repeats the push.
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
