//! Runs an agent: does the tasks in the inbox, oldest first, and answers queries in between.
//!
//! A task stays in the inbox until its result is delivered, so that a restarted program does it
//! again. The public results show whether there is anything new. The inbox is read only then, and
//! also at a fixed interval.

use std::fmt::Display;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep};

use super::calls::MarketClient;
use super::handler::Handler;
use super::server::min_retry_delay;
use super::stream::MessageFeed;
use super::tasks::{Query, Task};
use crate::call::CallError;
use crate::worker::{self, GRACE, ServeError, WorkSource};

/// Actions that mean new entries in the inbox.
const INBOX_ACTIONS: [&str; 3] = ["Agent-Task-Assignment", "Task-Assignment", "Agent-Task-Query"];
/// Maximum number of queries answered before the inbox is read again.
const QUERIES_MAX: usize = 100;
/// The minimum delay before a result is sent again.
const RESEND_DELAY_MIN: Duration = Duration::from_secs(2);

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

impl MarketClient {
    /// Serves as one of our agents until `stop`. A running task then has 5 seconds to finish;
    /// unfinished tasks stay in the inbox for the next start.
    pub async fn serve<H: Handler>(
        &self,
        agent_id: &str,
        options: ServeOptions,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let feed = MessageFeed::from_now(self.server(), self.address()).await?;
        let runner = JobRunner { account: self.clone(), agent_id: agent_id.to_owned(), handler };
        let mut tasks = Tasks::default();
        let mut source = InboxSource {
            runner,
            feed,
            inbox_interval: options.inbox_interval,
            inbox_polled_at: None,
            is_stopping: false,
        };
        // Fails at once if the agent does not belong to this wallet.
        source.poll(&mut tasks).await?;
        let mut ticks = interval(options.poll_interval);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ticks = stream::unfold(ticks, |mut ticks| async {
            ticks.tick().await;
            Some((Ok(()), ticks))
        });
        worker::run(source, tasks, ticks, stop).await
    }
}

type Tasks = worker::Tasks<(), ()>;

/// The inbox of an agent, which works on one task at a time.
struct InboxSource<H> {
    runner: JobRunner<H>,
    feed: MessageFeed,
    inbox_interval: Duration,
    /// When the inbox was last read; `None` to read it now.
    inbox_polled_at: Option<Instant>,
    is_stopping: bool,
}

impl<H: Handler> WorkSource for InboxSource<H> {
    type Event = ();
    type Job = ();
    type End = ();

    async fn handle_event(&mut self, (): (), tasks: &mut Tasks) {
        if let Err(error) = self.poll(tasks).await {
            self.runner.report_error(None, "the market could not be polled", error);
        }
    }

    async fn handle_end(&mut self, (): (), _: Result<(), JoinError>, tasks: &mut Tasks) {
        // There may be older entries in the inbox without a new message.
        self.inbox_polled_at = None;
        if !self.is_stopping {
            self.handle_event((), tasks).await;
        }
    }

    async fn begin_shutdown(&mut self, _: &mut Tasks, _: &Result<(), CallError>) -> Duration {
        self.is_stopping = true;
        GRACE
    }
}

impl<H: Handler> InboxSource<H> {
    /// Reads queries and the next task, if there may be any.
    async fn poll(&mut self, tasks: &mut Tasks) -> Result<(), CallError> {
        // Taken here so that a failure repeats everything at the next poll, and no message is lost.
        let polled_at = self.inbox_polled_at.take();
        let is_due = polled_at.is_none_or(|at| at.elapsed() >= self.inbox_interval);
        if !self.feed.has_action(&INBOX_ACTIONS).await? && !is_due {
            self.inbox_polled_at = polled_at;
            return Ok(());
        }
        let JobRunner { account, agent_id, .. } = &self.runner;
        for _ in 0..QUERIES_MAX {
            let Some(query) = account.next_query(agent_id).await? else { break };
            self.answer(&query).await;
        }
        if tasks.jobs().next().is_none()
            && let Some(task) = account.next_task(agent_id).await?
        {
            tasks.spawn((), self.runner.clone().run(task));
        }
        self.inbox_polled_at = Some(Instant::now());
        Ok(())
    }

    async fn answer(&self, query: &Query) {
        let JobRunner { account, agent_id, handler } = &self.runner;
        let price = handler.price(query).await.filter(|price| *price <= query.max_reward);
        let sent = match price {
            Some(price) => account.offer(agent_id, &query.task_id, price).await,
            None => account.decline(agent_id, &query.task_id).await,
        };
        if let Err(error) = sent {
            self.runner.report_error(Some(&query.task_id), "a query was not answered", error);
        }
    }
}

/// The handler, and the agent it works as.
struct JobRunner<H> {
    account: MarketClient,
    agent_id: String,
    handler: Arc<H>,
}

impl<H> Clone for JobRunner<H> {
    fn clone(&self) -> Self {
        let (account, agent_id) = (self.account.clone(), self.agent_id.clone());
        Self { account, agent_id, handler: Arc::clone(&self.handler) }
    }
}

impl<H: Handler> JobRunner<H> {
    /// Does a task and delivers the result, or declines it.
    async fn run(self, job: Task) {
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
            self.report_error(Some(&task_id), "a task was not declined", error);
            // The task is still first in the inbox, and would be tried again at once.
            sleep(RESEND_DELAY_MIN).await;
        }
    }

    /// Runs the handler. A panic counts as an error.
    async fn run_handler(&self, job: Task) -> Result<String, String> {
        let handler = Arc::clone(&self.handler);
        let mut task = JoinSet::new();
        task.spawn(async move { handler.work(job).await });
        match task.join_next().await {
            Some(Ok(result)) => result.map_err(|error| error.message),
            Some(Err(panicked)) => Err(panicked.to_string()),
            None => Err("the handler did not start".to_owned()),
        }
    }

    /// Sends a result until the market accepts or refuses it. Finished work is not discarded
    /// because the market cannot be reached.
    async fn deliver(&self, task_id: &str, result: &str) -> Result<(), CallError> {
        let signed = self.account.sign_result(&self.agent_id, task_id, result)?;
        let delay =
            |error: &CallError, _| min_retry_delay(error).map(|least| least.max(RESEND_DELAY_MIN));
        let on_retry = |error: &CallError| {
            self.report_error(Some(task_id), "a result could not be sent; retrying", error);
        };
        let send = || async { self.account.send(&signed).await };
        worker::retry_until_answered(delay, on_retry, send).await.map(drop)
    }

    fn report_error(&self, task_id: Option<&str>, action: &'static str, reason: impl Display) {
        let (job_id, reason) = (task_id.map(str::to_owned), reason.to_string());
        self.handler.on_error(&ServeError { job_id, action, reason });
    }
}
