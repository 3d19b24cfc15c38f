//! Replies of the lane to the callers that wait for them.
//!
//! A reply wakes the task of its caller. To wake a task of another thread's runtime takes a system
//! call, and a batch has up to a thousand replies. So a thread that serves many callers has a
//! mailbox: the lane puts all replies of a batch for its callers there, wakes the thread once, and
//! the thread wakes its own tasks.

use std::cell::RefCell;
use std::mem;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot};

use super::{Failure, LaneReply};

/// What the lane replies to a command.
pub type LaneResult = Result<LaneReply, Failure>;

thread_local! {
    /// The mailbox of this thread, if it has one.
    static MAILBOX: RefCell<Option<Arc<ReplyMailbox>>> = const { RefCell::new(None) };
}

/// Sends the reply to one command. Dropping it unsent tells the caller that there is none.
pub struct ReplySender {
    caller: oneshot::Sender<LaneResult>,
    mailbox: Option<Arc<ReplyMailbox>>,
}

impl ReplySender {
    /// Whether the caller no longer waits.
    pub fn is_closed(&self) -> bool {
        self.caller.is_closed()
    }
}

/// The replies for the callers of one thread that they have not received yet.
#[derive(Default)]
struct ReplyMailbox {
    replies: Mutex<MailboxReplies>,
    arrived: Notify,
}

#[derive(Default)]
struct MailboxReplies {
    pending: Vec<(oneshot::Sender<LaneResult>, LaneResult)>,
    /// The thread no longer empties its mailbox.
    closed: bool,
}

/// A sender for the reply to one command, and its receiver for a caller on this thread.
pub fn channel() -> (ReplySender, oneshot::Receiver<LaneResult>) {
    let (caller, receiver) = oneshot::channel();
    let mailbox = MAILBOX.with_borrow(Clone::clone);
    (ReplySender { caller, mailbox }, receiver)
}

/// Sends the replies of a batch. Callers that no longer wait are skipped.
pub fn deliver(replies: impl IntoIterator<Item = (ReplySender, LaneResult)>) {
    let mut by_mailbox: Vec<(Arc<ReplyMailbox>, Vec<_>)> = Vec::new();
    for (ReplySender { caller, mailbox }, result) in replies {
        let Some(mailbox) = mailbox else {
            let _ = caller.send(result);
            continue;
        };
        match by_mailbox.iter_mut().find(|(known, _)| Arc::ptr_eq(known, &mailbox)) {
            Some((_, pending)) => pending.push((caller, result)),
            None => by_mailbox.push((mailbox, vec![(caller, result)])),
        }
    }
    for (mailbox, pending) in by_mailbox {
        mailbox.put(pending);
    }
}

impl ReplyMailbox {
    fn put(&self, mut added: Vec<(oneshot::Sender<LaneResult>, LaneResult)>) {
        let mut replies = self.replies.lock();
        if replies.closed {
            drop(replies);
            return send_all(&mut added);
        }
        replies.pending.append(&mut added);
        drop(replies);
        self.arrived.notify_one();
    }
}

fn send_all(replies: &mut Vec<(oneshot::Sender<LaneResult>, LaneResult)>) {
    for (caller, result) in replies.drain(..) {
        let _ = caller.send(result);
    }
}

/// Receives the replies to all commands that are run on this thread from now on. Run it as a task
/// of a runtime that has this one thread. When it is dropped, replies are sent one by one again.
pub async fn receive_replies() {
    let open = OpenMailbox(Arc::default());
    MAILBOX.set(Some(open.0.clone()));
    let mut received = Vec::new();
    loop {
        open.0.arrived.notified().await;
        // The two buffers take turns, so that a batch needs no new memory.
        mem::swap(&mut received, &mut open.0.replies.lock().pending);
        send_all(&mut received);
    }
}

/// A mailbox that is emptied, until dropped.
struct OpenMailbox(Arc<ReplyMailbox>);

impl Drop for OpenMailbox {
    fn drop(&mut self) {
        let mut pending = {
            let mut replies = self.0.replies.lock();
            replies.closed = true;
            mem::take(&mut replies.pending)
        };
        send_all(&mut pending);
    }
}

#[cfg(test)]
mod tests {
    use rialto_core::answer::Answer;

    use super::*;

    fn done() -> LaneResult {
        Ok(LaneReply::Fresh(Answer::Done))
    }

    #[tokio::test]
    async fn without_a_mailbox_a_reply_goes_straight_to_its_caller() {
        let (reply, mut caller) = channel();
        deliver([(reply, done())]);
        assert!(matches!(caller.try_recv(), Ok(Ok(_))));
    }

    #[tokio::test]
    async fn a_thread_gets_the_replies_of_a_batch_at_once_and_passes_them_on() {
        let receiving = tokio::spawn(receive_replies());
        tokio::task::yield_now().await;
        let (first, mut one) = channel();
        let (second, two) = channel();
        let (third, gone) = channel();
        drop(gone);
        let lane = std::thread::spawn(|| {
            deliver([(first, done()), (second, Err(Failure::StoreFull)), (third, done())]);
        });
        lane.join().expect("a caller that left stops no reply");
        assert!(one.try_recv().is_err(), "the thread has not emptied its mailbox yet");
        assert!(matches!(two.await, Ok(Err(Failure::StoreFull))));
        assert!(matches!(one.await, Ok(Ok(_))));
        receiving.abort();
    }

    #[tokio::test]
    async fn a_mailbox_that_is_no_longer_emptied_keeps_no_reply() {
        let receiving = tokio::spawn(receive_replies());
        tokio::task::yield_now().await;
        let (before, early) = channel();
        let (after, late) = channel();
        deliver([(before, done())]);
        receiving.abort();
        assert!(receiving.await.is_err_and(|error| error.is_cancelled()));
        deliver([(after, done())]);
        assert!(matches!(early.await, Ok(Ok(_))));
        assert!(matches!(late.await, Ok(Ok(_))));
    }

    #[tokio::test]
    async fn a_command_that_is_dropped_has_no_reply() {
        let receiving = tokio::spawn(receive_replies());
        tokio::task::yield_now().await;
        let (reply, caller) = channel();
        drop(reply);
        assert!(caller.await.is_err());
        receiving.abort();
    }
}
