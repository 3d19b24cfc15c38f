//! Waits for the outcome of a task.

use std::time::Duration;

use rialto_protocols::clara::result::Sent;
use tokio::time::{Instant, sleep_until};

use super::market_client::Account;
use super::record::Outcome;
use super::retry::hope;
use super::message_feed::Watch;
use crate::call::CallError;

/// How often the results are polled.
const LOOK: Duration = Duration::from_millis(250);

/// A registered task.
#[derive(Clone, Debug)]
pub struct Wait {
    task_id: String,
    watch: Watch,
}

/// One outcome of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// It is done. A task for several agents is done several times.
    Done(Outcome),
    /// There were no offers.
    NoOffers,
    /// The only agent that could do it declined.
    Unassigned,
    /// It was not done in time.
    Expired,
}

impl Wait {
    pub(super) async fn from_now(account: &Account) -> Result<Self, CallError> {
        let watch = Watch::from_now(account.server(), account.address()).await?;
        Ok(Self { task_id: String::new(), watch })
    }

    pub(super) fn about(self, task_id: String) -> Self {
        Self { task_id, ..self }
    }

    /// The task's id.
    pub fn task_id(&self) -> &str {
        &self.task_id
    }

    /// Waits for the next outcome. A hub that cannot be reached is retried until the timeout.
    pub async fn next(&mut self, patience: Duration) -> Result<Ending, CallError> {
        let until = Instant::now() + patience;
        loop {
            match self.told().await {
                Ok(Some(ending)) => return Ok(ending),
                Err(error) if hope(&error).is_none() => return Err(error),
                _ if Instant::now() >= until => {
                    let what = format!("task {}", self.task_id);
                    return Err(CallError::TimedOut { url: what });
                }
                _ => sleep_until((Instant::now() + LOOK).min(until)).await,
            }
        }
    }

    async fn told(&mut self) -> Result<Option<Ending>, CallError> {
        while let Some(message) = self.watch.next().await? {
            if message.tag("TaskId") == Some(self.task_id.as_str())
                && let Some(ending) = Ending::read(&message)?
            {
                return Ok(Some(ending));
            }
        }
        Ok(None)
    }
}

impl Ending {
    /// `None` for messages that end nothing, such as the notice that a task waits.
    fn read(message: &Sent) -> Result<Option<Self>, CallError> {
        Ok(match message.tag("Action") {
            Some("Task-Result") => {
                let data = message.data.as_deref().unwrap_or_default();
                Some(Self::Done(Outcome::read(data)?))
            }
            Some("Query-Failed") => Some(Self::NoOffers),
            Some("Task-Unassigned") => Some(Self::Unassigned),
            Some("Task-Expired") => Some(Self::Expired),
            _ => None,
        })
    }
}
