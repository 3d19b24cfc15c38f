//! An open event stream: the agent's inbox, and updates about the agents it watches.
//!
//! One stream carries both, so an event's id is a position in both: in the agent's inbox and in the
//! hub's history.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use rialto_core::agent::Agent;
use rialto_core::agent::key::KeyHash;
use rialto_core::command::Command;
use rialto_core::event::HistoryLine;
use rialto_core::id::{AgentId, EventId, JobId};
use rialto_core::job::Job;
use rialto_core::notice::Notice;
use rialto_core::time::{Millis, Timestamp};
use rialto_engine::store::{PageQuery, Row};
use rialto_engine::{WatchFilter, Watcher};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{agent_updates, notice_event};
use crate::adapter::inbox_stream::{InboxEncoder, InboxStream, JobsById, StreamStart};
use crate::adapter::shutdown::Shutdown;
use crate::kit::sse;
use crate::openclaw::wire::stream::{Connected, Event, StreamPosition};
use crate::openclaw::{ID, errors};
use crate::openclaw::{OpenclawContext, OpenclawState};

/// How often a stream checks for periodic updates.
const LOOK: Duration = Duration::from_secs(15);
/// How often updates about bridged agents are sent. R33 requires one per minute, and a stream
/// checks every 15 s.
const HOSTED: Millis = Millis::seconds(30);
/// The most bridged agents in one round.
const HOSTED_MAX: usize = 1_000;
/// History lines read at once, and how far back a reader may resume.
const PAGE: usize = 256;
const LOOK_BACK: u64 = 20_000;

/// The reader of a stream. Its key must stay valid; on an open hub there may be no key.
#[derive(Clone, Copy)]
pub struct StreamReader {
    pub agent: AgentId,
    pub key: Option<KeyHash>,
}

/// Encodes the notices of the inbox as events.
struct EventEncoder {
    reader: StreamReader,
    line: Arc<AtomicU64>,
}

/// One open stream.
pub struct AgentStream {
    context: OpenclawContext,
    agent: AgentId,
    inbox: InboxStream<EventEncoder>,
    notify: Arc<Notify>,
    watcher: Watcher,
    /// The last history line that was processed.
    line: Arc<AtomicU64>,
    /// The history is read up to this line.
    behind_to: u64,
    look_at: Instant,
    checked_at: Timestamp,
    bridged_sent_at: Timestamp,
    sent_connected: bool,
}

impl AgentStream {
    pub fn new(
        context: OpenclawContext,
        reader: StreamReader,
        watched: WatchFilter,
        from: Option<StreamPosition>,
        stopping: Shutdown,
    ) -> Self {
        let (agent, engine) = (reader.agent, context.engine.clone());
        let watcher = engine.watch_agents(watched);
        let head = *engine.subscribe_history().borrow();
        let inbox_head = engine.with_world(|world| world.inbox(agent).head);
        // A position past the head belongs to another stream; it is ignored.
        let from = from.filter(|from| from.position <= inbox_head && from.line <= head);
        let start = from.map_or(head, |from| from.line.max(head.saturating_sub(LOOK_BACK)));
        let line = Arc::new(AtomicU64::new(start));
        let begin = from.map_or(StreamStart::Unread, |from| StreamStart::Position(from.position));
        let events = EventEncoder { reader, line: line.clone() };
        let now = engine.now();
        Self {
            inbox: InboxStream::new(context.clone(), agent, events, begin, stopping),
            notify: engine.subscribe_agent(agent),
            context,
            agent,
            watcher,
            line,
            behind_to: head,
            look_at: Instant::now() + LOOK,
            checked_at: now,
            bridged_sent_at: now,
            sent_connected: false,
        }
    }

