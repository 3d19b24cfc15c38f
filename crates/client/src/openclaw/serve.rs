//! Runs a responder: does the work that the stream asks for. A disconnect or a crash loses nothing.
//!
//! Each time the stream opens, the hub is asked for the collaborations it considers running, and
//! missing ones are started. Work that is interrupted by the end of the program stays open at the
//! hub: the next start continues it, or its deadline ends it.

mod dispatcher;
mod job_runner;
mod unfinished;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::openclaw::wire::Identity;
use tokio::time::timeout;

use super::handler::Handler;
use super::presence::Presence;
use super::stream::{StreamError, WatchScope};
use crate::call::CallError;
use dispatcher::Dispatcher;

/// How long running work may continue after shutdown, and how long the final reports may take.
const GRACE: Duration = Duration::from_secs(5);
/// The default number of collaborations at a time.
const CONCURRENCY: usize = 16;

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// Number of collaborations at a time. What the hub accepts beyond that waits; an agent that
    /// responds manually rejects it.
    pub concurrency: usize,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { concurrency: CONCURRENCY }
    }
}

impl ServeOptions {
    /// The limits of an identity.
    pub fn from_identity(identity: &Identity) -> Self {
        let most = identity.limits.max_concurrent_tasks.and_then(|most| most.try_into().ok());
        Self { concurrency: most.unwrap_or(CONCURRENCY) }
    }
}

impl Presence {
    /// Serves until `stop`, or until the hub no longer gives this agent a stream. Running work then
    /// has 5 seconds to finish; the rest is left to the next program that serves this agent.
    pub async fn serve<H: Handler>(
        &self,
        how: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let mut stream = self.agent().stream(&WatchScope::OwnOnly).await?;
        let mut agent_state = Dispatcher::new(self, handler, how.concurrency);
        let mut stop = pin!(stop);
        let ended = loop {
            tokio::select! {
                () = &mut stop => break Ok(()),
                next = stream.next() => match next {
                    Some(Ok(event)) => agent_state.handle_event(event),
                    Some(Err(StreamError::Unreadable(why))) => {
                        agent_state.report_error(None, "an event could not be read", why);
                    }
                    Some(Err(StreamError::Ended(error))) => break Err(error),
                    None => break Ok(()),
                },
                Some(()) = agent_state.next_finished() => {}
            }
        };
        drop(stream);
        agent_state.stop_listing();
        let finish = async { while agent_state.next_finished().await.is_some() {} };
        let _ = timeout(GRACE, finish).await;
        drop(agent_state);
        self.flush(GRACE).await;
        ended
    }
}
