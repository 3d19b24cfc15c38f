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
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::time::Timestamp;
use rialto_engine::{Engine, Failure, InboxSubscription};
use tokio::sync::Notify;
use tokio::time::Instant;

use super::ProtocolContext;
use super::shutdown::Shutdown;

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
pub enum StreamStart {
    /// After a position the reader already has.
    Position(u64),
    /// With the first notice that was not handed out to any connection.
    Unread,
    /// With the first notice the reader has not acknowledged.
    Unacknowledged,
}

/// The jobs that notices are about.
pub type JobsById = HashMap<JobId, Arc<Job>>;

/// How a protocol encodes the notices of an inbox.
pub trait InboxEncoder: Send + 'static {
    /// The state of the encoder's protocol.
    type State: Send + Sync + 'static;

    /// Whether the encoder needs the jobs that notices are about.
    const NEEDS_JOBS: bool;

    /// Whether the reader may still read.
    fn is_authorized(&self, context: &ProtocolContext<Self::State>, agent: AgentId) -> bool;

    /// The first bytes of a stream, for a reader that has everything up to `after`.
    fn encode_connected(
        &self,
        context: &ProtocolContext<Self::State>,
        agent: AgentId,
        after: u64,
    ) -> Bytes;

    /// A keep-alive.
    fn encode_ping(&self) -> Bytes;

    /// Appends a notice. A notice with no form in this protocol appends nothing.
    fn encode_notice(
        &self,
        out: &mut Vec<u8>,
        context: &ProtocolContext<Self::State>,
        notice: &Notice,
        jobs: &JobsById,
    );
}

/// One open inbox stream.
pub struct InboxStream<W: InboxEncoder> {
    pub(crate) context: ProtocolContext<W::State>,
    pub(crate) agent: AgentId,
    encoder: W,
    listener: InboxSubscription,
    notify: Arc<Notify>,
    pub(crate) shutdown: Shutdown,
    /// The last position that was handed out.
    after: u64,
    /// How many notices are read at once: fewer while they are large.
    step: usize,
    pub(crate) ping_at: Instant,
    sent_connected: bool,
}

impl<W: InboxEncoder> InboxStream<W> {
    pub fn new(
        context: ProtocolContext<W::State>,
        agent: AgentId,
        encoder: W,
        from: StreamStart,
        stopping: Shutdown,
    ) -> Self {
        let engine = &context.engine;
        let (listener, bell) = (engine.subscribe_inbox(agent), engine.subscribe_agent(agent));
        let after = match from {
            StreamStart::Position(position) => position,
            StreamStart::Unread => engine.read_position(agent),
            StreamStart::Unacknowledged => engine.with_world(|world| world.inbox(agent).acked),
        };
        let ping_at = Instant::now() + PING;
        let (step, greeted) = (FIRST_STEP, false);
        Self {
            context,
            agent,
            encoder,
            listener,
            notify: bell,
            shutdown: stopping,
            after,
            step,
            ping_at,
            sent_connected: greeted,
        }
    }

    /// The last position that was handed out.
    pub fn position(&self) -> u64 {
        self.after
    }

    /// Whether this stream must end, even if notices are left.
    pub fn is_closed(&self) -> bool {
        self.shutdown.is_requested() || !self.encoder.is_authorized(&self.context, self.agent)
    }

    /// The next bytes; `None` ends the stream. If this future is dropped half-way, nothing counts
    /// as handed out.
    pub async fn next(&mut self) -> Option<Bytes> {
        if !std::mem::replace(&mut self.sent_connected, true) {
            return Some(self.encoder.encode_connected(&self.context, self.agent, self.after));
        }
        loop {
            if self.is_closed() {
                return None;
            }
            if Instant::now() >= self.ping_at {
                return Some(self.ping());
            }
            // Read before the page: a page that ends earlier than this is cut off, not outdated.
            let head = self.head();
            let page = match self.listener.recent_after(self.after) {
                Some(recent) => recent,
                None if head > self.after => {
                    let engine = &self.context.engine;
                    // A store that cannot be read ends the stream. The client learns more when it
                    // resumes.
                    let page = engine.load_notices(self.agent, self.after, self.step).await.ok()?;
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
        let now = self.context.engine.now();
        if let Some(at) = page.iter().rposition(|notice| held_until(notice, now).is_none()) {
            return Ok(at + 1);
        }
        let first = page.iter().filter_map(|notice| held_until(notice, now)).min();
        let is_whole = page.last().is_some_and(|last| head <= last.position);
        first.filter(|_| is_whole).map_or(Ok(page.len()), Err)
    }

    fn head(&self) -> u64 {
        self.context.engine.with_world(|world| world.inbox(self.agent).head)
    }

    /// Waits for a notice after position `seen`, the next ping, a shutdown, or the time when a
    /// held-back notice is released.
    async fn wait(&mut self, seen: u64, until: Option<Timestamp>) {
        let told = self.notify.notified();
        tokio::pin!(told);
        // Register for the wake-up first and check the head afterwards, so that none is missed.
        told.as_mut().enable();
        if self.context.engine.with_world(|world| world.inbox(self.agent).head) > seen {
            return;
        }
        let rest = until.map(|until| until.since(self.context.engine.now()).0.unsigned_abs());
        let wake = rest.map(|rest| Instant::now() + Duration::from_millis(rest));
        tokio::select! {
            () = told => {}
            () = self.shutdown.wait() => {}
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
            let jobs = match W::NEEDS_JOBS {
                true => load_jobs(&self.context.engine, std::slice::from_ref(notice)).await.ok()?,
                false => JobsById::new(),
            };
            self.encoder.encode_notice(&mut out, &self.context, notice, &jobs);
            after = notice.position;
            taken += 1;
        }
        self.after = after;
        self.step = if taken < page.len() { taken } else { (self.step * 2).min(PAGE_EVENTS) };
        // Only handed to the connection. Receipt is proven by an acknowledgement alone.
        self.context.engine.record_presented(self.agent, self.after);
        (!out.is_empty()).then(|| out.into())
    }

    /// A reader that takes pings is active.
    fn ping(&mut self) -> Bytes {
        self.ping_at = Instant::now() + PING;
        self.context.engine.record_seen(self.agent);
        self.encoder.encode_ping()
    }
}

/// Until when the protocol of a message holds it back.
fn held_until(notice: &Notice, now: Timestamp) -> Option<Timestamp> {
    let NoticeKind::Message { protocol: words, .. } = &notice.news else { return None };
    crate::ALL.iter().find(|adapter| adapter.id() == *words)?.held_until(notice, now)
}

/// The jobs a page of notices is about.
pub async fn load_jobs(engine: &Engine, page: &[Arc<Notice>]) -> Result<JobsById, Failure> {
    let mut jobs = JobsById::new();
    for id in page.iter().filter_map(|notice| notice.news.job()) {
        if let std::collections::hash_map::Entry::Vacant(place) = jobs.entry(id)
            && let Some(job) = engine.load_job(id).await?
        {
            place.insert(job);
        }
    }
    Ok(jobs)
}
