//! Inbox checks: how far each inbox was acknowledged and presented, and which message ids were
//! used, derived from commands alone.

use std::collections::BTreeMap;

use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{Command, DeliveryResult, SendMessage};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::notice::{Notice, NoticeKind};
use rialto_core::refusal::Refusal;
use rialto_core::testkit::TestHub;
use rialto_core::world::World;

/// What was decided, or why not.
type Decided = Result<(Changes, Answer), Refusal>;
/// Sender, receiver, conversation and number.
type Turn = (Option<AgentId>, AgentId, String, u64);

#[derive(Default)]
pub struct Mail {
    acked: BTreeMap<AgentId, u64>,
    presented: BTreeMap<AgentId, u64>,
    turns: BTreeMap<Turn, (NoticeId, Digest)>,
}

impl Mail {
    /// Panics if anything but the receiver's own command moves the acknowledged position, or if a
    /// message id is used twice. `scene` is the state afterwards.
    pub fn check(&mut self, command: &Command, decided: &Decided, scene: &TestHub) {
        if let Command::SendMessage(order) = command {
            self.sent(order, decided);
        }
        let Ok((changes, answer)) = decided else { return };
        self.told(command, changes, answer, scene);
        for agent in changes.inboxes.keys() {
            let mailbox = scene.world.inbox(*agent);
            assert_eq!(mailbox.acked, self.acked(*agent), "acked without a command: {command:?}");
            let handed = self.presented.get(agent).copied().unwrap_or(0);
            assert_eq!(mailbox.presented, handed, "presented without a command: {command:?}");
        }
    }

    /// The hub was restarted: presented positions may be lost, and nothing else.
    pub fn started_again(&mut self, world: &World) {
        self.presented.clear();
        for agent in world.agents() {
            let mailbox = world.inbox(agent.id);
            assert_eq!(mailbox.acked, self.acked(agent.id), "an acknowledgement changed");
            self.presented.insert(agent.id, mailbox.presented);
        }
    }

    fn acked(&self, agent: AgentId) -> u64 {
        self.acked.get(&agent).copied().unwrap_or(0)
    }

    /// Records what the command says about reading.
    fn told(&mut self, command: &Command, changes: &Changes, answer: &Answer, scene: &TestHub) {
        let head = |agent| scene.world.inbox(agent).head;
        let delivered = matches!(
            command,
            Command::RecordDelivery { result: DeliveryResult::Delivered { .. }, .. }
        );
        assert!(
            delivered || changes.completed_deliveries.is_empty(),
            "delivered by itself: {command:?}"
        );
        match command {
            Command::Ack { agent, up_to } => {
                let acked = self.acked.entry(*agent).or_default();
                *acked = (*up_to).min(head(*agent)).max(*acked);
                assert_eq!(*answer, Answer::Position(*acked), "another position");
            }
            Command::AckUnread { agent, up_to } => {
                let fresh = matches!(answer, Answer::MarketOrder { repeated: false, .. });
                if fresh && !scene.world.is_suspended(*agent) {
                    let acked = self.acked.entry(*agent).or_default();
                    *acked = (*up_to).min(head(*agent)).max(*acked);
                }
            }
            Command::MarkPresented { agent, up_to } => {
                let presented = self.presented.entry(*agent).or_default();
                *presented = (*up_to).min(head(*agent)).max(*presented);
            }
            _ => {
                for arrival in changes.completed_deliveries.values() {
                    let notice = scene.store.rows.notices.iter().find(|n| n.id == arrival.notice);
                    let notice = notice.expect("every delivery has a notice");
                    // Only a message counts as read when it is delivered.
                    if matches!(notice.news, NoticeKind::Message { .. }) {
                        self.arrived(notice);
                    }
                }
            }
        }
    }

    /// A delivered notice counts as presented if no earlier one is missing.
    fn arrived(&mut self, notice: &Notice) {
        let agent = notice.to.expect("messages have a receiver");
        let presented = self.presented.get(&agent).copied().unwrap_or(0);
        if notice.position == presented.max(self.acked(agent)) + 1 {
            self.presented.insert(agent, notice.position);
        }
    }

    /// One message id is one message, and a repeat returns the same one.
    fn sent(&mut self, order: &SendMessage, decided: &Decided) {
        let refused = decided.as_ref().err();
        let sent = decided.as_ref().ok().map(|(changes, answer)| match answer {
            Answer::Message { notice, repeated } => (*notice, *repeated, changes),
            other => panic!("a message was answered with {other:?}"),
        });
        let (from, to) = (order.from, order.to);
        let turn = order
            .identity
            .as_ref()
            .map(|turn| ((from, to, turn.conversation.clone(), turn.number), turn.content));
        let known = turn.as_ref().and_then(|(turn, _)| self.turns.get(turn)).copied();
        let same = known.map(|(_, first)| turn.as_ref().is_some_and(|(_, now)| *now == first));
        match (sent, known) {
            (Some((notice, repeated, _)), Some((first, _))) => {
                assert_eq!((notice, repeated, same), (first, true, Some(true)), "same id, twice");
            }
            (Some((notice, repeated, changes)), None) => {
                assert!(!repeated, "replayed what was never sent: {order:?}");
                let told: Vec<NoticeId> = changes.notices.iter().map(|one| one.id).collect();
                assert_eq!(told, [notice], "one message is one notice");
                self.turns.extend(turn.map(|(turn, content)| (turn, (notice, content))));
            }
            (None, _) => {
                // Whether the sender may write at all is checked first.
                use Refusal::{Blocked, NoSuchAgent, NotAuthenticated, Suspended};
                let other = refused == Some(&Refusal::SameIdOtherContent);
                let first =
                    matches!(refused, Some(Blocked | NoSuchAgent | NotAuthenticated | Suspended));
                assert_eq!(other, same == Some(false) && !first, "{refused:?} for {order:?}");
                assert!(same != Some(true) || first, "a repeat was refused: {refused:?}");
            }
        }
    }
}