    /// The next bytes; `None` ends the stream.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.sent_connected, true) {
            return self.inbox.next().await;
        }
        loop {
            let bell = self.notify.clone();
            let rung = bell.notified();
            tokio::pin!(rung);
            // From here on no notification is missed, so the state is checked after this.
            rung.as_mut().enable();
            // A reader that lost its access gets no more work either.
            if self.inbox.is_closed() {
                return None;
            }
            self.hand_over().await;
            if let Some(bytes) = self.bulletins().await {
                return Some(bytes);
            }
            // A future that is dropped here has not yet returned any bytes, so nothing is lost.
            tokio::select! {
                bytes = self.inbox.next() => return bytes,
                () = rung => {}
                () = self.watcher.wait() => {}
                () = tokio::time::sleep_until(self.look_at) => {}
            }
        }
    }

    /// Hands over the work that waits for the reader, most urgent first (R93).
    async fn hand_over(&self) {
        let fresh = |job: &&Arc<Job>| {
            let held = job.state.is_assigned();
            held && job.assignment.is_some_and(|turn| !turn.handed_over)
        };
        let mut waiting: Vec<(u8, JobId)> = self.context.engine.with_world(|world| {
            let by_urgency = |agent: &Arc<Agent>| agent.terms.intake.urgent_first;
            if !world.agent(self.agent).is_some_and(by_urgency) {
                return Vec::new();
            }
            let work = world.assigned_jobs(self.agent).filter(fresh);
            work.map(|job| (job.request.priority, job.id)).collect()
        });
        if waiting.is_empty() {
            return;
        }
        waiting.sort_unstable();
        let jobs = waiting.into_iter().map(|(_, job)| job).collect();
        let command = Command::HandOver { agent: self.agent, jobs };
        if let Err(failure) = self.context.engine.run(command).await {
            tracing::debug!(agent = %self.agent, %failure, "job handover failed");
        }
    }

    /// The updates about watched agents that are due.
    async fn bulletins(&mut self) -> Option<Bytes> {
        let mut out = Vec::new();
        // The head is read before the watcher's queue, so every line up to the head is in that
        // queue.
        let head = *self.context.engine.subscribe_history().borrow();
        let news = self.watcher.take_events();
        let at = self.line.load(Ordering::Relaxed);
        // Lines that arrive while the history is being read are read from the history, too.
        if news.missed || at < self.behind_to && !news.lines.is_empty() {
            self.behind_to = head;
        }
        if at < self.behind_to {
            let mut at = at;
            // Most history lines are about other agents, so one page may contain no update.
            while at < self.behind_to && out.is_empty() {
                self.catch_up(&mut out, at).await;
                at = self.line.load(Ordering::Relaxed);
            }
        } else {
            for line in news.lines.iter().filter(|line| line.id.0 > at) {
                self.tell(&mut out, line).await;
            }
            self.line.fetch_max(head, Ordering::Relaxed);
        }
        self.tell_by_time(&mut out);
        (!out.is_empty()).then(|| out.into())
    }

    /// Reads one page of the history, for a reader that was disconnected or slow.
    async fn catch_up(&mut self, out: &mut Vec<u8>, after: u64) {
        let page = PageQuery::Lines { after: EventId(after), limit: PAGE };
        let rows = self.context.engine.load_page(page).await.unwrap_or_default();
        let whole = rows.len() == PAGE;
        for row in rows {
            let Row::Line(line) = row else { continue };
            self.tell(out, &line).await;
        }
        if !whole {
            self.line.fetch_max(self.behind_to, Ordering::Relaxed);
        }
    }

    async fn tell(&self, out: &mut Vec<u8>, line: &HistoryLine) {
        let told = agent_updates::updates_in_line(&self.context, line, self.watcher.filter()).await;
        self.line.fetch_max(line.id.0, Ordering::Relaxed);
        // A reader that got only some events of a line must get the line again, so only its last
        // event has the line's number.
        let last = told.len().saturating_sub(1);
        for (place, (event, body)) in told.into_iter().enumerate() {
            let line = line.id.0 - u64::from(place < last);
            self.write_at(out, event, &body, line);
        }
    }

    /// Sends the periodic updates that are due.
    fn tell_by_time(&mut self, out: &mut Vec<u8>) {
        let now = self.context.engine.now();
        let due = Instant::now() >= self.look_at;
        if due {
            self.look_at = Instant::now() + LOOK;
        }
        let watches_all = *self.watcher.filter() == WatchFilter::All;
        if !due && watches_all {
            return;
        }
        for agent in self.watched_agents() {
            if let Some((event, body)) =
                agent_updates::daily_reputation_update(&self.context, &agent, self.checked_at, now)
            {
                self.write(out, event, &body);
            }
        }
        self.checked_at = now;
        if now.since(self.bridged_sent_at) >= HOSTED {
            self.bridged_sent_at = now;
            let hosted = self.watched_agents().into_iter().filter(|agent| agent.home != ID);
            for agent in hosted.take(HOSTED_MAX) {
                if let Some((event, body)) =
                    agent_updates::bridged_status_update(&self.context, &agent, now)
                {
                    self.write(out, event, &body);
                }
            }
        }
    }

    fn watched_agents(&self) -> Vec<Arc<Agent>> {
        self.context.engine.with_world(|world| match self.watcher.filter() {
            WatchFilter::All => world.agents().filter(|agent| agent.active).cloned().collect(),
            WatchFilter::Agents(agents) => {
                agents.iter().filter_map(|agent| world.agent(*agent).cloned()).collect()
            }
            WatchFilter::Registered => Vec::new(),
        })
    }

    fn write(&self, out: &mut Vec<u8>, event: Event, body: &str) {
        self.write_at(out, event, body, self.line.load(Ordering::Relaxed));
    }

    fn write_at(&self, out: &mut Vec<u8>, event: Event, body: &str, line: u64) {
        let id = format!("{}-{line}", self.inbox.position());
        sse::write_frame(out, Some(&id), event.as_str(), body);
    }
}

