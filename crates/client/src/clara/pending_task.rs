//! Waits for the outcome of a task.

use std::time::Duration;

use rialto_protocols::clara::wire::result::MarketMessage;
use tokio::time::{Instant, sleep_until};

use super::market_client::MarketClient;
use super::message_feed::MessageFeed;
use super::record::TaskOutcome;
use super::retry::min_retry_delay;
use crate::call::CallError;

/// How often the results are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

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
    pub(super) async fn from_now(account: &MarketClient) -> Result<Self, CallError> {
        let watch = MessageFeed::from_now(account.server(), account.address()).await?;
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
