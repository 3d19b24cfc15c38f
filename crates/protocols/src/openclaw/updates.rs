//! Posts status and reputation updates to agents with an endpoint while they have no open stream.
//!
//! An update is about the current state, so only the newest of each kind matters. Updates are not
//! stored: one that cannot be delivered is dropped after a few attempts, and the state can be read
//! at any time. So a dead endpoint leaves nothing behind in the delivery queue or in an inbox (ADR
//! 32).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use rialto_core::agent::Agent;
use rialto_core::event::{Event as Fact, Line};
use rialto_core::id::{AgentId, EventId};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use rialto_engine::delivery::{self, ANSWER_MAX, Arrived, Letter};
use rialto_engine::store::{Page, Row};
use rialto_engine::{Watched, Watcher};
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};
use uuid::Uuid;

use super::courier::EVENT_HEADER;
use super::stream::Event;
use super::{ID, bulletin};
use crate::adapter::{Floor, delivery_result};

/// The most concurrent posts, for all agents together.
const UNDER_WAY_MAX: usize = 64;
/// The most agents with pending updates. Updates for further agents are dropped.
const AGENTS_MAX: usize = 10_000;
/// The least time between two updates to one agent; changes in between are in the next one.
const GAP: Duration = Duration::from_secs(1);
/// The most attempts at one post, and the delay before the next attempt.
const ATTEMPTS_MAX: u32 = 3;
const RETRY_AFTER: Duration = Duration::from_secs(5);
/// How often the daily reputation updates are checked.
const LOOK: Millis = Millis::minutes(1);
const TICK: Duration = Duration::from_secs(15);
/// History lines read at once.
const PAGE: usize = 256;

/// An update that is to be posted.
#[derive(Clone)]
enum Update {
    /// From a history line.
    Line(Arc<Line>),
    /// A daily reputation update with its body.
    Daily { at: Timestamp, body: String },
}

/// The updates that an agent has not received yet: the newest of each kind.
#[derive(Default)]
struct Pending {
    status: Option<Update>,
    reputation: Option<Update>,
    /// Failed attempts in a row.
    failures: u32,
    under_way: bool,
}

/// The outcome of an attempt.
enum Attempt {
    /// It was delivered, or there is nothing left to deliver.
    Done,
    Failed(Event, Update),
}

/// Posts updates to all agents with an endpoint.
pub struct Updates {
    floor: Floor,
    watcher: Watcher,
    /// The last history line that was processed.
    line: u64,
    looked: Timestamp,
    pending: HashMap<AgentId, Pending>,
    attempts: JoinSet<Attempt>,
    /// The agent of each attempt's task.
    tasks: HashMap<Id, AgentId>,
    slots: Arc<Semaphore>,
}

impl Updates {
    pub fn new(floor: Floor) -> Self {
        let engine = &floor.engine;
        let watcher = engine.watch(Watched::All);
        let (line, looked) = (*engine.lines().borrow(), engine.now());
        let slots = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        Self {
            watcher,
            line,
            looked,
            floor,
            pending: HashMap::new(),
            attempts: JoinSet::new(),
            tasks: HashMap::new(),
            slots,
        }
    }

    /// Posts updates until it is dropped.
    pub async fn work(mut self) {
        loop {
            tokio::select! {
                () = self.watcher.told() => {}
                () = tokio::time::sleep(TICK) => {}
                Some(ended) = self.attempts.join_next_with_id() => {
                    match ended {
                        Ok((task, attempt)) => self.ended(task, attempt),
                        Err(error) => self.ended(error.id(), Attempt::Done),
                    }
                    continue;
                }
            }
            self.look().await;
        }
    }

    /// Queues what has happened since the last check.
    async fn look(&mut self) {
        let news = self.watcher.take();
        if news.missed {
            self.catch_up().await;
        }
        for line in &news.lines {
            self.heard(line);
        }
        let now = self.floor.engine.now();
        if now.since(self.looked) >= LOOK {
            self.look_for_days(now);
        }
    }

    /// Reads the lines that did not fit the watcher's queue from the history.
    async fn catch_up(&mut self) {
        loop {
            let page = Page::Lines { after: EventId(self.line), limit: PAGE };
            let rows = self.floor.engine.page(page).await.unwrap_or_default();
            let last = rows.len() < PAGE;
            for row in rows {
                if let Row::Line(line) = row {
                    self.heard(&Arc::new(line));
                }
            }
            if last {
                return;
            }
        }
    }

    fn heard(&mut self, line: &Arc<Line>) {
        if line.id.0 <= self.line {
            return;
        }
        self.line = line.id.0;
        for fact in &line.events {
            let Some(agent) = fact.watched() else { continue };
            // A registration alone must not cause a call to the new endpoint.
            let is_enrolment =
                |one: &Fact| matches!(one, Fact::AgentEnrolled { agent: new, .. } if *new == agent);
            if line.events.iter().any(is_enrolment) || !self.is_posted_to(agent) {
                continue;
            }
            let event = match fact {
                Fact::AgentJudged { .. } => Event::Reputation,
                _ => Event::Status,
            };
            self.add(agent, event, Update::Line(line.clone()));
        }
    }

