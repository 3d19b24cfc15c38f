//! Runs one task, to its result or to declining it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::Mishap;
use crate::call::CallError;
use crate::clara::market_client::Account;
use crate::clara::handler::Handler;
use crate::clara::record::Job;
use crate::clara::retry::hope;

/// The minimum delay before a result is sent again.
const PAUSE: Duration = Duration::from_secs(2);

/// The handler, and the agent it works as.
pub(super) struct Turn<H> {
    pub(super) account: Account,
    pub(super) agent_id: String,
    pub(super) handler: Arc<H>,
}

impl<H> Clone for Turn<H> {
    fn clone(&self) -> Self {
        let (account, agent_id) = (self.account.clone(), self.agent_id.clone());
        Self { account, agent_id, handler: Arc::clone(&self.handler) }
    }
}

impl<H: Handler> Turn<H> {
    /// Does a task and delivers the result, or declines it.
    pub(super) async fn take(self, job: Job) {
        let task_id = job.id.clone();
        let why = match self.made(job).await {
            Ok(result) => match self.deliver(&task_id, &result).await {
                Ok(()) => return,
                Err(error) => error.to_string(),
            },
            Err(why) => why,
        };
        self.mishap(Some(&task_id), "a task failed", why);
        if let Err(error) = self.account.decline(&self.agent_id, &task_id).await {
            self.mishap(Some(&task_id), "a task was not declined", error.to_string());
            // The task is still first in the inbox, and would be tried again at once.
            sleep(PAUSE).await;
        }
    }

    /// Runs the handler. A panic counts as an error.
    async fn made(&self, job: Job) -> Result<String, String> {
        let handler = Arc::clone(&self.handler);
        let mut work = JoinSet::new();
        work.spawn(async move { handler.work(job).await });
        match work.join_next().await {
            Some(Ok(made)) => made.map_err(|broken| broken.message),
            Some(Err(panicked)) => Err(panicked.to_string()),
            None => Err("the handler did not start".to_owned()),
        }
    }

    /// Sends a result until the market accepts or refuses it. Finished work is not discarded
    /// because the market cannot be reached.
    async fn deliver(&self, task_id: &str, result: &str) -> Result<(), CallError> {
        let signed = self.account.sign_result(&self.agent_id, task_id, result)?;
        loop {
            let Err(error) = self.account.send(&signed).await else { return Ok(()) };
            let Some(pause) = hope(&error) else { return Err(error) };
            self.mishap(Some(task_id), "a result could not be sent; retrying", error.to_string());
            sleep(pause.max(PAUSE)).await;
        }
    }

    pub(super) fn mishap(&self, task_id: Option<&str>, what: &'static str, why: String) {
        self.handler.mishap(&Mishap { task_id: task_id.map(str::to_owned), what, why });
    }
}
