//! Inboxes: an agent's inbox positions, and the last message it sent.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, NoticeId};
use crate::notice::{Notice, NoticeClass};

/// The positions of an inbox. They start at 1 and have no gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inbox {
    pub agent: AgentId,
    /// Position of the newest notice; 0 when there is none.
    pub head: u64,
    /// Everything up to here has been acknowledged.
    pub acked: u64,
    /// Everything up to here was presented to a reader of the agent's inbox.
    pub presented: u64,
    pub newest: Option<NoticeId>,
    /// Messages and offers not presented yet; an upper bound.
    pub messages_waiting: u64,
    /// The same for notices about others' jobs. The agent also learns of these in other ways.
    #[serde(default)]
    pub work_waiting: u64,
    /// The newest message the agent sent.
    #[serde(rename = "sent")]
    pub last_sent: Option<NoticeId>,
}

impl Inbox {
    /// The inbox of an agent that neither received nor sent anything.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            head: 0,
            acked: 0,
            presented: 0,
            newest: None,
            messages_waiting: 0,
            work_waiting: 0,
            last_sent: None,
        }
    }

    /// Adds a notice at the end. A notice it already has is ignored, so an inbox row written
    /// earlier can be brought up to date from the notices alone.
    pub fn receive(&mut self, notice: &Notice) {
        if notice.position <= self.head {
            return;
        }
        self.head = notice.position;
        self.newest = Some(notice.id);
        match notice.news.class() {
            NoticeClass::FromOthers => self.messages_waiting += 1,
            NoticeClass::Work => self.work_waiting += 1,
            NoticeClass::OwnJob => {}
        }
    }

    /// Records a message the agent sent.
    pub fn record_sent(&mut self, notice: NoticeId) {
        self.last_sent = self.last_sent.max(Some(notice));
    }

    /// The last position that needs no presenting.
    pub fn read_position(&self) -> u64 {
        self.acked.max(self.presented)
    }

    /// The receiver acknowledges everything up to this position.
    pub fn ack(&mut self, up_to: u64) {
        self.acked = self.acked.max(up_to.min(self.head));
        self.cap_waiting();
    }

    /// Everything up to this position was presented.
    pub fn mark_presented(&mut self, up_to: u64) {
        self.presented = self.presented.max(up_to.min(self.head));
        self.cap_waiting();
    }

    /// What counts towards the limit.
    pub fn waiting_count(&self) -> u64 {
        self.messages_waiting + self.work_waiting
    }

    /// A message was delivered other than by reading the inbox.
    pub fn mark_delivered(&mut self, position: u64) {
        if position == self.read_position() + 1 {
            self.mark_presented(position);
        } else if position > self.read_position() {
            self.messages_waiting = self.messages_waiting.saturating_sub(1);
        }
    }

    /// The agent listed or received its work other than by reading the inbox, so it knows the state
    /// of all its work.
    pub fn clear_work_waiting(&mut self) {
        self.work_waiting = 0;
    }

    /// All kinds share positions, so the waiting counts can only be bounded from above.
    fn cap_waiting(&mut self) {
        let rest = self.head - self.read_position();
        self.messages_waiting = self.messages_waiting.min(rest);
        self.work_waiting = self.work_waiting.min(rest - self.messages_waiting);
    }
}
