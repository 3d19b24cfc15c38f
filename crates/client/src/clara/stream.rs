//! Reads a market's messages to one address as they come, and waits in them for the end of a task.
//!
//! All results are public, and reading them stores nothing at the hub. So this is the way to wait:
//! read actions are signed messages, which a hub has to store.

use std::collections::VecDeque;
use std::time::Duration;

use rialto_protocols::clara::wire::result::MarketMessage;
use tokio::time::{Instant, sleep_until};

use super::calls::MarketClient;
use super::server::{Server, min_retry_delay};
use super::tasks::TaskOutcome;
use crate::call::CallError;

/// Results per page.
const PAGE: usize = 200;
/// How often the results are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// A cursor in the results, and the messages found for one address.
#[derive(Clone, Debug)]
pub struct MessageFeed {
    server: Server,
    address: String,
    cursor: Option<String>,
    ready: VecDeque<MarketMessage>,
}

impl MessageFeed {
    /// Messages to an address from now on.
    pub async fn from_now(server: &Server, address: &str) -> Result<Self, CallError> {
        let cursor = server.newest_cursor().await?;
        Ok(Self::after(server, address, cursor))
    }

    /// Messages to an address after a saved cursor; all of them without one.
    pub fn after(server: &Server, address: &str, cursor: Option<String>) -> Self {
        let (server, address) = (server.clone(), address.to_owned());
        Self { server, address, cursor, ready: VecDeque::new() }
    }

    /// The next message, if there is one now.
    pub async fn next(&mut self) -> Result<Option<MarketMessage>, CallError> {
        loop {
            if let Some(next) = self.ready.pop_front() {
                return Ok(Some(next));
            }
            let page = self.server.results(self.cursor.as_deref(), PAGE).await?;
            let Some(last) = page.edges.last() else { return Ok(None) };
            // A server that never advances its cursor would cause an endless loop.
            if self.cursor.as_ref() == Some(&last.cursor) {
                return Err(CallError::unreadable("the server returned the same cursor twice"));
            }
            self.cursor = Some(last.cursor.clone());
            let messages = page.edges.into_iter().flat_map(|edge| edge.node.messages);
            self.ready.extend(messages.filter(|message| message.target == self.address));
        }
    }

    /// Reads everything there is now, and returns whether any message has one of these actions.
    pub(super) async fn has_action(&mut self, actions: &[&str]) -> Result<bool, CallError> {
        let mut has_action = false;
        while let Some(message) = self.next().await? {
            has_action |= message.tag("Action").is_some_and(|action| actions.contains(&action));
        }
        Ok(has_action)
    }
}

/// A registered task.
#[derive(Clone, Debug)]
pub struct PendingTask {
    task_id: String,
    watch: MessageFeed,
}

/// One outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TaskEnd {
    /// It is done. A task for several agents is done several times.
    Done(TaskOutcome),
    /// There were no offers.
    NoOffers,
    /// The only agent that could do it declined.
    Unassigned,
    /// It was not done in time.
    Expired,
}

impl PendingTask {
    pub(super) async fn from_now(market: &MarketClient) -> Result<Self, CallError> {
        let watch = MessageFeed::from_now(market.server(), market.address()).await?;
        Ok(Self { task_id: String::new(), watch })
    }

    pub(super) fn for_task(self, task_id: String) -> Self {
        Self { task_id, ..self }
    }

    /// The task's id.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// Waits for the next outcome. A hub that cannot be reached is retried until the timeout.
    pub async fn next(&mut self, timeout: Duration) -> Result<TaskEnd, CallError> {
        let until = Instant::now() + timeout;
        loop {
            match self.poll().await {
                Ok(Some(ending)) => return Ok(ending),
                Err(error) if min_retry_delay(&error).is_none() => return Err(error),
                _ if Instant::now() >= until => {
                    let what = format!("task {}", self.task_id);
                    return Err(CallError::TimedOut { url: what });
                }
                _ => sleep_until((Instant::now() + POLL_INTERVAL).min(until)).await,
            }
        }
    }

    async fn poll(&mut self) -> Result<Option<TaskEnd>, CallError> {
        while let Some(message) = self.watch.next().await? {
            if message.tag("TaskId") == Some(self.task_id.as_str())
                && let Some(ending) = TaskEnd::read(&message)?
            {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }
}

impl TaskEnd {
    /// `None` for messages that end nothing, such as the notice that a task waits.
    fn read(message: &MarketMessage) -> Result<Option<Self>, CallError> {
        Ok(match message.tag("Action") {
            Some("Task-Result") => {
                let data = message.data.as_deref().unwrap_or_default();
                Some(Self::Done(TaskOutcome::read(data)?))
            }
            Some("Query-Failed") => Some(Self::NoOffers),
            Some("Task-Unassigned") => Some(Self::Unassigned),
            Some("Task-Expired") => Some(Self::Expired),
            _ => None,
        })
    }
}
