//! Being a responder: do what the stream asks for, and lose nothing when the line or the program
//! breaks.
//!
//! Whenever the stream is open anew the hub is asked what it takes to be running, and what is not
//! on the desk is put there. Work that is cut off by the end of the program stays the hub's: the next
//! program takes it up, or its deadline ends it.

mod desk;
mod leftovers;
mod persist;
mod turn;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::openclaw::message::Identity;
use tokio::time::timeout;

use super::duty::Duty;
use super::handler::Handler;
use super::stream::{Trouble, Watch};
use crate::call::CallError;
use desk::Desk;

/// How long what runs may go on after the end, and how long the hub may take to hear of it.
const GRACE: Duration = Duration::from_secs(5);
/// Collaborations at a time for an agent that names no limit.
const CONCURRENCY: usize = 16;

/// How to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workplace {
    /// Collaborations at a time. What the hub accepted beyond that waits; an agent that answers for
    /// itself rejects it.
    pub concurrency: usize,
}

impl Default for Workplace {
    fn default() -> Self {
        Self { concurrency: CONCURRENCY }
    }
}

impl Workplace {
    /// As an identity promises.
    pub fn of(identity: &Identity) -> Self {
        let most = identity.limits.max_concurrent_tasks.and_then(|most| most.try_into().ok());
        Self { concurrency: most.unwrap_or(CONCURRENCY) }
    }
}

impl Duty {
    /// Works until `stop`, or until the hub gives this agent no stream any more. What runs then may
    /// finish within 5 seconds; the rest is left to whoever serves this agent next.
    pub async fn serve<H: Handler>(
        &self,
        how: Workplace,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let mut stream = self.agent().stream(&Watch::Nobody).await?;
        let mut desk = Desk::new(self, handler, how.concurrency);
        let mut stop = pin!(stop);
        let ended = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                next = stream.next() => match next {
                    Some(Ok(event)) => desk.hear(event),
                    Some(Err(Trouble::Unreadable(why))) => {
                        desk.mishap(None, "an event could not be read", why);
                    }
                    Some(Err(Trouble::Ended(error))) => break Err(error),
                    None => break Ok(()),
                },
                Some(()) = desk.turn_ended() => {}
            }
        };
        drop(stream);
        desk.look_away();
        let finish = async { while desk.turn_ended().await.is_some() {} };
        let _ = timeout(GRACE, finish).await;
        drop(desk);
        self.settle(GRACE).await;
        ended
    }
}
