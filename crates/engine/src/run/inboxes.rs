//! Inboxes: notices after a position, oldest first.
//!
//! Each notice names the previous one, so an old notice is found by walking back from the newest.
//! At intervals the walk records a seek point, and the next page of the same inbox starts from
//! there.

use std::collections::{BTreeMap, HashMap, VecDeque};

use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::Notice;

use super::history::PAGE_BYTES;
use super::{Engine, Failure};
use crate::store::chain::Chain;
use crate::store::{Reader, Row, RowKey, StoreError};

/// One seek point per this many positions.
const SEEK_POINT_EVERY: u64 = 256;
/// Seek points for all inboxes together: a few megabytes.
const SEEK_POINTS_MAX: usize = 65_536;

/// Where in an inbox a walk back may start. Only a shortcut: without one the walk is longer.
#[derive(Debug, Default)]
pub struct SeekPoints {
    by_agent: HashMap<AgentId, BTreeMap<u64, NoticeId>>,
    count: usize,
}

impl SeekPoints {
    /// The nearest known notice at or after a position, and its own position.
    fn nearest(&self, agent: AgentId, position: u64) -> Option<(u64, NoticeId)> {
        let marks = self.by_agent.get(&agent)?;
        marks.range(position..).next().map(|(at, id)| (*at, *id))
    }

    /// Adds seek points, and drops those of acknowledged notices.
    fn add(&mut self, agent: AgentId, acked: u64, marks: Vec<(u64, NoticeId)>) {
        if marks.is_empty() {
            return;
        }
        if self.count + marks.len() > SEEK_POINTS_MAX {
            *self = Self::default();
        }
        let known = self.by_agent.entry(agent).or_default();
        self.count -= known.len();
        *known = known.split_off(&acked);
        known.extend(marks.into_iter().take(SEEK_POINTS_MAX));
        self.count += known.len();
    }
}

impl Engine {
    /// Notices of one inbox after a position, oldest first. Returns fewer than `limit` if they are
    /// long; none means the end of the inbox.
    pub async fn load_notices(
        &self,
        agent: AgentId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Notice>, Failure> {
        let inbox = self.with_world(|world| world.inbox(agent));
        if inbox.head <= after || limit == 0 {
            return Ok(Vec::new());
        }
        let last = after.saturating_add(limit as u64);
        let newest = inbox.newest.map(|newest| (inbox.head, newest));
        let from = self.inner.seek_points.lock().nearest(agent, last).or(newest);
        let (found, marks) =
            self.read_store(move |reader| walk_back(reader, from, after, limit)).await?;
        self.inner.seek_points.lock().add(agent, inbox.acked, marks);
        Ok(found)
    }
}

type NoticePage = (Vec<Notice>, Vec<(u64, NoticeId)>);

/// Walks back to the first wanted notice. Keeps only the oldest `limit`, and at most one page.
fn walk_back(
    reader: &mut dyn Reader,
    from: Option<(u64, NoticeId)>,
    after: u64,
    limit: usize,
) -> Result<NoticePage, StoreError> {
    let (mut found, mut marks) = (VecDeque::new(), Vec::new());
    let (mut next, mut bytes) = (from, 0);
    // Positions have no gaps, so the number of notices to walk is known.
    while let Some((position, id)) = next.filter(|(position, _)| *position > after) {
        let rest = (position - after).min(SEEK_POINT_EVERY);
        let rows = reader.load_chain(Chain::Inbox, RowKey::Notice(id), rest as usize)?;
        let missing = || StoreError::Corrupt(format!("notice {id} is referenced but missing"));
        if rows.is_empty() {
            return Err(missing());
        }
        for row in rows {
            let Row::Notice(notice) = row else { return Err(missing()) };
            next = notice.before.map(|before| (notice.position.saturating_sub(1), before));
            if notice.position <= after {
                break;
            }
            if notice.position % SEEK_POINT_EVERY == 0 {
                marks.push((notice.position, notice.id));
            }
            bytes += notice.news.content_bytes();
            found.push_front(notice);
            while found.len() > limit || bytes > PAGE_BYTES && found.len() > 1 {
                bytes -= found.pop_back().map_or(0, |last| last.news.content_bytes());
            }
        }
    }
    Ok((found.into(), marks))
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGENT: AgentId = AgentId(1);

    #[test]
    fn a_walk_begins_at_the_nearest_mark_behind_what_is_wanted() {
        let mut marks = SeekPoints::default();
        marks.add(AGENT, 0, vec![(256, NoticeId(2)), (512, NoticeId(5))]);
        assert_eq!(marks.nearest(AGENT, 100), Some((256, NoticeId(2))));
        assert_eq!(marks.nearest(AGENT, 256), Some((256, NoticeId(2))));
        assert_eq!(marks.nearest(AGENT, 257), Some((512, NoticeId(5))));
        assert_eq!(marks.nearest(AGENT, 513), None);
        assert_eq!(marks.nearest(AgentId(2), 1), None);
    }

    #[test]
    fn marks_do_not_pile_up() {
        let mut marks = SeekPoints::default();
        marks.add(AGENT, 0, vec![(256, NoticeId(2)), (512, NoticeId(5))]);
        marks.add(AGENT, 300, vec![(768, NoticeId(9))]);
        assert_eq!((marks.count, marks.nearest(AGENT, 1)), (2, Some((512, NoticeId(5)))));
        let many = |from: u64| (from..from + 40_000).map(|at| (at, NoticeId(at))).collect();
        marks.add(AgentId(2), 0, many(1));
        marks.add(AgentId(3), 0, many(1));
        assert_eq!((marks.count, marks.nearest(AgentId(2), 1)), (40_000, None));
    }
}
