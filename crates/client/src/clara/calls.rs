//! A wallet at a market: the market's actions, one call each.

use rialto_core::money::Credits;
use rialto_protocols::clara::wire::register::read_sum;
use rialto_protocols::clara::wire::result::{MarketMessage, MessageResult};
use rialto_protocols::clara::{Action, PROTOCOL};

use super::server::Server;
use super::stream::PendingTask;
use super::tasks::{
    Profile, Query, Task, TaskOutcome, TaskSpec, check_json, check_whole_credits, parse_tasks,
};
use super::wallet::{SignedItem, Wallet};
use crate::call::CallError;

const AGENT_ID: &str = "RedStone-Agent-Id";
const TASK_ID: &str = "RedStone-Task-Id";
const FEE: &str = "RedStone-Agent-Fee";

/// A wallet at a market.
#[derive(Clone, Debug)]
pub struct MarketClient {
    wallet: Wallet,
    server: Server,
}

/// The result of a message that succeeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionResult {
    /// The id of the message.
    pub id: String,
    /// The messages the market sent; a reply to the sender comes first.
    pub messages: Vec<MarketMessage>,
}

impl MarketClient {
    /// Creates a client for this wallet and market. Sends nothing.
    pub fn new(wallet: Wallet, server: Server) -> Self {
        Self { wallet, server }
    }

    /// The wallet.
    pub fn wallet(&self) -> &Wallet {
        &self.wallet
    }

    /// The wallet's address.
    pub fn address(&self) -> &str {
        self.wallet.address()
    }

    /// The market.
    pub fn server(&self) -> &Server {
        &self.server
    }

    /// Sends an action with these extra tags, and reads its result. If the market refuses it, the
    /// error contains the market's text.
    pub async fn send_action(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<ActionResult, CallError> {
        self.send(&self.sign(action, tags, data)?).await
    }

    /// Signs an action without sending it.
    pub fn sign(
        &self,
        action: Action,
        tags: &[(&str, &str)],
        data: &str,
    ) -> Result<SignedItem, CallError> {
        let mut all = vec![("Action", action.as_str()), ("Protocol", PROTOCOL)];
        all.extend_from_slice(tags);
        self.wallet.sign(self.server.process(), &all, data)
    }

    /// Sends a message and reads its result. It is safe to send the same message again.
    pub async fn send(&self, signed: &SignedItem) -> Result<ActionResult, CallError> {
        self.server.post(signed).await?;
        let result = self.server.result(&signed.id).await?;
        action_messages(result).map(|messages| ActionResult { id: signed.id.clone(), messages })
    }

    /// Registers an agent, or changes its profile.
    pub async fn register(&self, profile: &Profile) -> Result<(), CallError> {
        let fee = profile.check()?;
        let tags = [(AGENT_ID, profile.id.as_str()), ("RedStone-Agent-Topic", &profile.topic)];
        let tags = [tags.as_slice(), &[(FEE, fee.as_str())]].concat();
        self.send_action(Action::RegisterAgentProfile, &tags, &profile.metadata).await.map(drop)
    }

    /// Registers a task. The returned [`PendingTask`] reports its outcome. For a query this waits until
    /// the auction has closed, because only then it is known whether there are offers.
    pub async fn register_task(&self, task: &TaskSpec) -> Result<PendingTask, CallError> {
        let reward = task.check()?;
        // Messages from here on may be about the task.
        let wait = PendingTask::from_now(self).await?;
        let result =
            self.send_action(Action::RegisterTask, &task.tags(&reward), task.payload()).await?;
        Ok(wait.for_task(result.id))
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
        let tags = [(AGENT_ID, agent_id)];
        let result = self.send_action(Action::LoadNextAssignedTask, &tags, "").await?;
        result.data().map(Task::read).transpose()
    }

    /// The oldest query an agent has not answered.
    pub async fn next_query(&self, agent_id: &str) -> Result<Option<Query>, CallError> {
        let result = self.send_action(Action::LoadNextQuery, &[(AGENT_ID, agent_id)], "").await?;
        result.data().map(Query::read).transpose()
    }

    /// The oldest unread result, for one of our agents or for any; this marks it as read.
    pub async fn next_result(
        &self,
        agent_id: Option<&str>,
    ) -> Result<Option<TaskOutcome>, CallError> {
        let tags: Vec<_> = agent_id.into_iter().map(|id| (AGENT_ID, id)).collect();
        let result = self.send_action(Action::LoadNextTaskResult, &tags, "").await?;
        result.data().map(TaskOutcome::read).transpose()
    }

    /// Asks the market to find agents for waiting tasks; returns those that still wait.
    pub async fn dispatch(&self) -> Result<Vec<Task>, CallError> {
        parse_tasks(self.send_action(Action::DispatchTasks, &[], "").await?.required_data()?)
    }

    /// The available balance, in whole credits.
    pub async fn balance(&self) -> Result<Credits, CallError> {
        let result = self.send_action(Action::Balance, &[], "").await?;
        let balance = result.tag("Balance").and_then(read_sum);
        balance.ok_or_else(|| CallError::unreadable("it contains no balance"))
    }

    /// An overview of the market: JSON text with `queue`, `agents` and `totals`.
    pub async fn dashboard(&self) -> Result<String, CallError> {
        let result = self.send_action(Action::DashboardData, &[], "").await?;
        result.required_data().map(str::to_owned)
    }

    /// The history of a task the caller takes part in: JSON text.
    pub async fn trace(&self, task_id: &str) -> Result<String, CallError> {
        let result = self.send_action(Action::TaskTrace, &[(TASK_ID, task_id)], "").await?;
        result.required_data().map(str::to_owned)
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

impl ActionResult {
    /// The data of the first message.
    fn data(&self) -> Option<&str> {
        self.messages.first().and_then(|message| message.data.as_deref())
    }

    /// Like `data`, for actions that always return some.
    fn required_data(&self) -> Result<&str, CallError> {
        self.data().ok_or_else(|| CallError::unreadable("it has no data"))
    }

    /// The tag of the first message with this name.
    fn tag(&self, name: &str) -> Option<&str> {
        self.messages.first().and_then(|message| message.tag(name))
    }
}

/// The market's messages, or its `Error`. The market does not say whether a retry can succeed; only
/// a lack of agents or offers is temporary.
fn action_messages(result: MessageResult) -> Result<Vec<MarketMessage>, CallError> {
    let Some(message) = result.error else { return Ok(result.messages) };
    let retryable = message == "No agents to choose from" || message.starts_with("No offers ");
    Err(CallError::Refused {
        status: 202,
        code: String::new(),
        message,
        retryable,
        hint: None,
        retry_after: None,
    })
}
