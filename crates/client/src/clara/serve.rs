//! Runs an agent: does the tasks in the inbox, oldest first, and answers queries in between.
//!
//! A task stays in the inbox until its result is delivered, so that a restarted program does it
//! again. The public results show whether there is anything new. The inbox is read only then, and
//! also at a fixed interval.

mod job_runner;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::calls::MarketClient;
use super::handler::Handler;
use super::stream::MessageFeed;
use super::tasks::Query;
use crate::call::CallError;
use job_runner::JobRunner;

/// How long a running task may continue after shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// Actions that mean new entries in the inbox.
const INBOX_ACTIONS: [&str; 3] = ["Agent-Task-Assignment", "Task-Assignment", "Agent-Task-Query"];
/// Maximum number of queries answered before the inbox is read again.
const QUERIES_MAX: usize = 100;

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServeOptions {
    /// How often the results are polled.
    pub poll_interval: Duration,
    /// How often the inbox is read even if there is nothing new.
    pub inbox_interval: Duration,
}

impl Default for ServeOptions {
    fn default() -> Self {
        Self { poll_interval: Duration::from_millis(300), inbox_interval: Duration::from_secs(30) }
    }
}

/// An error around a task.
#[derive(Debug)]
pub struct ServeError {
    /// The task, if there is one.
    pub task_id: Option<String>,
    /// The action that failed.
    pub action: &'static str,
    /// The reason.
    pub reason: String,
}

impl MarketClient {
    /// Serves as one of our agents until `stop`. A running task then has 5 seconds to finish;
    /// unfinished tasks stay in the inbox for the next start.
    pub async fn serve<H: Handler>(
        &self,
        agent_id: &str,
        how: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let watch = MessageFeed::from_now(self.server(), self.address()).await?;
        let turn = JobRunner { account: self.clone(), agent_id: agent_id.to_owned(), handler };
        let mut agent_state =
            Dispatcher { runner: turn, watch, running: JoinSet::new(), inbox_polled_at: None };
        // Fails at once if the agent does not belong to this wallet.
        agent_state.poll(how.inbox_interval).await?;
        let mut ticks = interval(how.poll_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                // There may be older entries in the inbox without a new message.
                Some(_) = agent_state.running.join_next() => agent_state.inbox_polled_at = None,
                _ = ticks.tick() => {}
            }
            if let Err(error) = agent_state.poll(how.inbox_interval).await {
                agent_state.runner.report_error(
                    None,
                    "the market could not be polled",
                    error.to_string(),
                );
            }
        }
        // A task that does not finish in time is dropped with the dispatcher.
        let _ = timeout(GRACE, agent_state.running.join_next()).await;
        Ok(())
    }
}

/// Runs one task at a time for an agent.
struct Dispatcher<H> {
    runner: JobRunner<H>,
    watch: MessageFeed,
    running: JoinSet<()>,
    /// When the inbox was last read; `None` to read it now.
    inbox_polled_at: Option<Instant>,
}

impl<H: Handler> Dispatcher<H> {
    /// Reads queries and the next task, if there may be any.
    async fn poll(&mut self, sweep: Duration) -> Result<(), CallError> {
        // Taken here so that a failure repeats everything at the next poll, and no message is lost.
        let swept = self.inbox_polled_at.take();
        let due = swept.is_none_or(|swept| swept.elapsed() >= sweep);
        if !self.watch.has_action(&INBOX_ACTIONS).await? && !due {
            self.inbox_polled_at = swept;
            return Ok(());
        }
        let (account, agent_id) = (self.runner.account.clone(), self.runner.agent_id.clone());
        for _ in 0..QUERIES_MAX {
            let Some(asked) = account.next_query(&agent_id).await? else { break };
            self.answer(&asked).await;
        }
        if self.running.is_empty()
            && let Some(job) = account.next_task(&agent_id).await?
        {
            self.running.spawn(self.runner.clone().run(job));
        }
        self.inbox_polled_at = Some(Instant::now());
        Ok(())
    }

    async fn answer(&self, asked: &Query) {
        let JobRunner { account, agent_id, handler } = &self.runner;
        let price = handler.price(asked).await.filter(|price| *price <= asked.max_reward);
        let answered = match price {
            Some(price) => account.offer(agent_id, &asked.task_id, price).await,
            None => account.decline(agent_id, &asked.task_id).await,
        };
        if let Err(error) = answered {
            self.runner.report_error(
                Some(&asked.task_id),
                "a query was not answered",
                error.to_string(),
            );
        }
    }
}
