//! Being an agent: do what is in the inbox, the oldest first, and answer queries meanwhile.
//!
//! A task stays in the inbox until its result is there, so that one whose program ended is done by
//! the next. Whether there is anything new is looked up in the public results; only then is the inbox
//! asked for, and besides now and then, whatever the results say.

mod turn;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout};

use super::account::Account;
use super::handler::Handler;
use super::record::Asked;
use super::watch::Watch;
use crate::call::CallError;
use turn::Turn;

/// How long what runs may go on after the end.
const GRACE: Duration = Duration::from_secs(5);
/// What is news for an agent.
const NEWS: [&str; 3] = ["Agent-Task-Assignment", "Task-Assignment", "Agent-Task-Query"];
/// Queries answered before the inbox is looked at again.
const QUERIES_MAX: usize = 100;

/// How to work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workplace {
    /// How often it is looked whether there is something new.
    pub look: Duration,
    /// How often the inbox is asked for, new or not.
    pub sweep: Duration,
}

impl Default for Workplace {
    fn default() -> Self {
        Self { look: Duration::from_millis(300), sweep: Duration::from_secs(30) }
    }
}

/// What went wrong around a task.
#[derive(Debug)]
pub struct Mishap {
    /// The task, if it is about one.
    pub task_id: Option<String>,
    /// What could not be done.
    pub what: &'static str,
    /// Why.
    pub why: String,
}

impl Account {
    /// Works as one of our agents until `stop`. What runs then may finish within 5 seconds; the rest
    /// stays in the inbox for the next program.
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
        // Whether this agent is ours at all is told at once.
        desk.look(how.sweep).await?;
        let mut ticks = interval(how.look);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut stop = pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                // There may be more in the inbox, of which nobody has told since.
                Some(_) = desk.running.join_next() => desk.swept = None,
                _ = ticks.tick() => {}
            }
            if let Err(error) = desk.look(how.sweep).await {
                desk.turn.mishap(None, "the market could not be asked", error.to_string());
            }
        }
        // What does not end in time is dropped with the desk.
        let _ = timeout(GRACE, desk.running.join_next()).await;
        Ok(())
    }
}

/// An agent's desk, with room for one task.
struct Desk<H> {
    turn: Turn<H>,
    watch: Watch,
    running: JoinSet<()>,
    /// When the inbox was asked for; `None` if it is to be now.
    swept: Option<Instant>,
}

impl<H: Handler> Desk<H> {
    /// Looks for queries and the next task, if there may be any.
    async fn look(&mut self, sweep: Duration) -> Result<(), CallError> {
        // If any of this fails, it is done again at the next look: news that was read is not lost.
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
