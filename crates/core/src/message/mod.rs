//! Messages: one agent writes to another; the inbox keeps them in order.

pub mod inbox;

use crate::agent::suspension;
use crate::alias::{ClaimTarget, claim};
use crate::answer::Answer;
use crate::command::SendMessage;
use crate::draft::Draft;
use crate::event::Event;
use crate::id::AgentId;
use crate::job::{Job, end, grace_period};
use crate::notice::NoticeKind;
use crate::refusal::Refusal;
use crate::time::Millis;

/// Agents one agent may block. The list is read for every message to it, so it stays short.
pub const BLOCKED_MAX: usize = 1_000;

/// Adds a message to the receiver's inbox, and a delivery if a URL is given.
pub fn send(draft: &mut Draft<'_>, order: SendMessage) -> Result<Answer, Refusal> {
    let SendMessage { from, to, protocol, body, url, first_try, identity, by_operator } = order;
    if let Some(from) = from {
        draft.agent(from).filter(|agent| agent.active).ok_or(Refusal::NotAuthenticated)?;
        suspension::ensure_not_suspended(draft, from)?;
    }
    let receiver = draft.agent(to).filter(|agent| agent.active).ok_or(Refusal::NoSuchAgent)?;
    if from.is_some_and(|from| receiver.blocks(from)) {
        return Err(Refusal::Blocked);
    }
    if let Some(identity) = &identity
        && let Some(ClaimTarget::Message { notice, content }) =
            draft.claim_target(claim::message(from, to, identity))
    {
        if content != identity.content {
            return Err(Refusal::SameIdOtherContent);
        }
        return Ok(Answer::Message { notice, repeated: true });
    }
    if is_inbox_full(draft, to) {
        return Err(Refusal::InboxFull);
    }
    let previous = from.and_then(|from| draft.inbox(from).last_sent);
    let news = NoticeKind::Message { from, protocol, body, previous };
    let notice = draft.notify_after(Some(to), news, url, first_try);
    if let Some(from) = from {
        draft.inbox_mut(from).record_sent(notice);
    }
    if let Some(identity) = identity {
        let target = ClaimTarget::Message { notice, content: identity.content };
        draft.add_claim(claim::message(from, to, &identity), target);
    }
    // A message is its own record. History only records what the operator did in another's name.
    if let Some(from) = from.filter(|_| by_operator) {
        draft.add_event(Event::SentByOperator { from, to });
    }
    Ok(Answer::Message { notice, repeated: false })
}

/// Invitations may fill 1/`INVITATIONS_SHARE` of an inbox. The rest is kept for messages and work,
/// regardless of the number of auctions.
const INVITATIONS_SHARE: u64 = 2;

/// Work may fill 1/`WORK_SHARE` of an inbox regardless of the number of waiting messages.
const WORK_SHARE: u64 = 2;

/// Notices of free work for new owners and guests may fill 1/`STRANGERS_SHARE` of an inbox. Each
/// may be followed by a notice that the job was withdrawn, so together they take up to twice this
/// share, which is less than [`WORK_SHARE`] keeps for work.
const STRANGERS_SHARE: u64 = 8;

/// Whether an agent's inbox is full for messages.
pub fn is_inbox_full(draft: &Draft<'_>, agent: AgentId) -> bool {
    let max = draft.world.rules.inbox_messages_max;
    max > 0 && draft.inbox(agent).waiting_count() >= max
}

/// Whether an agent can be notified of this job. Unread messages do not prevent it: work is also
/// fetched and delivered in other ways.
pub fn can_receive_work(draft: &Draft<'_>, agent: AgentId, job: &Job) -> bool {
    let has_part = |max: u64| draft.inbox(agent).work_waiting < max.div_ceil(WORK_SHARE);
    match draft.world.rules.inbox_messages_max {
        0 => true,
        max => {
            takes_strangers(draft, agent, job) && (!is_inbox_full(draft, agent) || has_part(max))
        }
    }
}

/// Whether an agent can be invited to make an offer for this job.
pub fn can_receive_invitations(draft: &Draft<'_>, agent: AgentId, job: &Job) -> bool {
    match draft.world.rules.inbox_messages_max {
        0 => true,
        max => {
            takes_strangers(draft, agent, job)
                && draft.inbox(agent).waiting_count() < max.div_ceil(INVITATIONS_SHARE)
        }
    }
}

/// Whether the job is not free work for a new owner or guest, or the inbox has room for such work.
fn takes_strangers(draft: &Draft<'_>, agent: AgentId, job: &Job) -> bool {
    let room = strangers_room(draft.world.rules.inbox_messages_max);
    draft.inbox(agent).work_waiting < room || !end::is_free_for_new_owner(draft, job, agent)
}

/// How many notices about others' jobs may wait in an inbox that accepts one more free job of a new
/// owner or guest.
pub fn strangers_room(max: u64) -> u64 {
    (max / STRANGERS_SHARE).max(1)
}

