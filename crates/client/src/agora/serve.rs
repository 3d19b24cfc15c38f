//! Being a provider: answer every REQUEST of the inbox, do what was agreed on, and lose nothing when
//! the line or the program breaks.
//!
//! A REQUEST is acknowledged when it is finished. One that comes again after a restart is looked up
//! first: what was offered is not offered twice, and what was accepted is worked on.

mod desk;
mod turn;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::agent::Agent;
use super::handler::Handler;
use super::inbox::{Inbox, Listen, Trouble};
use super::incoming::Incoming;
use crate::call::CallError;
use desk::Desk;

/// How often what is finished is acknowledged.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// How long what runs may go on after the end.
const GRACE: Duration = Duration::from_secs(5);

/// How to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workplace {
    /// Jobs at a time; whoever is one too many is told to come back (503).
    pub concurrency: usize,
    /// Where to start reading.
    pub listen: Listen,
}

impl Default for Workplace {
    fn default() -> Self {
        Self { concurrency: 16, listen: Listen::default() }
    }
}

/// What went wrong around a job.
#[derive(Debug)]
pub struct Mishap {
    /// The REQUEST, if it is about one.
    pub request_id: Option<String>,
    /// What could not be done.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

impl Agent {
    /// Works until `stop`, or until the hub gives this agent no inbox any more. What runs then may
    /// finish within 5 seconds; the rest is given back with an ERROR 503.
    pub async fn serve<H: Handler>(
        &self,
        how: Workplace,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let mut inbox = Reading::start(self.inbox(how.listen).await?);
        let mut desk = Desk::new(self.clone(), handler, how.concurrency);
        let mut ticks = interval(ACK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        let ended = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                next = inbox.items.recv() => match next {
                    Some(Ok((incoming, old))) => desk.hear(incoming, old),
                    Some(Err(Trouble::NotTrusted(why))) => {
                        desk.mishap(None, "an envelope failed verification", why);
                    }
                    Some(Err(Trouble::Ended(error))) => break Err(error),
                    None => break Ok(()),
                },
                Some(()) = desk.turn_ended() => {}
                _ = ticks.tick() => desk.tidy().await,
            }
        };
        let finish = async { while desk.turn_ended().await.is_some() {} };
        let _ = timeout(GRACE, finish).await;
        desk.give_back().await;
        desk.tidy().await;
        ended
    }
}

/// Envelopes, each with whether it was there before.
type Item = Result<(Incoming, bool), Trouble>;

/// An inbox that is read by a task of its own: whoever waits for it beside other things would break
/// off its connecting again and again.
struct Reading {
    items: mpsc::Receiver<Item>,
    task: JoinHandle<()>,
}

impl Reading {
    fn start(mut inbox: Inbox) -> Self {
        // One at a time: what the desk has not taken stays at the hub.
        let (found, items) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            while let Some(next) = inbox.next().await {
                let next = next.map(|incoming| {
                    let old = incoming.position.is_some_and(|at| inbox.is_backlog(at));
                    (incoming, old)
                });
                if found.send(next).await.is_err() {
                    return;
                }
            }
        });
        Self { items, task }
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.task.abort();
    }
}
