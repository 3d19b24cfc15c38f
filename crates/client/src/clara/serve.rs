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

use super::market_client::Account;
use super::handler::Handler;
use super::record::Asked;
use super::message_feed::Watch;
use crate::call::CallError;
use job_runner::Turn;

/// How long a running task may continue after shutdown.
const GRACE: Duration = Duration::from_secs(5);
/// Actions that mean new entries in the inbox.
const NEWS: [&str; 3] = ["Agent-Task-Assignment", "Task-Assignment", "Agent-Task-Query"];
/// Maximum number of queries answered before the inbox is read again.
const QUERIES_MAX: usize = 100;

/// Options for serving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workplace {
    /// How often the results are polled.
    pub look: Duration,
    /// How often the inbox is read even if there is nothing new.
    pub sweep: Duration,
}

impl Default for Workplace {
    fn default() -> Self {
        Self { look: Duration::from_millis(300), sweep: Duration::from_secs(30) }
    }
}

/// An error around a task.
#[derive(Debug)]
pub struct Mishap {
    /// The task, if there is one.
    pub task_id: Option<String>,
    /// The action that failed.
    pub what: &'static str,
    /// The reason.
    pub why: String,
}

impl Account {
    /// Serves as one of our agents until `stop`. A running task then has 5 seconds to finish;
    /// unfinished tasks stay in the inbox for the next start.
    pub async fn serve<H: Handler>(
        &self,
        agent_id: &str,
        how: Workplace,
        handler: Arc<H>,
        stop: impl Future<Output = ()>,
    ) -> Result<(), CallError> {
        let watch = Watch::from_now(self.server(), self.address()).await?;
        let turn = Turn { account: self.clone(), agent_id: agent_id.to_owned(), handler };
        let mut desk = Desk { turn, watch, running: JoinSet::new(), swept: None };
        // Fails at once if the agent does not belong to this wallet.
        desk.look(how.sweep).await?;
        let mut ticks = interval(how.look);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                // There may be older entries in the inbox without a new message.
                Some(_) = desk.running.join_next() => desk.swept = None,
                _ = ticks.tick() => {}
            }
            if let Err(error) = desk.look(how.sweep).await {
                desk.turn.mishap(None, "the market could not be polled", error.to_string());
            }
        }
        // A task that does not finish in time is dropped with the dispatcher.
        let _ = timeout(GRACE, desk.running.join_next()).await;
        Ok(())
    }
}

/// Runs one task at a time for an agent.
struct Desk<H> {
    turn: Turn<H>,
    watch: Watch,
    running: JoinSet<()>,
    /// When the inbox was last read; `None` to read it now.
    swept: Option<Instant>,
}

impl<H: Handler> Desk<H> {
    /// Reads queries and the next task, if there may be any.
    async fn look(&mut self, sweep: Duration) -> Result<(), CallError> {
        // Taken here so that a failure repeats everything at the next poll, and no message is lost.
        let swept = self.swept.take();
        let due = swept.is_none_or(|swept| swept.elapsed() >= sweep);
        if !self.watch.has_news(&NEWS).await? && !due {
            self.swept = swept;
            return Ok(());
        }
        let (account, agent_id) = (self.turn.account.clone(), self.turn.agent_id.clone());
        for _ in 0..QUERIES_MAX {
            let Some(asked) = account.next_query(&agent_id).await? else { break };
            self.answer(&asked).await;
        }
        if self.running.is_empty()
            && let Some(job) = account.next_task(&agent_id).await?
        {
            self.running.spawn(self.turn.clone().take(job));
        }
        self.swept = Some(Instant::now());
        Ok(())
    }

    async fn answer(&self, asked: &Asked) {
        let Turn { account, agent_id, handler } = &self.turn;
        let price = handler.price(asked).await.filter(|price| *price <= asked.max_reward);
        let answered = match price {
            Some(price) => account.offer(agent_id, &asked.task_id, price).await,
            None => account.decline(agent_id, &asked.task_id).await,
        };
        if let Err(error) = answered {
            self.turn.mishap(Some(&asked.task_id), "a query was not answered", error.to_string());
        }
    }
}