/// The agent listed its work or reported about it, so it knows the state of all its work.
pub fn knows_work(draft: &mut Draft<'_>, agent: AgentId) {
    if draft.inbox(agent).work_waiting > 0 {
        draft.inbox_mut(agent).clear_work_waiting();
        // This change cannot be rebuilt from notices, so the row must be written.
        draft.persist_inbox(agent);
    }
}

/// Sends the command's original text to an agent, and to its endpoint if it has the same protocol.
pub fn forward(draft: &mut Draft<'_>, to: AgentId) -> Result<Answer, Refusal> {
    let original = draft.original.as_ref().ok_or(Refusal::NotAuthenticated)?;
    let (from, protocol, body) = (Some(original.by), original.protocol, original.body.clone());
    let receiver = draft.agent(to).filter(|agent| agent.home == protocol);
    let url = receiver.and_then(|receiver| receiver.delivery_url());
    let (first_try, identity, by_operator) = (Millis(0), None, false);
    let order = SendMessage { from, to, protocol, body, url, first_try, identity, by_operator };
    send(draft, order)
}

/// The receiver acknowledges everything up to this position.
pub fn ack(draft: &mut Draft<'_>, agent: AgentId, up_to: u64) -> Answer {
    draft.inbox_mut(agent).ack(up_to);
    draft.persist_inbox(agent);
    grace_period::mark_read(draft, agent, up_to);
    Answer::Position(draft.inbox(agent).acked)
}

/// The same for readers that share an inbox: only the first of them gets what it read.
pub fn ack_unread(draft: &mut Draft<'_>, agent: AgentId, up_to: u64) -> Result<Answer, Refusal> {
    let inbox = draft.inbox(agent);
    if inbox.acked >= up_to.min(inbox.head) {
        return Err(Refusal::NotFound);
    }
    Ok(ack(draft, agent, up_to))
}

/// A reader of the agent's inbox received everything up to this position.
pub fn mark_presented(draft: &mut Draft<'_>, agent: AgentId, up_to: u64) -> Answer {
    draft.inbox_mut(agent).mark_presented(up_to);
    grace_period::mark_read(draft, agent, up_to);
    Answer::Done
}