    fn look_for_days(&mut self, now: Timestamp) {
        let all: Vec<Arc<Agent>> = self.floor.engine.look(|world| {
            let posted_to = |agent: &&Arc<Agent>| endpoint(world, agent.id).is_some();
            world.agents().filter(posted_to).cloned().collect()
        });
        for agent in all {
            let told = bulletin::periodic(&self.floor, &agent, self.looked, now);
            if let Some((event, body)) = told.filter(|_| self.is_posted_to(agent.id)) {
                self.add(agent.id, event, Update::Daily { at: now, body });
            }
        }
        self.looked = now;
    }

    /// Whether an agent has an endpoint and no stream.
    fn is_posted_to(&self, agent: AgentId) -> bool {
        let engine = &self.floor.engine;
        engine.look(|world| endpoint(world, agent).is_some()) && !engine.is_heard(agent)
    }

    /// Queues an update. It replaces an older one of its kind.
    fn add(&mut self, agent: AgentId, event: Event, update: Update) {
        if self.pending.len() >= AGENTS_MAX && !self.pending.contains_key(&agent) {
            return;
        }
        let pending = self.pending.entry(agent).or_default();
        *pending.place(event) = Some(update);
        self.attempt(agent);
    }

    /// Posts an agent's pending update, unless one is under way.
    fn attempt(&mut self, agent: AgentId) {
        let Some(pending) = self.pending.get_mut(&agent).filter(|one| !one.under_way) else {
            return;
        };
        let Some((event, update)) = pending.take() else {
            self.pending.remove(&agent);
            return;
        };
        pending.under_way = true;
        let (floor, slots) = (self.floor.clone(), self.slots.clone());
        let task = self.attempts.spawn(async move {
            let attempt = post(&floor, &slots, agent, event, update).await;
            let pause = match attempt {
                Attempt::Done => GAP,
                Attempt::Failed(..) => RETRY_AFTER,
            };
            tokio::time::sleep(pause).await;
            attempt
        });
        self.tasks.insert(task.id(), agent);
    }

    fn ended(&mut self, task: Id, attempt: Attempt) {
        let Some(agent) = self.tasks.remove(&task) else { return };
        let Some(pending) = self.pending.get_mut(&agent) else { return };
        pending.under_way = false;
        match attempt {
            Attempt::Done => pending.failures = 0,
            Attempt::Failed(event, update) => {
                pending.failures += 1;
                if pending.failures >= ATTEMPTS_MAX {
                    self.pending.remove(&agent);
                    return;
                }
                // Kept for the next attempt, unless there is a newer one.
                pending.place(event).get_or_insert(update);
            }
        }
        self.attempt(agent);
    }
}

impl Pending {
    fn place(&mut self, event: Event) -> &mut Option<Update> {
        match event {
            Event::Reputation => &mut self.reputation,
            _ => &mut self.status,
        }
    }

    fn take(&mut self) -> Option<(Event, Update)> {
        let status = self.status.take().map(|update| (Event::Status, update));
        status.or_else(|| self.reputation.take().map(|update| (Event::Reputation, update)))
    }
}

/// The endpoint of an agent of this protocol.
fn endpoint(world: &World, agent: AgentId) -> Option<String> {
    let agent = world.agent(agent).filter(|agent| agent.active && agent.home == ID)?;
    agent.push_url()
}

/// Posts an update once, with the same body as on a stream.
async fn post(
    floor: &Floor,
    slots: &Semaphore,
    agent: AgentId,
    event: Event,
    update: Update,
) -> Attempt {
    let (engine, egress) = (&floor.engine, &floor.egress);
    let Ok(_slot) = slots.acquire().await else { return Attempt::Done };
    if engine.is_heard(agent) {
        return Attempt::Done;
    }
    let Some(url) = engine.look(|world| endpoint(world, agent)) else { return Attempt::Done };
    let (number, body) = match &update {
        Update::Line(line) => {
            let own = Watched::These(HashSet::from([agent]));
            let mut told = bulletin::of_line(floor, line, &own).await.into_iter();
            let Some((_, body)) = told.rfind(|(of, _)| *of == event) else { return Attempt::Done };
            (line.id.0, body)
        }
        Update::Daily { at, body } => (at.0.unsigned_abs(), body.clone()),
    };
    // A host that has used up its calls for this minute is called later.
    if egress.take_turn(&url, engine.now()).is_err() {
        return Attempt::Failed(event, update);
    }
    let headers = vec![(EVENT_HEADER.to_owned(), event.as_str().to_owned())];
    let id = id(agent, event, number);
    let letter = Letter { url, body: body.into(), id, headers, answer_max: ANSWER_MAX };
    let answer = delivery::post(engine, egress, Some(agent), letter).await;
    match delivery_result::by_status(&answer).arrived {
        Arrived::Yes { .. } | Arrived::Over | Arrived::Gone => Attempt::Done,
        Arrived::No(why) => {
            tracing::debug!(%agent, event = event.as_str(), why, "agent update delivery failed");
            Attempt::Failed(event, update)
        }
    }
}

/// The delivery id, the same for every attempt at one update.
fn id(agent: AgentId, event: Event, number: u64) -> String {
    const SPACE: Uuid = Uuid::from_u128(0x5d0f_8a5e_6c1b_5e0c_9b52_a60a_70c1_e004);
    let mut bytes = event.as_str().as_bytes().to_vec();
    bytes.extend(agent.0.to_be_bytes());
    bytes.extend(number.to_be_bytes());
    Uuid::new_v5(&SPACE, &bytes).to_string()
}
