//! Mailboxes: where an agent's inbox stands, and what it sent last.

use serde::{Deserialize, Serialize};

use crate::id::{AgentId, NoticeId};
use crate::notice::{Kind, Notice};

/// Where an inbox stands. Positions start at 1 and have no gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mailbox {
    pub agent: AgentId,
    /// Position of the newest notice; 0 when there is none.
    pub head: u64,
    /// Everything up to here has been acknowledged.
    pub acked: u64,
    /// Everything up to here has been handed to somebody who reads for the agent.
    pub presented: u64,
    pub newest: Option<NoticeId>,
    /// Messages and offers nobody has been handed yet, or a few more.
    pub messages_waiting: u64,
    /// The same of what was told about others' jobs. The agent also learns of these elsewhere.
    #[serde(default)]
    pub work_waiting: u64,
    /// The newest message the agent wrote.
    pub sent: Option<NoticeId>,
}

impl Mailbox {
    /// The mailbox of an agent that has neither been told nor said anything.
    pub fn new(agent: AgentId) -> Self {
        Self {
            agent,
            head: 0,
            acked: 0,
            presented: 0,
            newest: None,
            messages_waiting: 0,
            work_waiting: 0,
            sent: None,
        }
    }

    /// Takes in a notice at its end. One it has is not taken twice, so that a mailbox that was
    /// written down a while ago can be brought up to date from the notices alone.
    pub fn receive(&mut self, notice: &Notice) {
        if notice.position <= self.head {
            return;
        }
        self.head = notice.position;
        self.newest = Some(notice.id);
        match notice.news.kind() {
            Kind::Word => self.messages_waiting += 1,
            Kind::Work => self.work_waiting += 1,
            Kind::Own => {}
        }
    }

    /// Takes in a message the agent wrote.
    pub fn wrote(&mut self, notice: NoticeId) {
        self.sent = self.sent.max(Some(notice));
    }

    /// The last position that needs no more presenting.
    pub fn read(&self) -> u64 {
        self.acked.max(self.presented)
    }

    /// The receiver has everything up to this position, and says so.
    pub fn ack(&mut self, up_to: u64) {
        self.acked = self.acked.max(up_to.min(self.head));
        self.settle();
    }

    /// Everything up to this position has been handed over.
    pub fn present(&mut self, up_to: u64) {
        self.presented = self.presented.max(up_to.min(self.head));
        self.settle();
    }

    /// What counts against the limit.
    pub fn waiting(&self) -> u64 {
        self.messages_waiting + self.work_waiting
    }

    /// A message has arrived by another way than by reading the inbox.
    pub fn arrived(&mut self, position: u64) {
        if position == self.read() + 1 {
            self.present(position);
        } else if position > self.read() {
            self.messages_waiting = self.messages_waiting.saturating_sub(1);
        }
    }

    /// The agent has asked for its work, or got it, by another way than by reading the inbox, so it
    /// knows how all of it stands.
    pub fn took_work(&mut self) {
        self.work_waiting = 0;
    }

    /// All kinds share positions, so what waits can only be bounded from above.
    fn settle(&mut self) {
        let rest = self.head - self.read();
        self.messages_waiting = self.messages_waiting.min(rest);
        self.work_waiting = self.work_waiting.min(rest - self.messages_waiting);
    }
}
