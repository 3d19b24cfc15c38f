//! Live inboxes: which inboxes have open readers, and their newest notices in memory.
//!
//! Each agent with an open reader has a short buffer of its last committed notices. A reader that
//! keeps up finds its next notices there and never touches the store. A slower one finds a gap and
//! reads the store. So a slow reader needs no memory and delays no other reader.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parking_lot::Mutex;
use rialto_core::id::AgentId;
use rialto_core::notice::Notice;

use super::Engine;
use crate::cluster::state::CoordinatorRequest;

/// Notices buffered for one agent, and the bytes of their content.
const RECENT_NOTICES_MAX: usize = 64;
const RECENT_BYTES_MAX: usize = 256 << 10;

/// All agents with open readers.
#[derive(Default)]
pub struct LiveInboxes {
    inboxes: Mutex<HashMap<AgentId, RecentNotices>>,
}

/// One agent's readers and its newest notices, without gaps.
#[derive(Default)]
struct RecentNotices {
    readers: usize,
    notices: VecDeque<Arc<Notice>>,
    bytes: usize,
}

impl RecentNotices {
    fn push(&mut self, notice: &Arc<Notice>) {
        self.bytes += size(notice);
        self.notices.push_back(notice.clone());
        while self.notices.len() > RECENT_NOTICES_MAX || self.bytes > RECENT_BYTES_MAX {
            let Some(oldest) = self.notices.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
    }
}

fn size(notice: &Notice) -> usize {
    notice.news.content_bytes()
}

impl LiveInboxes {
    /// The agents that have readers at this node.
    pub fn agents(&self) -> Vec<AgentId> {
        self.inboxes.lock().keys().copied().collect()
    }

    /// Buffers the committed notices of agents that have readers.
    pub fn publish(&self, notices: &[Arc<Notice>]) {
        let mut inboxes = self.inboxes.lock();
        if inboxes.is_empty() {
            return;
        }
        for notice in notices {
            if let Some(recent) = notice.to.and_then(|to| inboxes.get_mut(&to)) {
                recent.push(notice);
            }
        }
    }
}

/// An open reader of an inbox, until dropped.
pub struct InboxSubscription {
    engine: Engine,
    agent: AgentId,
}

impl Engine {
    /// Starts to read an agent's inbox. No later commit for it is missed.
    pub fn subscribe_inbox(&self, agent: AgentId) -> InboxSubscription {
        self.inner.live_inboxes.inboxes.lock().entry(agent).or_default().readers += 1;
        self.note_readers();
        InboxSubscription { engine: self.clone(), agent }
    }

    /// Lets other nodes know soon that the readers of this one have changed.
    fn note_readers(&self) {
        if let Some(cluster) = &self.inner.cluster {
            cluster.readers_changed.store(true, Ordering::Release);
            let _ = cluster.requests.send(CoordinatorRequest::Hint);
        }
    }

    /// Whether the agent's inbox has an open reader, at this node or another.
    pub fn has_inbox_reader(&self, agent: AgentId) -> bool {
        let is_here = self.inner.live_inboxes.inboxes.lock().contains_key(&agent);
        let cluster = || self.inner.cluster.as_ref();
        is_here || cluster().is_some_and(|cluster| cluster.has_remote_reader(agent))
    }

    /// All agents whose inboxes have an open reader, at this node or another.
    pub fn agents_with_readers(&self) -> HashSet<AgentId> {
        let remote = self.inner.cluster.as_ref().map(|cluster| cluster.remote_readers());
        let inboxes = self.inner.live_inboxes.inboxes.lock();
        inboxes.keys().copied().chain(remote.into_iter().flatten()).collect()
    }

    /// The number of readers, over all agents.
    pub fn inbox_reader_count(&self) -> usize {
        self.inner.live_inboxes.inboxes.lock().values().map(|recent| recent.readers).sum()
    }
}

impl InboxSubscription {
    /// The notices after a position, if the buffer has them without a gap; otherwise read the
    /// store.
    pub fn recent_after(&self, position: u64) -> Option<Vec<Arc<Notice>>> {
        let inboxes = self.engine.inner.live_inboxes.inboxes.lock();
        let notices = &inboxes.get(&self.agent)?.notices;
        let first = notices.front()?.position;
        // Positions have no gaps, so the index of the next one can be computed.
        let skipped = usize::try_from((position + 1).checked_sub(first)?).ok()?;
        let found: Vec<_> = notices.iter().skip(skipped).cloned().collect();
        (!found.is_empty()).then_some(found)
    }
}

impl Drop for InboxSubscription {
    fn drop(&mut self) {
        let mut inboxes = self.engine.inner.live_inboxes.inboxes.lock();
        if let Some(recent) = inboxes.get_mut(&self.agent) {
            recent.readers -= 1;
            if recent.readers == 0 {
                inboxes.remove(&self.agent);
                drop(inboxes);
                self.engine.note_readers();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::Protocol;
    use rialto_core::id::NoticeId;
    use rialto_core::notice::NoticeKind;
    use rialto_core::time::Timestamp;

    use super::*;

    fn notice(position: u64, bytes: usize) -> Arc<Notice> {
        let (words, body) = (Protocol::new("test"), "x".repeat(bytes));
        let news =
            NoticeKind::Message { from: Some(AgentId(1)), protocol: words, body, previous: None };
        let (id, to) = (NoticeId(position), Some(AgentId(1)));
        Arc::new(Notice { id, to, position, before: None, at: Timestamp(0), news })
    }

    #[test]
    fn only_the_newest_are_remembered_by_number_and_by_size() {
        let mut recent = RecentNotices::default();
        for position in 1..=100 {
            recent.push(&notice(position, 10));
        }
        assert_eq!(
            (recent.notices.len(), recent.bytes),
            (RECENT_NOTICES_MAX, RECENT_NOTICES_MAX * 10)
        );
        assert_eq!(recent.notices.front().map(|one| one.position), Some(37));
        recent.push(&notice(101, RECENT_BYTES_MAX - 5));
        assert_eq!(recent.notices.len(), 1);
        recent.push(&notice(102, RECENT_BYTES_MAX + 1));
        assert_eq!((recent.notices.len(), recent.bytes), (0, 0));
    }
}
