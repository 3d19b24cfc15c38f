//! Live inboxes: which inboxes have open readers, and their newest notices in memory.
//!
//! Each agent with an open reader has a short buffer of its last committed notices. A reader that
//! keeps up finds its next notices there and never touches the store. A slower one finds a gap and
//! reads the store. So a slow reader needs no memory and delays no other reader.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::id::AgentId;
use rialto_core::notice::{News, Notice};

use super::Engine;

/// Notices buffered for one agent, and the bytes of messages among them.
const RECENT: usize = 64;
const RECENT_BYTES: usize = 256 << 10;

/// All agents with open readers.
#[derive(Default)]
pub struct Live {
    inboxes: Mutex<HashMap<AgentId, Recent>>,
}

/// One agent's readers and its newest notices, without gaps.
#[derive(Default)]
struct Recent {
    readers: usize,
    notices: VecDeque<Arc<Notice>>,
    bytes: usize,
}

impl Recent {
    fn keep(&mut self, notice: &Arc<Notice>) {
        self.bytes += size(notice);
        self.notices.push_back(notice.clone());
        while self.notices.len() > RECENT || self.bytes > RECENT_BYTES {
            let Some(oldest) = self.notices.pop_front() else { break };
            self.bytes -= size(&oldest);
        }
    }
}

fn size(notice: &Notice) -> usize {
    match &notice.news {
        News::Message { body, .. } => body.len(),
        _ => 0,
    }
}

impl Live {
    /// Buffers the committed notices of agents that have readers.
    pub fn tell(&self, notices: &[Arc<Notice>]) {
        let mut inboxes = self.inboxes.lock();
        if inboxes.is_empty() {
            return;
        }
        for notice in notices {
            if let Some(recent) = notice.to.and_then(|to| inboxes.get_mut(&to)) {
                recent.keep(notice);
            }
        }
    }
}

/// An open reader of an inbox, until dropped.
pub struct Listener {
    engine: Engine,
    agent: AgentId,
}

impl Engine {
    /// Starts to read an agent's inbox. No later commit for it is missed.
    pub fn listen(&self, agent: AgentId) -> Listener {
        self.inner.live.inboxes.lock().entry(agent).or_default().readers += 1;
        Listener { engine: self.clone(), agent }
    }

    /// Whether the agent's inbox has an open reader.
    pub fn is_heard(&self, agent: AgentId) -> bool {
        self.inner.live.inboxes.lock().contains_key(&agent)
    }

    /// All agents whose inboxes have an open reader.
    pub fn heard(&self) -> HashSet<AgentId> {
        self.inner.live.inboxes.lock().keys().copied().collect()
    }

    /// The number of readers, over all agents.
    pub fn listeners(&self) -> usize {
        self.inner.live.inboxes.lock().values().map(|recent| recent.readers).sum()
    }
}

impl Listener {
    /// The notices after a position, if the buffer has them without a gap; otherwise read the
    /// store.
    pub fn after(&self, position: u64) -> Option<Vec<Arc<Notice>>> {
        let inboxes = self.engine.inner.live.inboxes.lock();
        let notices = &inboxes.get(&self.agent)?.notices;
        let first = notices.front()?.position;
        // Positions have no gaps, so the index of the next one can be computed.
        let skipped = usize::try_from((position + 1).checked_sub(first)?).ok()?;
        let found: Vec<_> = notices.iter().skip(skipped).cloned().collect();
        (!found.is_empty()).then_some(found)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let mut inboxes = self.engine.inner.live.inboxes.lock();
        if let Some(recent) = inboxes.get_mut(&self.agent) {
            recent.readers -= 1;
            if recent.readers == 0 {
                inboxes.remove(&self.agent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::alias::Protocol;
    use rialto_core::id::NoticeId;
    use rialto_core::time::Timestamp;

    use super::*;

    fn notice(position: u64, bytes: usize) -> Arc<Notice> {
        let (words, body) = (Protocol::new("test"), "x".repeat(bytes));
        let news = News::Message { from: Some(AgentId(1)), words, body, follows: None };
        let (id, to) = (NoticeId(position), Some(AgentId(1)));
        Arc::new(Notice { id, to, position, before: None, at: Timestamp(0), news })
    }

    #[test]
    fn only_the_newest_are_remembered_by_number_and_by_size() {
        let mut recent = Recent::default();
        for position in 1..=100 {
            recent.keep(&notice(position, 10));
        }
        assert_eq!((recent.notices.len(), recent.bytes), (RECENT, RECENT * 10));
        assert_eq!(recent.notices.front().map(|one| one.position), Some(37));
        recent.keep(&notice(101, RECENT_BYTES - 5));
        assert_eq!(recent.notices.len(), 1);
        recent.keep(&notice(102, RECENT_BYTES + 1));
        assert_eq!((recent.notices.len(), recent.bytes), (0, 0));
    }
}