/// Blocks or unblocks another agent's messages.
pub fn set_blocked(
    draft: &mut Draft<'_>,
    agent: AgentId,
    whom: AgentId,
    blocked: bool,
) -> Result<Answer, Refusal> {
    let own = draft.agent(agent).filter(|agent| agent.active);
    let mut own = own.cloned().ok_or(Refusal::NoSuchAgent)?;
    match own.blocked.binary_search(&whom) {
        Ok(at) if !blocked => drop(own.blocked.remove(at)),
        Err(at) if blocked => {
            if own.blocked.len() >= BLOCKED_MAX {
                return Err(Refusal::TooManyBlocked { max: BLOCKED_MAX });
            }
            own.blocked.insert(at, whom);
        }
        _ => return Ok(Answer::Done),
    }
    draft.put_agent(own);
    draft.add_event(Event::AgentUpdated { agent });
    Ok(Answer::Done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alias::Digest;
    use crate::command::Command;
    use crate::command::MessageIdentity;
    use crate::id::NoticeId;
    use crate::testkit::{TestHub, message};
    use crate::world::Rules;

    fn post(scene: &mut TestHub, from: AgentId, to: AgentId) -> Result<u64, Refusal> {
        sent(scene, message(from, to, "hello")).map(|_| scene.world.inbox(to).head)
    }

    fn sent(scene: &mut TestHub, order: SendMessage) -> Result<(NoticeId, bool), Refusal> {
        match scene.run(Command::SendMessage(Box::new(order)))? {
            Answer::Message { notice, repeated } => Ok((notice, repeated)),
            other => panic!("{other:?}"),
        }
    }

    fn ack(scene: &mut TestHub, agent: AgentId, up_to: u64) -> u64 {
        match scene.run(Command::Ack { agent, up_to }).unwrap() {
            Answer::Position(acked) => acked,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_inbox_counts_for_itself_without_gap() {
        let mut scene = TestHub::default();
        let [a, b, c] = ["a", "b", "c"].map(|name| scene.register_worker(name, name, &[]));
        assert_eq!(post(&mut scene, a, b), Ok(1));
        assert_eq!(post(&mut scene, a, c), Ok(1));
        assert_eq!(post(&mut scene, c, b), Ok(2));
        assert_eq!(post(&mut scene, b, b), Ok(3));
        let inbox = scene.world.inbox(b);
        assert_eq!((inbox.head, inbox.acked, inbox.messages_waiting), (3, 0, 3));
        assert_eq!(scene.world.inbox(a).head, 0);
    }

    #[test]
    fn acknowledging_goes_forward_only_and_never_past_the_end() {
        let mut scene = TestHub::default();
        let a = scene.register_worker("a", "a", &[]);
        for _ in 0..3 {
            post(&mut scene, a, a).unwrap();
        }
        assert_eq!(ack(&mut scene, a, 2), 2);
        assert_eq!(ack(&mut scene, a, 1), 2);
        assert_eq!(ack(&mut scene, a, 99), 3);
        assert_eq!(scene.world.inbox(a).messages_waiting, 0);
        assert_eq!(post(&mut scene, a, a), Ok(4));
    }

    #[test]
    fn a_full_inbox_refuses_until_something_is_read() {
        let mut scene = TestHub::new(Rules { inbox_messages_max: 2, ..Rules::default() });
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        post(&mut scene, a, b).unwrap();
        post(&mut scene, a, b).unwrap();
        assert_eq!(post(&mut scene, a, b), Err(Refusal::InboxFull));
        assert_eq!(scene.world.inbox(b).head, 2);
        ack(&mut scene, b, 1);
        assert_eq!(post(&mut scene, a, b), Ok(3));
        // Zero means no limit.
        scene.world.rules.inbox_messages_max = 0;
        assert_eq!(post(&mut scene, a, b), Ok(4));
    }

    #[test]
    fn only_registered_agents_write_and_are_written_to() {
        let mut scene = TestHub::default();
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        assert_eq!(post(&mut scene, a, AgentId(99)), Err(Refusal::NoSuchAgent));
        scene.remove(b);
        assert_eq!(post(&mut scene, a, b), Err(Refusal::NoSuchAgent));
        assert_eq!(post(&mut scene, b, a), Err(Refusal::NotAuthenticated));
    }

    #[test]
    fn what_was_handed_over_is_not_waiting_and_may_still_be_unacknowledged() {
        let mut scene = TestHub::new(Rules { inbox_messages_max: 2, ..Rules::default() });
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        for _ in 0..2 {
            post(&mut scene, a, b).unwrap();
        }
        scene.run(Command::MarkPresented { agent: b, up_to: 99 }).unwrap();
        let mailbox = scene.world.inbox(b);
        assert_eq!((mailbox.presented, mailbox.acked, mailbox.messages_waiting), (2, 0, 0));
        assert_eq!(post(&mut scene, a, b), Ok(3));
    }

    #[test]
    fn a_turn_is_taken_once_and_its_repeat_leads_to_the_first() {
        let mut scene = TestHub::default();
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        let order = |from, to, number, content: &[u8]| {
            let conversation = "c-1".to_owned();
            let turn = MessageIdentity { conversation, number, content: Digest::of(&[content]) };
            SendMessage { identity: Some(turn), ..message(from, to, "hello") }
        };
        let (first, repeated) = sent(&mut scene, order(a, b, 1, b"x")).unwrap();
        assert!(!repeated);
        assert_eq!(sent(&mut scene, order(a, b, 1, b"x")), Ok((first, true)));
        let other = sent(&mut scene, order(a, b, 1, b"y"));
        assert_eq!(other, Err(Refusal::SameIdOtherContent));
        assert_eq!(scene.world.inbox(b).head, 1);
        // Another number or another direction: another message.
        assert!(sent(&mut scene, order(a, b, 2, b"y")).is_ok_and(|(_, repeated)| !repeated));
        assert!(sent(&mut scene, order(b, a, 1, b"y")).is_ok_and(|(_, repeated)| !repeated));
    }

    #[test]
    fn who_is_blocked_cannot_write_until_the_block_is_lifted() {
        let mut scene = TestHub::default();
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        let block = |blocked| Command::SetBlocked { agent: b, other: a, blocked };
        scene.run(block(true)).unwrap();
        scene.run(block(true)).unwrap();
        assert_eq!(post(&mut scene, a, b), Err(Refusal::Blocked));
        assert_eq!(post(&mut scene, b, a), Ok(1));
        scene.run(block(false)).unwrap();
        assert_eq!(post(&mut scene, a, b), Ok(1));
    }

    #[test]
    fn a_message_sent_to_a_url_is_read_once_it_arrives_there() {
        let mut scene = TestHub::default();
        let [a, b] = ["a", "b"].map(|name| scene.register_worker(name, name, &[]));
        let url = Some("https://b.example/in".to_owned());
        let pushed = |scene: &mut TestHub| {
            sent(scene, SendMessage { url: url.clone(), ..message(a, b, "hello") }).unwrap().0
        };
        let [first, second] = [pushed(&mut scene), pushed(&mut scene)];
        let arrived = |scene: &mut TestHub, notice| {
            let ended = crate::command::DeliveryResult::Delivered { reply: Some("{}".to_owned()) };
            scene.run(Command::RecordDelivery { notice, result: ended, report: None }).unwrap();
            let mailbox = scene.world.inbox(b);
            (mailbox.presented, mailbox.messages_waiting)
        };
        assert_eq!(arrived(&mut scene, second), (0, 1));
        assert_eq!(arrived(&mut scene, first), (1, 1));
    }
}
