//! The network: deliveries that are late, lost, doubled and out of order, and those who get them.
//!
//! A receiver remembers what it has, so it can tell whether it was shown the same thing twice, something
//! else in the same place, or less than there is.

use std::collections::{BTreeMap, BTreeSet};

use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{Command, PushEnd};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{News, Notice, Push};
use rialto_core::time::Timestamp;
use rialto_engine::Listener;
use rialto_engine::delivery::retry;

use crate::dice::Dice;
use crate::hub::Hub;

/// Packets on their way at most; what is more is lost.
const UNDER_WAY_MAX: usize = 64;

/// Everything between the hub and its agents.
#[derive(Default)]
pub struct Net {
    under_way: Vec<(AgentId, Notice)>,
    /// Attempts whose end nobody has told the hub yet.
    attempts: Vec<Push>,
    pub receivers: BTreeMap<AgentId, Receiver>,
    connections: BTreeMap<AgentId, Connection>,
    /// Messages somebody was told are sent, by whom they are for.
    promised: BTreeMap<NoticeId, AgentId>,
    /// What was told where, so that two attempts can be compared.
    pushed: BTreeMap<NoticeId, News>,
}

/// An open connection, which hears of what is new without asking the store.
struct Connection {
    listener: Listener,
    /// Everything up to here went over it, or need not.
    at: u64,
}

/// Somebody who reads an inbox and remembers what it has got.
#[derive(Default)]
pub struct Receiver {
    got: BTreeMap<u64, Notice>,
    ids: BTreeSet<NoticeId>,
    /// Everything up to here has come.
    whole: u64,
    /// How far the hub has said it knows.
    acked: u64,
}

impl Receiver {
    /// Takes what came. The same place never holds two things, and one thing has one place.
    fn take(&mut self, notice: Notice) {
        let position = notice.position;
        if let Some(known) = self.got.get(&position) {
            assert_eq!(*known, notice, "another thing in the same place");
            return;
        }
        assert!(self.ids.insert(notice.id), "{} came in two places", notice.id);
        self.got.insert(position, notice);
        while self.got.contains_key(&(self.whole + 1)) {
            self.whole += 1;
        }
    }
}

impl Net {
    /// Somebody reads: what it is given goes on its way. Whether it heard of all that at once.
    pub fn read(&mut self, dice: &mut Dice, hub: &mut Hub, agent: AgentId) -> bool {
        let receiver = self.receivers.entry(agent).or_default();
        // Anew it begins where it was acknowledged, or where it has got to.
        let anew = if dice.chance(20) { receiver.acked } else { receiver.whole };
        self.connects(dice, hub, agent, anew);
        let after = self.connections.get(&agent).map_or(anew, |open| open.at);
        let limit = 1 + dice.roll(8) as usize;
        let page = hub.inbox(agent, after, limit);
        let head = hub.world().mailbox(agent).head;
        is_the_next(&page, after, limit, head);
        let open = self.connections.get_mut(&agent);
        let heard = open.and_then(|open| {
            open.at = page.last().map_or(open.at, |last| last.position);
            open.listener.after(after)
        });
        if let Some(heard) = &heard {
            let heard: Vec<Notice> = heard.iter().map(|notice| Notice::clone(notice)).collect();
            is_the_next(&heard, after, usize::MAX, head);
            assert_eq!(heard[..page.len()], page, "heard of one thing, and read another");
        }
        if let Some(last) = page.last()
            && dice.chance(40)
        {
            hub.presented(agent, last.position);
        }
        for notice in page {
            let copies = dice.of([0, 1, 1, 1, 1, 2]);
            self.under_way.extend((0..copies).map(|_| (agent, notice.clone())));
        }
        while self.under_way.len() > UNDER_WAY_MAX {
            self.under_way.swap_remove(dice.roll(UNDER_WAY_MAX as u64) as usize);
        }
        heard.is_some()
    }

    /// Connections come and go.
    fn connects(&mut self, dice: &mut Dice, hub: &Hub, agent: AgentId, at: u64) {
        match self.connections.contains_key(&agent) {
            true if dice.chance(10) => drop(self.connections.remove(&agent)),
            false if dice.chance(60) => {
                let listener = hub.engine.listen(agent);
                self.connections.insert(agent, Connection { listener, at });
            }
            _ => {}
        }
    }

    /// Somebody who is connected, if there is anybody.
    pub fn connected(&self, dice: &mut Dice) -> Option<AgentId> {
        let agents: Vec<AgentId> = self.connections.keys().copied().collect();
        dice.pick(&agents).copied()
    }

