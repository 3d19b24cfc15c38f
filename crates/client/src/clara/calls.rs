//! The market's actions, one call each.

use rialto_core::money::Credits;
use rialto_protocols::clara::Action;
use rialto_protocols::clara::wire::register::read_sum;

use super::market_client::{ActionResult, MarketClient};
use super::pending_task::PendingTask;
use super::record::{Query, Task, TaskOutcome, parse_tasks};
use super::signed_item::SignedItem;
use super::task_spec::{Profile, TaskSpec, check_json, check_whole_credits};
use crate::call::CallError;

const AGENT_ID: &str = "RedStone-Agent-Id";
const TASK_ID: &str = "RedStone-Task-Id";
const FEE: &str = "RedStone-Agent-Fee";

impl MarketClient {
    /// Registers an agent, or changes its profile.
    pub async fn register(&self, profile: &Profile) -> Result<(), CallError> {
        let fee = profile.check()?;
        let tags = [(AGENT_ID, profile.id.as_str()), ("RedStone-Agent-Topic", &profile.topic)];
        let tags = [tags.as_slice(), &[(FEE, fee.as_str())]].concat();
        self.send_action(Action::RegisterAgentProfile, &tags, &profile.metadata).await.map(drop)
    }

    /// Registers a task. The returned [`PendingTask`] reports its outcome. For a query this waits until
    /// the auction has closed, because only then it is known whether there are offers.
    pub async fn register_task(&self, order: &TaskSpec) -> Result<PendingTask, CallError> {
        let reward = order.check()?;
        // Messages from here on may be about the task.
        let wait = PendingTask::from_now(self).await?;
        let said =
            self.send_action(Action::RegisterTask, &order.tags(&reward), order.payload()).await?;
        Ok(wait.for_task(said.id))
    }

    /// Delivers the result of a task: JSON text.
    pub async fn send_result(
        &self,
        agent_id: &str,
        task_id: &str,
        result: &str,
    ) -> Result<(), CallError> {
        self.send(&self.sign_result(agent_id, task_id, result)?).await.map(drop)
    }

    /// Signs a result without sending it.
    pub(super) fn sign_result(
        &self,
        agent_id: &str,
        task_id: &str,
        result: &str,
    ) -> Result<SignedItem, CallError> {
        check_json("result", result)?;
        let tags = [(AGENT_ID, agent_id), (TASK_ID, task_id)];
        self.sign(Action::SendResult, &tags, result)
    }

    /// Declines a task, or declines to make an offer for it.
    pub async fn decline(&self, agent_id: &str, task_id: &str) -> Result<(), CallError> {
        let tags = [(AGENT_ID, agent_id), (TASK_ID, task_id)];
        self.send_action(Action::DeclineTask, &tags, "").await.map(drop)
    }

    /// Offers to do a task for this many whole credits. Offers are binding.
    pub async fn offer(
        &self,
        agent_id: &str,
        task_id: &str,
        fee: Credits,
    ) -> Result<(), CallError> {
        let fee = check_whole_credits("offer", fee)?;
        let tags = [(AGENT_ID, agent_id), (TASK_ID, task_id), (FEE, fee.as_str())];
        self.send_action(Action::SubmitOffer, &tags, "").await.map(drop)
    }

    /// The oldest task in an agent's inbox. It stays there.
    pub async fn next_task(&self, agent_id: &str) -> Result<Option<Task>, CallError> {
        let said =
            self.send_action(Action::LoadNextAssignedTask, &[(AGENT_ID, agent_id)], "").await?;
        said.data().map(Task::read).transpose()
    }

    /// The oldest query an agent has not answered.
    pub async fn next_query(&self, agent_id: &str) -> Result<Option<Query>, CallError> {
        let said = self.send_action(Action::LoadNextQuery, &[(AGENT_ID, agent_id)], "").await?;
        said.data().map(Query::read).transpose()
    }

    /// The oldest unread result, for one of our agents or for any; this marks it as read.
    pub async fn next_result(
        &self,
        agent_id: Option<&str>,
    ) -> Result<Option<TaskOutcome>, CallError> {
        let tags: Vec<_> = agent_id.into_iter().map(|id| (AGENT_ID, id)).collect();
        let said = self.send_action(Action::LoadNextTaskResult, &tags, "").await?;
        said.data().map(TaskOutcome::read).transpose()
    }

    /// Asks the market to find agents for waiting tasks; returns those that still wait.
    pub async fn dispatch(&self) -> Result<Vec<Task>, CallError> {
        parse_tasks(data(&self.send_action(Action::DispatchTasks, &[], "").await?)?)
    }

    /// The available balance, in whole credits.
    pub async fn balance(&self) -> Result<Credits, CallError> {
        let said = self.send_action(Action::Balance, &[], "").await?;
        let balance = said.tag("Balance").and_then(read_sum);
        balance.ok_or_else(|| CallError::Unreadable("it contains no balance".to_owned()))
    }

    /// An overview of the market: JSON text with `queue`, `agents` and `totals`.
    pub async fn dashboard(&self) -> Result<String, CallError> {
        data(&self.send_action(Action::DashboardData, &[], "").await?).map(str::to_owned)
    }

    /// The history of a task the caller takes part in: JSON text.
    pub async fn trace(&self, task_id: &str) -> Result<String, CallError> {
        let said = self.send_action(Action::TaskTrace, &[(TASK_ID, task_id)], "").await?;
        data(&said).map(str::to_owned)
    }

    /// Asks for some credits, or all, to be withdrawn from the hub. Rialto's hubs keep them and say
    /// so in the returned message; a market that pays out says so too.
    pub async fn withdraw(&self, amount: Option<Credits>) -> Result<ActionResult, CallError> {
        match amount {
            Some(amount) => {
                let quantity = check_whole_credits("amount", amount)?;
                self.send_action(Action::Withdraw, &[("Quantity", &quantity)], "").await
            }
            None => self.send_action(Action::WithdrawAll, &[], "").await,
        }
    }
}

fn data(said: &ActionResult) -> Result<&str, CallError> {
    said.data().ok_or_else(|| CallError::Unreadable("it has no data".to_owned()))
}
