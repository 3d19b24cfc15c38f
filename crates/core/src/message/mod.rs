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