    /// Some of what is under way comes, in any order.
    pub fn arrive(&mut self, dice: &mut Dice) {
        for _ in 0..=dice.roll(12) {
            if self.under_way.is_empty() {
                return;
            }
            let at = dice.roll(self.under_way.len() as u64) as usize;
            let (agent, notice) = self.under_way.swap_remove(at);
            self.receivers.entry(agent).or_default().take(notice);
        }
    }

    /// Somebody says how far it has got; sometimes an old word comes late.
    pub fn ack(&mut self, dice: &mut Dice) -> Option<Command> {
        let agents: Vec<AgentId> = self.receivers.keys().copied().collect();
        let agent = *dice.pick(&agents)?;
        let whole = self.receivers[&agent].whole;
        let up_to = if dice.chance(15) { dice.roll(whole + 1) } else { whole };
        Some(Command::Ack { agent, up_to })
    }

    /// The hub has said how far somebody is acknowledged.
    pub fn acked(&mut self, agent: AgentId, up_to: u64) {
        let receiver = self.receivers.entry(agent).or_default();
        assert!(up_to >= receiver.acked, "an acknowledgement was taken back");
        receiver.acked = up_to;
    }

    /// Attempts begin for what is due.
    pub fn push(&mut self, dice: &mut Dice, hub: &Hub) {
        let due: Vec<Push> =
            hub.world().pushes_due(hub.now()).take(4).map(|push| Push::clone(push)).collect();
        for push in due {
            let told = self.pushed.entry(push.notice).or_insert_with(|| push.news.clone());
            assert_eq!(*told, push.news, "two attempts tell two things");
            if self.attempts.len() < UNDER_WAY_MAX && dice.chance(80) {
                self.attempts.push(push);
            }
        }
    }

    /// How an attempt ended, perhaps told twice.
    pub fn pushed(&mut self, dice: &mut Dice, now: Timestamp) -> Option<Command> {
        let at = dice.roll(self.attempts.len() as u64) as usize;
        let push = self.attempts.get(at)?.clone();
        if dice.chance(85) {
            self.attempts.swap_remove(at);
        }
        let ended = match dice.roll(12) {
            0..=5 => PushEnd::Delivered { reply: dice.chance(30).then(|| "{}".to_owned()) },
            6..=8 => PushEnd::Failed {
                why: "refused".to_owned(),
                next_try: retry::next_try(push.attempts + 1, now).filter(|_| dice.chance(85)),
            },
            9 | 10 => PushEnd::Over,
            _ => PushEnd::Gone,
        };
        Some(Command::PushDone { notice: push.notice, ended })
    }

    /// The hub has died: whatever it was about to be told is lost with it.
    pub fn cut(&mut self) {
        self.attempts.clear();
        self.connections.clear();
    }

    /// What a sender was told: from now on the message must come.
    pub fn answered(&mut self, answer: &Answer, changes: Option<&Changes>) {
        let Answer::Sent { notice, repeated } = *answer else { return };
        if repeated {
            return;
        }
        let written = changes.into_iter().flat_map(|changes| &changes.notices);
        let to = written.filter(|one| one.id == notice).find_map(|one| one.to);
        self.promised.insert(notice, to.expect("what was sent is written"));
    }

    /// The network heals: everybody has everything, in order, once.
    pub fn heal(&mut self, hub: &Hub) {
        let mut agents: Vec<AgentId> = hub.world().agents().map(|agent| agent.id).collect();
        agents.sort_unstable();
        for agent in agents {
            let receiver = self.receivers.entry(agent).or_default();
            let head = hub.world().mailbox(agent).head;
            while receiver.whole < head {
                let page = hub.inbox(agent, receiver.whole, 50);
                is_the_next(&page, receiver.whole, 50, head);
                page.into_iter().for_each(|notice| receiver.take(notice));
            }
            assert_eq!(receiver.got.len() as u64, head, "more than there is");
        }
        for (notice, to) in &self.promised {
            let came = self.receivers.get(to).is_some_and(|one| one.ids.contains(notice));
            assert!(came, "message {notice} was promised to {to} and never came");
        }
    }
}

/// A page goes on where it should, has no gap, and is as long as it can be.
fn is_the_next(page: &[Notice], after: u64, limit: usize, head: u64) {
    let there = head.saturating_sub(after).min(limit as u64);
    assert_eq!(page.len() as u64, there, "a page after {after} of {head}");
    for (at, notice) in (after + 1..).zip(page) {
        assert_eq!(notice.position, at, "an inbox has no gap");
    }
}
