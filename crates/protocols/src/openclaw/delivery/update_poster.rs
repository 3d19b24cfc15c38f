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
use rialto_core::event::{Event as Fact, HistoryLine};
use rialto_core::id::{AgentId, EventId};
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::World;
use rialto_engine::delivery::{self, AttemptStatus, OutboundRequest, RESPONSE_BYTES_MAX};
use rialto_engine::store::{PageQuery, Row};
use rialto_engine::{WatchFilter, Watcher};
use tokio::sync::Semaphore;
use tokio::task::{Id, JoinSet};
use uuid::Uuid;

use super::{EVENT_HEADER, agent_updates};
use crate::adapter::delivery_result;
use crate::openclaw::ID;
use crate::openclaw::OpenclawContext;
use crate::openclaw::wire::stream::Event;

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
enum QueuedUpdate {
    /// From a history line.
    Line(Arc<HistoryLine>),
    /// A daily reputation update with its body.
    Daily { at: Timestamp, body: String },
}

/// The updates that an agent has not received yet: the newest of each kind.
#[derive(Default)]
struct PendingUpdates {
    status: Option<QueuedUpdate>,
    reputation: Option<QueuedUpdate>,
    /// Failed attempts in a row.
    failures: u32,
    under_way: bool,
}

/// The outcome of an attempt.
enum PostOutcome {
    /// It was delivered, or there is nothing left to deliver.
    Done,
    Failed(Event, QueuedUpdate),
}

/// Posts updates to all agents with an endpoint.
pub struct UpdatePoster {
    context: OpenclawContext,
    watcher: Watcher,
    /// The last history line that was processed.
    line: u64,
    looked: Timestamp,
    pending: HashMap<AgentId, PendingUpdates>,
    attempts: JoinSet<PostOutcome>,
    /// The agent of each attempt's task.
    tasks: HashMap<Id, AgentId>,
    slots: Arc<Semaphore>,
}

impl UpdatePoster {
    pub fn new(context: OpenclawContext) -> Self {
        let engine = &context.engine;
        let watcher = engine.watch_agents(WatchFilter::All);
        let (line, looked) = (*engine.subscribe_history().borrow(), engine.now());
        let slots = Arc::new(Semaphore::new(UNDER_WAY_MAX));
        Self {
            watcher,
            line,
            looked,
            context,
            pending: HashMap::new(),
            attempts: JoinSet::new(),
            tasks: HashMap::new(),
            slots,
        }
    }

    /// Posts updates until it is dropped.
    pub async fn run(mut self) {
        loop {
            tokio::select! {
                () = self.watcher.wait() => {}
                () = tokio::time::sleep(TICK) => {}
                Some(ended) = self.attempts.join_next_with_id() => {
                    match ended {
                        Ok((task, attempt)) => self.ended(task, attempt),
                        Err(error) => self.ended(error.id(), PostOutcome::Done),
                    }
                    continue;
                }
            }
            self.look().await;
        }
    }

    /// Queues what has happened since the last check.
    async fn look(&mut self) {
        let news = self.watcher.take_events();
        if news.missed {
            self.catch_up().await;
        }
        for line in &news.lines {
            self.heard(line);
        }
        let now = self.context.engine.now();
        if now.since(self.looked) >= LOOK {
            self.look_for_days(now);
        }
    }