/// The agents that a stream watches: its own agent and those it names.
pub fn watched_agents(own: AgentId, others: Vec<AgentId>) -> WatchFilter {
    let mut agents: HashSet<AgentId> = others.into_iter().collect();
    agents.insert(own);
    WatchFilter::Agents(agents)
}

impl InboxEncoder for EventEncoder {
    type State = OpenclawState;

    const NEEDS_JOBS: bool = true;

    fn is_authorized(&self, context: &OpenclawContext, agent: AgentId) -> bool {
        let now = context.engine.now();
        context.engine.with_world(|world| {
            let works = |hash: KeyHash| world.key(&hash).is_some_and(|key| key.is_valid(now));
            world.may_act(agent) && self.reader.key.is_none_or(works)
        })
    }

    fn encode_connected(&self, context: &OpenclawContext, agent: AgentId, after: u64) -> Bytes {
        let name = context.engine.with_world(|world| world.alias_of(agent, ID).map(str::to_owned));
        let common = errors::common_members(context, None);
        let status = Connected::STATUS.to_owned();
        let data = Connected::new(common, status, name.unwrap_or_default());
        let data = serde_json::to_string(&data).unwrap_or_default();
        let mut out = b"retry: 2000\n".to_vec();
        let id = format!("{after}-{}", self.line.load(Ordering::Relaxed));
        sse::write_frame(&mut out, Some(&id), Event::Connected.as_str(), &data);
        out.into()
    }

    fn encode_ping(&self) -> Bytes {
        let mut out = Vec::with_capacity(8);
        sse::write_comment(&mut out, "ping");
        out.into()
    }

    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &OpenclawContext,
        notice: &Notice,
        jobs: &JobsById,
    ) {
        let job = notice.news.job().and_then(|id| jobs.get(&id));
        let Some(envelope) = notice_event(context, notice, job.map(|job| &**job)) else {
            return;
        };
        let id =
            StreamPosition { position: notice.position, line: self.line.load(Ordering::Relaxed) };
        sse::write_frame(out, Some(&id.to_string()), envelope.event, &envelope.body);
    }
}
