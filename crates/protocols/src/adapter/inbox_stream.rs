//! An inbox stream: its position, and how it produces its next bytes.
//!
//! Nothing is queued for a stream. Recently committed notices come from the engine's short buffer
//! in memory, older ones from the store. They are read one page at a time, and only when the
//! connection takes bytes, so a slow reader costs one page and slows no other reader. The edge
//! closes a connection that takes nothing at all; the reader resumes later. The reader's protocol
//! encodes the notices.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use rialto_core::id::{AgentId, JobId};
use rialto_core::job::Job;
use rialto_core::notice::{News, Notice};
use rialto_core::time::Timestamp;
use rialto_engine::{Engine, Failure, Listener};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::Floor;
use super::shutdown::Stopping;

/// A page ends after this many events, or with the event that fills this many bytes.
const PAGE_EVENTS: usize = 64;
const PAGE_BYTES: usize = 256 << 10;
/// How many notices are read first, before their size is known.
const FIRST_STEP: usize = 4;
/// How often a ping is sent, which also counts as activity of the reader. New notices, a revoked
/// key and a shutdown are acted on at once. If a wake-up is lost, the next ping notices it.
const PING: Duration = Duration::from_secs(15);

/// Where a stream starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// After a position the reader already has.
    Position(u64),
    /// With the first notice that was not handed out to any connection.
    Unread,
    /// With the first notice the reader has not acknowledged.
    Unacknowledged,
}

/// The jobs that notices are about.
pub type Jobs = HashMap<JobId, Arc<Job>>;

/// How a protocol encodes the notices of an inbox.
pub trait Wording: Send + 'static {
    /// Whether the encoder needs the jobs that notices are about.
    const JOBS: bool;

    /// Whether the reader may still read.
    fn may_read(&self, floor: &Floor, agent: AgentId) -> bool;

    /// The first bytes of a stream, for a reader that has everything up to `after`.
    fn hello(&self, floor: &Floor, agent: AgentId, after: u64) -> Bytes;

    /// A keep-alive.
    fn ping(&self) -> Bytes;

    /// Appends a notice. A notice with no form in this protocol appends nothing.
    fn write(&self, out: &mut Vec<u8>, floor: &Floor, notice: &Notice, jobs: &Jobs);
}

/// One open inbox stream.
pub struct Feed<W> {
    pub(crate) floor: Floor,
    pub(crate) agent: AgentId,
    wording: W,
    listener: Listener,
    bell: Arc<Notify>,
    pub(crate) stopping: Stopping,
    /// The last position that was handed out.
    after: u64,
    /// How many notices are read at once: fewer while they are large.
    step: usize,
    pub(crate) ping_at: Instant,
    greeted: bool,
}

impl<W: Wording> Feed<W> {
    pub fn new(floor: Floor, agent: AgentId, wording: W, from: From, stopping: Stopping) -> Self {
        let engine = &floor.engine;
        let (listener, bell) = (engine.listen(agent), engine.news_of(agent));
        let after = match from {
            From::Position(position) => position,
            From::Unread => engine.read_to(agent),
            From::Unacknowledged => engine.look(|world| world.mailbox(agent).acked),
        };
        let ping_at = Instant::now() + PING;
        let (step, greeted) = (FIRST_STEP, false);
        Self { floor, agent, wording, listener, bell, stopping, after, step, ping_at, greeted }
    }

    /// The last position that was handed out.
    pub fn position(&self) -> u64 {
        self.after
    }

    /// Whether this stream must end, even if notices are left.
    pub fn is_over(&self) -> bool {
        self.stopping.is_now() || !self.wording.may_read(&self.floor, self.agent)
    }

