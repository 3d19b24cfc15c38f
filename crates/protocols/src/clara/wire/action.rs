//! The closed lists of words that orders use: actions (2.5), matching strategies (R25) and topics.

use serde::Deserialize;

use super::message::Dialect;
use crate::clara::{BROADCAST, TOPICS, TOPICS_DEPLOYED};

/// The prefix of a topic in the hub's skill name (docs/requirements.md, section 5).
pub const SKILL_PREFIX: &str = "clara.";

/// An action of the market: a value of the tag `Action`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Registers an agent, or changes its profile.
    RegisterAgentProfile,
    /// Lists the registered agents with their tasks.
    ListAgents,
    /// Registers a task.
    RegisterTask,
    /// Sends the result of a task.
    SendResult,
    /// Declines a task.
    DeclineTask,
    /// Offers a price for a task (not in the spec).
    SubmitOffer,
    /// Reads the oldest task of an inbox.
    LoadNextAssignedTask,
    /// Reads the oldest unread result.
    LoadNextTaskResult,
    /// Reads the oldest unanswered query (not in the spec).
    LoadNextQuery,
    /// Lists the tasks that wait for an agent.
    TasksQueue,
    /// Tries to match waiting tasks with agents, then lists those that still wait.
    DispatchTasks,
    /// Shows the sender's balance.
    Balance,
    /// Shows all balances.
    Balances,
    /// Shows an overview of the whole market.
    DashboardData,
    /// Withdraws some credits from the hub.
    Withdraw,
    /// Withdraws all credits from the hub.
    WithdrawAll,
    /// The same as `Withdraw`.
    ClaimReward,
    /// The same as `WithdrawAll`.
    ClaimRewardAll,
    /// Shows the history of a task, step by step (not in the spec; B18).
    TaskTrace,
}

impl Action {
    /// All actions.
    pub const ALL: [Self; 19] = [
        Self::RegisterAgentProfile,
        Self::ListAgents,
        Self::RegisterTask,
        Self::SendResult,
        Self::DeclineTask,
        Self::SubmitOffer,
        Self::LoadNextAssignedTask,
        Self::LoadNextTaskResult,
        Self::LoadNextQuery,
        Self::TasksQueue,
        Self::DispatchTasks,
        Self::Balance,
        Self::Balances,
        Self::DashboardData,
        Self::Withdraw,
        Self::WithdrawAll,
        Self::ClaimReward,
        Self::ClaimRewardAll,
        Self::TaskTrace,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RegisterAgentProfile => "Register-Agent-Profile",
            Self::ListAgents => "List-Agents",
            Self::RegisterTask => "Register-Task",
            Self::SendResult => "Send-Result",
            Self::DeclineTask => "Decline-Task",
            Self::SubmitOffer => "Submit-Offer",
            Self::LoadNextAssignedTask => "Load-Next-Assigned-Task",
            Self::LoadNextTaskResult => "Load-Next-Task-Result",
            Self::LoadNextQuery => "Load-Next-Query",
            Self::TasksQueue => "Tasks-Queue",
            Self::DispatchTasks => "Dispatch-Tasks",
            Self::Balance => "Balance",
            Self::Balances => "Balances",
            Self::DashboardData => "Dashboard-Data",
            Self::Withdraw => "Withdraw",
            Self::WithdrawAll => "Withdraw-All",
            Self::ClaimReward => "Claim-Reward",
            Self::ClaimRewardAll => "Claim-Reward-All",
            Self::TaskTrace => "Task-Trace",
        }
    }

    /// Reads a name, with or without the prefix of the first version (R66).
    pub fn read(text: &str) -> Option<Self> {
        let word = text.strip_prefix("v1.").unwrap_or(text);
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Whether the tag `Protocol` must be present and correct (R2). Read-only actions do not need
    /// it, because clients leave it out there.
    pub const fn needs_protocol(self) -> bool {
        !matches!(
            self,
            Self::ListAgents
                | Self::TasksQueue
                | Self::DispatchTasks
                | Self::DashboardData
                | Self::Balance
                | Self::Balances
        )
    }
}

/// A matching strategy: how the market chooses the agent for a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Strategy {
    /// Round robin. Also the default (D16).
    #[default]
    RoundRobin,
    /// The lowest fee.
    Cheapest,
    /// The lowest bid in a sealed auction.
    Query,
    /// The agent with the fewest open tasks.
    LeastOccupied,
    /// All agents that can do it.
    Broadcast,
}

impl Strategy {
    /// All strategies: the spec's first, then the hub's own.
    pub const ALL: [Self; 5] =
        [Self::RoundRobin, Self::Cheapest, Self::Query, Self::LeastOccupied, Self::Broadcast];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RoundRobin => "roundRobin",
            Self::Cheapest => "cheapest",
            Self::Query => "query",
            Self::LeastOccupied => "leastOccupied",
            Self::Broadcast => "broadcast",
        }
    }

    /// Reads the name on the wire.
    pub fn read(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|strategy| strategy.as_str() == text)
    }
}

/// The topics of skills of other protocols (docs/requirements.md, section 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgedTopics {
    /// Skill names and the topics that an operator assigned to them.
    map: Vec<(String, String)>,
}

impl BridgedTopics {
    /// With the operator's map, in addition to the topics that names imply.
    pub fn with(map: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { map: map.into_iter().collect() }
    }

    /// Every assigned skill name with its topic.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.map.iter().map(|(capability, topic)| (capability.as_str(), topic.as_str()))
    }

    /// The topic of a skill of another protocol.
    pub fn topic_of<'n>(&'n self, capability: &'n str) -> Option<&'n str> {
        let mapped = self.map.iter().find(|(name, _)| name == capability);
        let mapped = mapped.map(|(_, topic)| topic.as_str());
        let own = || TOPICS.contains(&capability).then_some(capability);
        mapped.or_else(own).or_else(|| capability.strip_prefix(SKILL_PREFIX))
    }

    /// The skill names that a topic may have elsewhere, besides the hub's own.
    pub fn skill_names_of(&self, topic: &str) -> Vec<String> {
        let mapped = self.map.iter().filter(|(_, of)| of == topic).map(|(name, _)| name.clone());
        let own = TOPICS.contains(&topic).then(|| topic.to_owned());
        let elsewhere = |name: &String| self.topic_of(name) == Some(topic);
        own.into_iter().filter(elsewhere).chain(mapped).collect()
    }
}

/// The topics of a market. The list is closed, except for what the operator adds (D13) and what the
/// deployed dialect knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    extra: Vec<String>,
}

impl Topics {
    /// The spec's four topics and these.
    pub fn with(extra: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { extra: extra.into_iter().map(Into::into).collect() }
    }

    /// All topics, the spec's four first.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        TOPICS.into_iter().chain(self.extra.iter().map(String::as_str))
    }

    /// Whether an agent may have the topic. `broadcast` is never allowed, whatever the operator
    /// adds.
    pub fn allows_agent(&self, topic: &str, dialect: Dialect) -> bool {
        let deployed = dialect == Dialect::Deployed && TOPICS_DEPLOYED.contains(&topic);
        let known = TOPICS.contains(&topic) || self.extra.iter().any(|extra| extra == topic);
        topic != BROADCAST && (known || deployed)
    }

    /// Whether a task may have the topic.
    pub fn allows_task(&self, topic: &str, dialect: Dialect) -> bool {
        topic == BROADCAST || self.allows_agent(topic, dialect)
    }
}
