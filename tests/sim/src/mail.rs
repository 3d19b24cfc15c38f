//! Mail: how far each inbox was acknowledged and handed over, and which turns of which talk were taken,
//! kept from orders alone.

use std::collections::BTreeMap;

use rialto_core::alias::Digest;
use rialto_core::answer::Answer;
use rialto_core::changes::Changes;
use rialto_core::command::{Command, PushEnd, SendMessage};
use rialto_core::id::{AgentId, NoticeId};
use rialto_core::market::Deed;
use rialto_core::notice::{News, Notice};
use rialto_core::refusal::Refusal;
use rialto_core::testkit::Scene;
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
    /// Panics when anything but a receiver's own word moves what is acknowledged, or a turn is taken
    /// twice. `scene` is as it stands afterwards.
    pub fn check(&mut self, command: &Command, decided: &Decided, scene: &Scene) {
        if let Command::Send(order) = command {
            self.sent(order, decided);
        }
        let Ok((changes, answer)) = decided else { return };
        self.told(command, changes, answer, scene);
        for agent in changes.mailboxes.keys() {
            let mailbox = scene.world.mailbox(*agent);
            assert_eq!(mailbox.acked, self.acked(*agent), "acknowledged by nobody: {command:?}");
            let handed = self.presented.get(agent).copied().unwrap_or(0);
            assert_eq!(mailbox.presented, handed, "handed to nobody: {command:?}");
        }
    }

    /// The hub was started again: what was only handed over may be forgotten, and nothing else.
    pub fn started_again(&mut self, world: &World) {
        self.presented.clear();
        for agent in world.agents() {
            let mailbox = world.mailbox(agent.id);
            assert_eq!(mailbox.acked, self.acked(agent.id), "an acknowledgement was lost or made");
            self.presented.insert(agent.id, mailbox.presented);
        }
    }

    fn acked(&self, agent: AgentId) -> u64 {
        self.acked.get(&agent).copied().unwrap_or(0)
    }

    /// Takes in what the order says about reading.
    fn told(&mut self, command: &Command, changes: &Changes, answer: &Answer, scene: &Scene) {
        let head = |agent| scene.world.mailbox(agent).head;
        let delivered =
            matches!(command, Command::PushDone { ended: PushEnd::Delivered { .. }, .. });
        assert!(delivered || changes.arrivals.is_empty(), "arrived by itself: {command:?}");
        match command {
            Command::Ack { agent, up_to } => {
                let acked = self.acked.entry(*agent).or_default();
                *acked = (*up_to).min(head(*agent)).max(*acked);
                assert_eq!(*answer, Answer::Position(*acked), "another position");
            }
            Command::Post(order) => {
                let fresh = matches!(answer, Answer::Posted { repeated: false, .. });
                if let (Deed::Read { agent, up_to }, true) = (&order.deed, fresh)
                    && !scene.world.is_suspended(*agent)
                {
                    let acked = self.acked.entry(*agent).or_default();
                    *acked = (*up_to).min(head(*agent)).max(*acked);
                }
            }
            Command::Present { agent, up_to } => {
                let presented = self.presented.entry(*agent).or_default();
                *presented = (*up_to).min(head(*agent)).max(*presented);
            }
            _ => {
                for arrival in &changes.arrivals {
                    let notice = scene.store.rows.notices.iter().find(|n| n.id == arrival.notice);
                    let notice = notice.expect("what arrives was told");
                    // Only a message is read by arriving.
                    if matches!(notice.news, News::Message { .. }) {
                        self.arrived(notice);
                    }
                }
            }
        }
    }

    /// What came by another way counts as handed over when nothing before it is missing.
    fn arrived(&mut self, notice: &Notice) {
        let agent = notice.to.expect("messages are to somebody");
        let presented = self.presented.get(&agent).copied().unwrap_or(0);
        if notice.position == presented.max(self.acked(agent)) + 1 {
            self.presented.insert(agent, notice.position);
        }
    }

    /// One turn of a talk is one message, and its repeat the same one.
    fn sent(&mut self, order: &SendMessage, decided: &Decided) {
        let refused = decided.as_ref().err();
        let sent = decided.as_ref().ok().map(|(changes, answer)| match answer {
            Answer::Sent { notice, repeated } => (*notice, *repeated, changes),
            other => panic!("a message was answered with {other:?}"),
        });
        let (from, to) = (order.from, order.to);
        let turn = order
            .turn
            .as_ref()
            .map(|turn| ((from, to, turn.conversation.clone(), turn.number), turn.content));
        let known = turn.as_ref().and_then(|(turn, _)| self.turns.get(turn)).copied();
        let same = known.map(|(_, first)| turn.as_ref().is_some_and(|(_, now)| *now == first));
        match (sent, known) {
            (Some((notice, repeated, _)), Some((first, _))) => {
                assert_eq!((notice, repeated, same), (first, true, Some(true)), "one turn, twice");
            }
            (Some((notice, repeated, changes)), None) => {
                assert!(!repeated, "told again what was never said: {order:?}");
                let told: Vec<NoticeId> = changes.notices.iter().map(|one| one.id).collect();
                assert_eq!(told, [notice], "one message is one notice");
                self.turns.extend(turn.map(|(turn, content)| (turn, (notice, content))));
            }
            (None, _) => {
                // Who may write at all is asked first.
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
