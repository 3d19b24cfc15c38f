//! Actions: the values of the tag `Action` (2.5).

/// An action of the market.
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