    /// Reads the lines that did not fit the watcher's queue from the history.
    async fn catch_up(&mut self) {
        loop {
            let page = PageQuery::Lines { after: EventId(self.line), limit: PAGE };
            let rows = self.context.engine.load_page(page).await.unwrap_or_default();
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

    fn heard(&mut self, line: &Arc<HistoryLine>) {
        if line.id.0 <= self.line {
            return;
        }
        self.line = line.id.0;
        for fact in &line.events {
            let Some(agent) = fact.watched_agent() else { continue };
            // A registration alone must not cause a call to the new endpoint.
            let is_enrolment = |one: &Fact| matches!(one, Fact::AgentRegistered { agent: new, .. } if *new == agent);
            if line.events.iter().any(is_enrolment) || !self.is_posted_to(agent) {
                continue;
            }
            let event = match fact {
                Fact::AgentOutcomeRecorded { .. } => Event::Reputation,
                _ => Event::Status,
            };
            self.add(agent, event, QueuedUpdate::Line(line.clone()));
        }
    }

    fn look_for_days(&mut self, now: Timestamp) {
        let all: Vec<Arc<Agent>> = self.context.engine.with_world(|world| {
            let posted_to = |agent: &&Arc<Agent>| endpoint(world, agent.id).is_some();
            world.agents().filter(posted_to).cloned().collect()
        });
        for agent in all {
            let told =
                agent_updates::daily_reputation_update(&self.context, &agent, self.looked, now);
            if let Some((event, body)) = told.filter(|_| self.is_posted_to(agent.id)) {
                self.add(agent.id, event, QueuedUpdate::Daily { at: now, body });
            }
        }
        self.looked = now;
    }

    /// Whether an agent has an endpoint and no stream.
    fn is_posted_to(&self, agent: AgentId) -> bool {
        let engine = &self.context.engine;
        engine.with_world(|world| endpoint(world, agent).is_some())
            && !engine.has_inbox_reader(agent)
    }

    /// Queues an update. It replaces an older one of its kind.
    fn add(&mut self, agent: AgentId, event: Event, update: QueuedUpdate) {
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
        let (context, slots) = (self.context.clone(), self.slots.clone());
        let task = self.attempts.spawn(async move {
            let attempt = post(&context, &slots, agent, event, update).await;
            let pause = match attempt {
                PostOutcome::Done => GAP,
                PostOutcome::Failed(..) => RETRY_AFTER,
            };
            tokio::time::sleep(pause).await;
            attempt
        });
        self.tasks.insert(task.id(), agent);
    }

    fn ended(&mut self, task: Id, attempt: PostOutcome) {
        let Some(agent) = self.tasks.remove(&task) else { return };
        let Some(pending) = self.pending.get_mut(&agent) else { return };
        pending.under_way = false;
        match attempt {
            PostOutcome::Done => pending.failures = 0,
            PostOutcome::Failed(event, update) => {
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

impl PendingUpdates {
    fn place(&mut self, event: Event) -> &mut Option<QueuedUpdate> {
        match event {
            Event::Reputation => &mut self.reputation,
            _ => &mut self.status,
        }
    }

    fn take(&mut self) -> Option<(Event, QueuedUpdate)> {
        let status = self.status.take().map(|update| (Event::Status, update));
        status.or_else(|| self.reputation.take().map(|update| (Event::Reputation, update)))
    }
}

/// The endpoint of an agent of this protocol.
fn endpoint(world: &World, agent: AgentId) -> Option<String> {
    let agent = world.agent(agent).filter(|agent| agent.active && agent.home == ID)?;
    agent.delivery_url()
}

/// Posts an update once, with the same body as on a stream.
async fn post(
    context: &OpenclawContext,
    slots: &Semaphore,
    agent: AgentId,
    event: Event,
    update: QueuedUpdate,
) -> PostOutcome {
    let (engine, egress) = (&context.engine, &context.egress);
    let Ok(_slot) = slots.acquire().await else { return PostOutcome::Done };
    if engine.has_inbox_reader(agent) {
        return PostOutcome::Done;
    }
    let Some(url) = engine.with_world(|world| endpoint(world, agent)) else {
        return PostOutcome::Done;
    };
    let (number, body) = match &update {
        QueuedUpdate::Line(line) => {
            let own = WatchFilter::Agents(HashSet::from([agent]));
            let mut told = agent_updates::updates_in_line(context, line, &own).await.into_iter();
            let Some((_, body)) = told.rfind(|(of, _)| *of == event) else {
                return PostOutcome::Done;
            };
            (line.id.0, body)
        }
        QueuedUpdate::Daily { at, body } => (at.0.unsigned_abs(), body.clone()),
    };
    // A host that has used up its calls for this minute is called later.
    if egress.try_acquire_call(&url, engine.now()).is_err() {
        return PostOutcome::Failed(event, update);
    }
    let headers = vec![(EVENT_HEADER.to_owned(), event.as_str().to_owned())];
    let id = id(agent, event, number);
    let envelope =
        OutboundRequest { url, body: body.into(), id, headers, response_max: RESPONSE_BYTES_MAX };
    let answer = delivery::send_signed(engine, egress, Some(agent), envelope).await;
    match delivery_result::from_status(&answer).status {
        AttemptStatus::Delivered { .. } | AttemptStatus::Obsolete | AttemptStatus::EndpointGone => {
            PostOutcome::Done
        }
        AttemptStatus::Failed(why) => {
            tracing::debug!(%agent, event = event.as_str(), why, "agent update delivery failed");
            PostOutcome::Failed(event, update)
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
