//! Messages about the market as a whole, and about accounts.

use rialto_core::money::Credits;

use super::Outgoing;
use crate::clara::price;
use crate::clara::record::{Totals, list};
use crate::kit::object::Object;

impl Outgoing {
    /// To who registered an agent: so it is.
    pub fn registered(to: &str, agent_id: &str) -> Self {
        Self::new(to, "Registered").data(format!("Agent {agent_id} registered in Market"))
    }

    /// Agents, as they were written.
    pub fn agents(to: &str, agents: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "List-Agents").data(list(agents))
    }

    /// The tasks that wait for an agent, as they were written.
    pub fn queue(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Queue").data(list(tasks))
    }

    /// The same, of which there are more: an order with this `Cursor` gets them.
    pub fn with_next(self, cursor: Option<u64>) -> Self {
        self.maybe_tag("Next-Cursor", cursor.map(|cursor| cursor.to_string()).as_deref())
    }

    /// The tasks that still wait, after agents were sought for them.
    pub fn dispatched(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Dispatched").data(list(tasks))
    }

    /// What an account has, in whole credits.
    pub fn balance(to: &str, balance: Credits) -> Self {
        Self::new(to, "Balance").tag("Balance", price::text(balance)).tag("Account", to)
    }

    /// The market at a glance.
    pub fn dashboard(
        to: &str,
        queue: impl IntoIterator<Item = String>,
        agents: impl IntoIterator<Item = String>,
        totals: &Totals,
    ) -> Self {
        let data = Object::new()
            .raw("queue", &list(queue))
            .raw("agents", &list(agents))
            .raw("totals", &totals.write());
        Self::new(to, "Dashboard-Data").data(data.finish())
    }

    /// Credits do not leave the hub.
    pub fn claim_failed(to: &str, balance: Credits) -> Self {
        let data = Object::new().text("error", "credits cannot be withdrawn from the hub").finish();
        Self::new(to, "Claim-Reward-Failed").tag("Balance", price::text(balance)).data(data)
    }
}