    /// The next bytes; `None` ends the stream. If this future is dropped half-way, nothing counts
    /// as handed out.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.greeted, true) {
            return Some(self.wording.hello(&self.floor, self.agent, self.after));
        }
        loop {
            if self.is_over() {
                return None;
            }
            if Instant::now() >= self.ping_at {
                return Some(self.ping());
            }
            // Read before the page: a page that ends earlier than this is cut off, not outdated.
            let head = self.head();
            let page = match self.listener.after(self.after) {
                Some(recent) => recent,
                None if head > self.after => {
                    let engine = &self.floor.engine;
                    // A store that cannot be read ends the stream. The client learns more when it
                    // resumes.
                    let page = engine.notices_of(self.agent, self.after, self.step).await.ok()?;
                    page.into_iter().map(Arc::new).collect()
                }
                None => {
                    self.wait(self.after, None).await;
                    continue;
                }
            };
            let last = page.last()?.position;
            match self.released(&page, head) {
                Ok(count) => {
                    if let Some(bytes) = self.written(&page[..count]).await {
                        return Some(bytes);
                    }
                }
                Err(until) => self.wait(last, Some(until)).await,
            }
        }
    }

    /// How many notices of a page may go out now, or when the first of them may. Held-back notices
    /// wait only at the end of the inbox: once another notice follows, they go out, so that no
    /// message waits for those of another sender.
    fn released(&self, page: &[Arc<Notice>], head: u64) -> Result<usize, Timestamp> {
        let now = self.floor.engine.now();
        if let Some(at) = page.iter().rposition(|notice| held_until(notice, now).is_none()) {
            return Ok(at + 1);
        }
        let first = page.iter().filter_map(|notice| held_until(notice, now)).min();
        let is_whole = page.last().is_some_and(|last| head <= last.position);
        first.filter(|_| is_whole).map_or(Ok(page.len()), Err)
    }

    fn head(&self) -> u64 {
        self.floor.engine.look(|world| world.mailbox(self.agent).head)
    }

    /// Waits for a notice after position `seen`, the next ping, a shutdown, or the time when a
    /// held-back notice is released.
    async fn wait(&mut self, seen: u64, until: Option<Timestamp>) {
        let told = self.bell.notified();
        tokio::pin!(told);
        // Register for the wake-up first and check the head afterwards, so that none is missed.
        told.as_mut().enable();
        if self.floor.engine.look(|world| world.mailbox(self.agent).head) > seen {
            return;
        }
        let rest = until.map(|until| until.since(self.floor.engine.now()).0.unsigned_abs());
        let wake = rest.map(|rest| Instant::now() + Duration::from_millis(rest));
        tokio::select! {
            () = told => {}
            () = self.stopping.wait() => {}
            () = tokio::time::sleep_until(wake.map_or(self.ping_at, |at| at.min(self.ping_at))) => {}
        }
    }

    /// A page as bytes, if this reader gets anything from it. Notices that no longer fit are read
    /// again for the next page.
    async fn written(&mut self, page: &[Arc<Notice>]) -> Option<Bytes> {
        let mut out = Vec::new();
        // Local until the end, so that a dropped future hands out nothing.
        let (mut taken, mut after) = (0, self.after);
        for notice in page {
            if taken > 0 && out.len() >= PAGE_BYTES {
                break;
            }
            // One job at a time, since each may be large.
            let jobs = match W::JOBS {
                true => jobs_of(&self.floor.engine, std::slice::from_ref(notice)).await.ok()?,
                false => Jobs::new(),
            };
            self.wording.write(&mut out, &self.floor, notice, &jobs);
            after = notice.position;
            taken += 1;
        }
        self.after = after;
        self.step = if taken < page.len() { taken } else { (self.step * 2).min(PAGE_EVENTS) };
        // Only handed to the connection. Receipt is proven by an acknowledgement alone.
        self.floor.engine.presented(self.agent, self.after);
        (!out.is_empty()).then(|| out.into())
    }

    /// A reader that takes pings is active.
    fn ping(&mut self) -> Bytes {
        self.ping_at = Instant::now() + PING;
        self.floor.engine.seen(self.agent);
        self.wording.ping()
    }
}

/// Until when the protocol of a message holds it back.
fn held_until(notice: &Notice, now: Timestamp) -> Option<Timestamp> {
    let News::Message { words, .. } = &notice.news else { return None };
    crate::ALL.iter().find(|face| face.id() == *words)?.held_until(notice, now)
}

/// The jobs a page of notices is about.
pub async fn jobs_of(engine: &Engine, page: &[Arc<Notice>]) -> Result<Jobs, Failure> {
    let mut jobs = Jobs::new();
    for id in page.iter().filter_map(|notice| notice.news.job()) {
        if let std::collections::hash_map::Entry::Vacant(place) = jobs.entry(id)
            && let Some(job) = engine.job(id).await?
        {
            place.insert(job);
        }
    }
    Ok(jobs)
}
