//! Actions: what the tag `Action` can ask for (2.5).

/// Something the market can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// An agent registers, or changes its profile.
    RegisterAgentProfile,
    /// Who is registered, with all they do.
    ListAgents,
    /// Work is wanted.
    RegisterTask,
    /// Work is done.
    SendResult,
    /// Work will not be done.
    DeclineTask,
    /// What work would cost (ours).
    SubmitOffer,
    /// The oldest task in an inbox.
    LoadNextAssignedTask,
    /// The oldest result nobody has read.
    LoadNextTaskResult,
    /// The oldest query nobody has answered (ours).
    LoadNextQuery,
    /// Which tasks wait for an agent.
    TasksQueue,
    /// The same, after trying to find agents for them.
    DispatchTasks,
    /// What the sender has.
    Balance,
    /// What everybody has.
    Balances,
    /// The whole market at a glance.
    DashboardData,
    /// Some credits are to leave the hub.
    Withdraw,
    /// All credits are to leave the hub.
    WithdrawAll,
    /// The same as `Withdraw`.
    ClaimReward,
    /// The same as `WithdrawAll`.
    ClaimRewardAll,
    /// What became of a task, step by step (ours, B18).
    TaskTrace,
}

impl Action {
    /// All of them.
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

    /// The word for it.
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

    /// What a word means, with or without the prefix of the first version (R66).
    pub fn read(text: &str) -> Option<Self> {
        let word = text.strip_prefix("v1.").unwrap_or(text);
        Self::ALL.into_iter().find(|action| action.as_str() == word)
    }

    /// Whether the tag `Protocol` must be there, and right (R2). What only shows something does
    /// without, as clients leave it out there.
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
