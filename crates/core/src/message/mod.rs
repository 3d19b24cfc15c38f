//! Messages: one agent writes to another; the inbox keeps them in order.

use crate::answer::Answer;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::notice::News;
use crate::refusal::Refusal;

/// Puts a message into the receiver's inbox.
pub fn send(
    draft: &mut Draft<'_>,
    from: AgentId,
    to: AgentId,
    body: String,
) -> Result<Answer, Refusal> {
    draft.agent(from).filter(|agent| agent.active).ok_or(Refusal::NotAuthenticated)?;
    draft.agent(to).filter(|agent| agent.active).ok_or(Refusal::NoSuchAgent)?;
    let max = draft.world.rules.inbox_messages_max;
    if max > 0 && draft.desk_mut(to).inbox.messages_waiting >= max {
        return Err(Refusal::InboxFull);
    }
    let position = draft.tell(Some(to), News::Message { from, body }, None);
    draft.event(Event::MessageSent { from, to });
    Ok(Answer::Position(position))
}

/// The receiver has everything up to this position.
pub fn ack(draft: &mut Draft<'_>, agent: AgentId, up_to: u64) -> Answer {
    let inbox = &mut draft.desk_mut(agent).inbox;
    let acked = inbox.acked.max(up_to.min(inbox.head));
    if acked > inbox.acked {
        // Notices and messages share positions, so what waits can only be bounded from above.
        inbox.messages_waiting = inbox.messages_waiting.min(inbox.head - acked);
        inbox.acked = acked;
    }
    Answer::Position(inbox.acked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::Command;
    use crate::testkit::Scene;
    use crate::world::Rules;

    fn post(scene: &mut Scene, from: AgentId, to: AgentId) -> Result<u64, Refusal> {
        let body = "hello".to_owned();
        match scene.run(Command::Send { from, to, body })? {
            Answer::Position(position) => Ok(position),
            other => panic!("{other:?}"),
        }
    }

    fn ack(scene: &mut Scene, agent: AgentId, up_to: u64) -> u64 {
        match scene.run(Command::Ack { agent, up_to }).unwrap() {
            Answer::Position(acked) => acked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_inbox_counts_for_itself_without_gap() {
        let mut scene = Scene::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| scene.worker(name, name, &[]));
        assert_eq!(post(&mut scene, a, b), Ok(1));
        assert_eq!(post(&mut scene, a, c), Ok(1));
        assert_eq!(post(&mut scene, c, b), Ok(2));
        assert_eq!(post(&mut scene, b, b), Ok(3));
        let inbox = scene.desk(b).inbox;
        assert_eq!((inbox.head, inbox.acked, inbox.messages_waiting), (3, 0, 3));
        assert_eq!(scene.desk(a).inbox.head, 0);
    }

    #[test]
    fn acknowledging_goes_forward_only_and_never_past_the_end() {
        let mut scene = Scene::default();
        let a = scene.worker("a", "a", &[]);
        for _ in 0..3 {
            post(&mut scene, a, a).unwrap();
        }
        assert_eq!(ack(&mut scene, a, 2), 2);
        assert_eq!(ack(&mut scene, a, 1), 2);
        assert_eq!(ack(&mut scene, a, 99), 3);
        assert_eq!(scene.desk(a).inbox.messages_waiting, 0);
        assert_eq!(post(&mut scene, a, a), Ok(4));
    }

    #[test]
    fn a_full_inbox_refuses_until_something_is_read() {
        let mut scene = Scene::new(Rules { inbox_messages_max: 2, ..Rules::default() });
        let [a, b] = ["a", "b"].map(|name| scene.worker(name, name, &[]));
        post(&mut scene, a, b).unwrap();
        post(&mut scene, a, b).unwrap();
        assert_eq!(post(&mut scene, a, b), Err(Refusal::InboxFull));
        assert_eq!(scene.desk(b).inbox.head, 2);
        ack(&mut scene, b, 1);
        assert_eq!(post(&mut scene, a, b), Ok(3));
        // Zero means no limit.
        scene.world.rules.inbox_messages_max = 0;
        assert_eq!(post(&mut scene, a, b), Ok(4));
    }

    #[test]
    fn only_registered_agents_write_and_are_written_to() {
        let mut scene = Scene::default();
        let [a, b] = ["a", "b"].map(|name| scene.worker(name, name, &[]));
        assert_eq!(post(&mut scene, a, AgentId(99)), Err(Refusal::NoSuchAgent));
        scene.remove(b);
        assert_eq!(post(&mut scene, a, b), Err(Refusal::NoSuchAgent));
        assert_eq!(post(&mut scene, b, a), Err(Refusal::NotAuthenticated));
    }
}
