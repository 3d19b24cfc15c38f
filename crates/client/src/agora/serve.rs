//! Runs a provider: answers every REQUEST in the inbox and does the agreed work. A disconnect or a
//! crash loses nothing.
//!
//! A REQUEST is acknowledged when it is finished. One that arrives again after a restart is looked
//! up first: an offer is not made twice, and accepted work continues.

mod dispatcher;
mod job_runner;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::agent::Agent;
use super::handler::Handler;
use super::inbox::{Inbox, InboxError, InboxOptions};
use super::incoming::IncomingEnvelope;
use crate::call::CallError;
use dispatcher::Dispatcher;

/// How often finished requests are acknowledged.
const ACK_EVERY: Duration = Duration::from_secs(1);
/// How long running jobs may continue after shutdown.
const GRACE: Duration = Duration::from_secs(5);

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Number of jobs at a time; further requests are refused with 503.
    pub concurrency: usize,
    /// Where to start reading.
    pub listen: InboxOptions,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { concurrency: 16, listen: InboxOptions::default() }
    }
}

/// An error around a job.
#[derive(Debug)]
pub struct ServeError {
    /// The REQUEST, if there is one.
    pub request_id: Option<String>,
    /// The action that failed.
    pub action: &'static str,
    /// The reason.
    pub reason: String,
}

impl Agent {
    /// Serves until `stop`, or until the hub no longer gives this agent an inbox. Running jobs then
    /// have 5 seconds to finish; the rest is returned with an ERROR 503.
    pub async fn serve<H: Handler>(
        &self,
        how: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let mut inbox = InboxTask::start(self.inbox(how.listen).await?);
        let mut agent_state = Dispatcher::new(self.clone(), handler, how.concurrency);
        let mut ticks = interval(ACK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        let ended = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                next = inbox.items.recv() => match next {
                    Some(Ok((incoming, old))) => agent_state.handle_envelope(incoming, old),
                    Some(Err(InboxError::NotTrusted(why))) => {
                        agent_state.report_error(None, "an envelope failed verification", why);
                    }
                    Some(Err(InboxError::Ended(error))) => break Err(error),
                    None => break Ok(()),
                },
                Some(()) = agent_state.next_finished() => {}
                _ = ticks.tick() => agent_state.ack_finished().await,
            }
        };
        let finish = async { while agent_state.next_finished().await.is_some() {} };
        let _ = timeout(GRACE, finish).await;
        agent_state.return_running().await;
        agent_state.ack_finished().await;
        ended
    }
}

/// Envelopes, each with a flag that says whether it is from before the start.
type Item = Result<(IncomingEnvelope, bool), InboxError>;

/// An inbox that is read by its own task. Polling it in a `select!` would abort its reconnects
/// again and again.
struct InboxTask {
    items: mpsc::Receiver<Item>,
    task: JoinHandle<()>,
}

impl InboxTask {
    fn start(mut inbox: Inbox) -> Self {
        // One at a time: what the dispatcher has not taken stays at the hub.
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

impl Drop for InboxTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}
