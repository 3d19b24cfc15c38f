//! The network: deliveries that are late, lost, duplicated and out of order, and their receivers.
//!
//! A receiver remembers what it got, so it detects the same notice twice, another notice at the
//! same position, or a missing one.

use std::collections::{BTreeMap, BTreeSet};

use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{Command, DeliveryResult};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Delivery, Notice, NoticeKind};
use rialto_core::testkit::TestHub;
use rialto_core::time::Timestamp;
use rialto_core::world::World;
use rialto_engine::InboxSubscription;
use rialto_engine::delivery::retry;

use crate::dice::Dice;
use crate::hub::Hub;
use crate::orders::work;

/// Packets in flight at most; more are lost.
const UNDER_WAY_MAX: usize = 64;

/// Everything between the hub and its agents.
#[derive(Default)]
pub struct Net {
    under_way: Vec<(AgentId, Notice)>,
    /// Attempts whose result is not reported to the hub yet.
    attempts: Vec<Delivery>,
    pub receivers: BTreeMap<AgentId, Receiver>,
    connections: BTreeMap<AgentId, Connection>,
    /// Messages that the hub confirmed as sent, and their receivers.
    promised: BTreeMap<NoticeId, AgentId>,
    /// What each delivery contained, so that two attempts can be compared.
    pushed: BTreeMap<NoticeId, NoticeKind>,
}

/// An open connection, which gets new notices without a read of the store.
struct Connection {
    listener: InboxSubscription,
    /// Everything up to here was sent over it, or need not be.
    at: u64,
}

/// A reader of an inbox that remembers what it got.
#[derive(Default)]
pub struct Receiver {
    got: BTreeMap<u64, Notice>,
    ids: BTreeSet<NoticeId>,
    /// Everything up to here has arrived.
    whole: u64,
    /// The acknowledged position that the hub has confirmed.
    acked: u64,
}

impl Receiver {
    /// Takes a notice that arrived. A position never has two notices, and a notice has one
    /// position.
    fn take(&mut self, notice: Notice) {
        let position = notice.position;
        if let Some(known) = self.got.get(&position) {
            assert_eq!(*known, notice, "another notice at the same position");
            return;
        }
        assert!(self.ids.insert(notice.id), "{} came at two positions", notice.id);
        self.got.insert(position, notice);
        while self.got.contains_key(&(self.whole + 1)) {
            self.whole += 1;
        }
    }
}

