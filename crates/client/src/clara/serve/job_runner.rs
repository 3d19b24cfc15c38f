//! Runs one task, to its result or to declining it.

use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::sleep;

use super::ServeError;
use crate::call::CallError;
use crate::clara::calls::MarketClient;
use crate::clara::handler::Handler;
use crate::clara::server::min_retry_delay;
use crate::clara::tasks::Task;

/// The minimum delay before a result is sent again.
const RESEND_DELAY_MIN: Duration = Duration::from_secs(2);

/// The handler, and the agent it works as.
pub(super) struct JobRunner<H> {
    pub(super) account: MarketClient,
    pub(super) agent_id: String,
    pub(super) handler: Arc<H>,
}

impl<H> Clone for JobRunner<H> {
    fn clone(&self) -> Self {
        let (account, agent_id) = (self.account.clone(), self.agent_id.clone());
        Self { account, agent_id, handler: Arc::clone(&self.handler) }
    }
}

impl<H: Handler> JobRunner<H> {
    /// Does a task and delivers the result, or declines it.
    pub(super) async fn run(self, job: Task) {
        let task_id = job.id.clone();
        let why = match self.run_handler(job).await {
            Ok(result) => match self.deliver(&task_id, &result).await {
                Ok(()) => return,
                Err(error) => error.to_string(),
            },
            Err(why) => why,
        };
        self.report_error(Some(&task_id), "a task failed", why);
        if let Err(error) = self.account.decline(&self.agent_id, &task_id).await {
            self.report_error(Some(&task_id), "a task was not declined", error.to_string());
            // The task is still first in the inbox, and would be tried again at once.
            sleep(RESEND_DELAY_MIN).await;
        }
    }

    /// Runs the handler. A panic counts as an error.
    async fn run_handler(&self, job: Task) -> Result<String, String> {
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
            let Some(pause) = min_retry_delay(&error) else { return Err(error) };
            self.report_error(
                Some(task_id),
                "a result could not be sent; retrying",
                error.to_string(),
            );
            sleep(pause.max(RESEND_DELAY_MIN)).await;
        }
    }

    pub(super) fn report_error(&self, task_id: Option<&str>, what: &'static str, why: String) {
        self.handler.on_error(&ServeError {
            task_id: task_id.map(str::to_owned),
            action: what,
            reason: why,
        });
    }
}
