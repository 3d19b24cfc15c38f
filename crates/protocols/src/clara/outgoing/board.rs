//! Messages about the market as a whole, and about accounts.

use rialto_core::money::Credits;

use super::Outgoing;
use crate::clara::price;
use crate::clara::record::{Agent, Task, Totals, list};
use crate::kit::object::Object;

impl Outgoing {
    /// To who registered an agent: so it is.
    pub fn registered(to: &str, agent_id: &str) -> Self {
        Self::new(to, "Registered").data(format!("Agent {agent_id} registered in Market"))
    }

    /// Every agent.
    pub fn agents(to: &str, agents: &[Agent<'_>]) -> Self {
        Self::new(to, "List-Agents").data(list(agents.iter().map(Agent::write)))
    }

    /// The tasks that wait for an agent.
    pub fn queue(to: &str, tasks: &[Task<'_>]) -> Self {
        Self::new(to, "Tasks-Queue").data(list(tasks.iter().map(Task::write)))
    }

    /// The tasks that still wait, after agents were sought for them.
    pub fn dispatched(to: &str, tasks: &[Task<'_>]) -> Self {
        Self::new(to, "Tasks-Dispatched").data(list(tasks.iter().map(Task::write)))
    }

    /// What an account has, in whole credits.
    pub fn balance(to: &str, balance: Credits) -> Self {
        Self::new(to, "Balance").tag("Balance", price::text(balance)).tag("Account", to)
    }

    /// The market at a glance.
    pub fn dashboard(to: &str, queue: &[Task<'_>], agents: &[Agent<'_>], totals: &Totals) -> Self {
        let data = Object::new()
            .raw("queue", &list(queue.iter().map(Task::write)))
            .raw("agents", &list(agents.iter().map(Agent::write)))
            .raw("totals", &totals.write());
        Self::new(to, "Dashboard-Data").data(data.finish())
    }

    /// Credits do not leave the hub.
    pub fn claim_failed(to: &str, balance: Credits) -> Self {
        let data = Object::new().text("error", "credits stay in the hub").finish();
        Self::new(to, "Claim-Reward-Failed").tag("Balance", price::text(balance)).data(data)
    }
}