impl Net {
    /// An agent reads: the notices it gets are sent. Returns whether all of them came from memory.
    pub fn read(&mut self, dice: &mut Dice, hub: &mut Hub, agent: AgentId) -> bool {
        let receiver = self.receivers.entry(agent).or_default();
        // A new reader starts at the acknowledged position, or at the last one that arrived.
        let anew = if dice.chance(20) { receiver.acked } else { receiver.whole };
        self.connects(dice, hub, agent, anew);
        let after = self.connections.get(&agent).map_or(anew, |open| open.at);
        let limit = 1 + dice.roll(8) as usize;
        let page = hub.inbox(agent, after, limit);
        let head = hub.world().inbox(agent).head;
        is_the_next(&page, after, limit, head);
        let open = self.connections.get_mut(&agent);
        let heard = open.and_then(|open| {
            open.at = page.last().map_or(open.at, |last| last.position);
            open.listener.recent_after(after)
        });
        if let Some(heard) = &heard {
            let heard: Vec<Notice> = heard.iter().map(|notice| Notice::clone(notice)).collect();
            is_the_next(&heard, after, usize::MAX, head);
            assert_eq!(heard[..page.len()], page, "the live buffer differs from the store");
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

    /// Connections open and close.
    fn connects(&mut self, dice: &mut Dice, hub: &Hub, agent: AgentId, at: u64) {
        match self.connections.contains_key(&agent) {
            true if dice.chance(10) => drop(self.connections.remove(&agent)),
            false if dice.chance(60) => {
                let listener = hub.engine.subscribe_inbox(agent);
                self.connections.insert(agent, Connection { listener, at });
            }
            _ => {}
        }
    }

    /// A connected agent, if there is one.
    pub fn connected(&self, dice: &mut Dice) -> Option<AgentId> {
        let agents: Vec<AgentId> = self.connections.keys().copied().collect();
        dice.pick(&agents).copied()
    }

    /// Some packets in flight arrive, in any order.
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

    /// An agent acknowledges what it got; sometimes an old acknowledgement comes late.
    pub fn ack(&mut self, dice: &mut Dice) -> Option<Command> {
        let agents: Vec<AgentId> = self.receivers.keys().copied().collect();
        let agent = *dice.pick(&agents)?;
        let whole = self.receivers[&agent].whole;
        let up_to = if dice.chance(15) { dice.roll(whole + 1) } else { whole };
        Some(Command::Ack { agent, up_to })
    }

    /// The hub has confirmed an agent's acknowledged position.
    pub fn acked(&mut self, agent: AgentId, up_to: u64) {
        let receiver = self.receivers.entry(agent).or_default();
        assert!(up_to >= receiver.acked, "an acknowledgement was reverted");
        receiver.acked = up_to;
    }

    /// Attempts start for due deliveries.
    pub fn push(&mut self, dice: &mut Dice, world: &World, now: Timestamp) {
        let due = world.deliveries_due(now).take(4);
        let due: Vec<Delivery> = due.map(|push| Delivery::clone(push)).collect();
        for push in due {
            let told = self.pushed.entry(push.notice).or_insert_with(|| push.kind.clone());
            assert_eq!(*told, push.kind, "two attempts have different contents");
            if self.attempts.len() < UNDER_WAY_MAX && dice.chance(80) {
                self.attempts.push(push);
            }
        }
    }

    /// The result of an attempt, sometimes reported twice.
    pub fn pushed(&mut self, dice: &mut Dice, scene: &TestHub, now: Timestamp) -> Option<Command> {
        let at = dice.roll(self.attempts.len() as u64) as usize;
        let push = self.attempts.get(at)?.clone();
        if dice.chance(85) {
            self.attempts.swap_remove(at);
        }
        let ended = match dice.roll(12) {
            0..=5 => DeliveryResult::Delivered { reply: dice.chance(30).then(|| "{}".to_owned()) },
            6..=8 => DeliveryResult::Failed {
                why: "refused".to_owned(),
                next_try: retry::next_attempt_at(push.attempts + 1, now)
                    .filter(|_| dice.chance(85)),
            },
            9 | 10 => DeliveryResult::Obsolete,
            _ => DeliveryResult::EndpointGone,
        };
        let report = if dice.chance(50) { work::reported(dice, scene, &push) } else { None };
        Some(Command::RecordDelivery { notice: push.notice, result: ended, report })
    }

    /// The hub has crashed: everything about to be reported to it is lost.
    pub fn cut(&mut self) {
        self.attempts.clear();
        self.connections.clear();
    }

    /// What a sender was answered: from now on the message must arrive.
    pub fn answered(&mut self, answer: &Answer, changes: Option<&Changes>) {
        let Answer::Message { notice, repeated } = *answer else { return };
        if repeated {
            return;
        }
        let written = changes.into_iter().flat_map(|changes| &changes.notices);
        let to = written.filter(|one| one.id == notice).find_map(|one| one.to);
        self.promised.insert(notice, to.expect("every sent message is written"));
    }

    /// The network recovers: every agent gets everything, in order, once.
    pub fn heal(&mut self, hub: &Hub) {
        let mut agents: Vec<AgentId> = hub.world().agents().map(|agent| agent.id).collect();
        agents.sort_unstable();
        for agent in agents {
            let receiver = self.receivers.entry(agent).or_default();
            let head = hub.world().inbox(agent).head;
            while receiver.whole < head {
                let page = hub.inbox(agent, receiver.whole, 50);
                is_the_next(&page, receiver.whole, 50, head);
                page.into_iter().for_each(|notice| receiver.take(notice));
            }
            assert_eq!(receiver.got.len() as u64, head, "more notices than exist");
        }
        for (notice, to) in &self.promised {
            let came = self.receivers.get(to).is_some_and(|one| one.ids.contains(notice));
            assert!(came, "message {notice} was confirmed for {to}, but never arrived");
        }
    }
}

/// Checks that a page starts where it should, has no gap, and is as long as it can be.
pub fn is_the_next(page: &[Notice], after: u64, limit: usize, head: u64) {
    let there = head.saturating_sub(after).min(limit as u64);
    assert_eq!(page.len() as u64, there, "a page after {after} of {head}");
    for (at, notice) in (after + 1..).zip(page) {
        assert_eq!(notice.position, at, "an inbox has no gaps");
    }
}
