//! Messages about the whole market, and about accounts.

use rialto_core::money::Credits;

use super::OutgoingMessage;
use crate::clara::price;
use crate::clara::record::{TaskTotals, write_list};
use crate::kit::object::ObjectWriter;

impl OutgoingMessage {
    /// To the owner: the agent was registered.
    pub fn registered(to: &str, agent_id: &str) -> Self {
        Self::new(to, "Registered").data(format!("Agent {agent_id} registered in Market"))
    }

    /// A list of agents, already encoded.
    pub fn agents(to: &str, agents: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "List-Agents").data(write_list(agents))
    }

    /// A list of the tasks that wait for an agent, already encoded.
    pub fn queue(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Queue").data(write_list(tasks))
    }

    /// Adds the cursor of the next page, if there is one.
    pub fn with_next_cursor(self, cursor: Option<u64>) -> Self {
        self.maybe_tag("Next-Cursor", cursor.map(|cursor| cursor.to_string()).as_deref())
    }

    /// A list of the tasks that still wait after a dispatch.
    pub fn dispatched(to: &str, tasks: impl IntoIterator<Item = String>) -> Self {
        Self::new(to, "Tasks-Dispatched").data(write_list(tasks))
    }

    /// The balance of an account, in whole credits.
    pub fn balance(to: &str, balance: Credits) -> Self {
        Self::new(to, "Balance").tag("Balance", price::format_price(balance)).tag("Account", to)
    }

    /// The overview of the market.
    pub fn dashboard(
        to: &str,
        queue: impl IntoIterator<Item = String>,
        agents: impl IntoIterator<Item = String>,
        totals: &TaskTotals,
    ) -> Self {
        let data = ObjectWriter::new()
            .raw("queue", &write_list(queue))
            .raw("agents", &write_list(agents))
            .raw("totals", &totals.write());
        Self::new(to, "Dashboard-Data").data(data.finish())
    }

    /// A withdrawal failed: credits cannot leave the hub.
    pub fn claim_failed(to: &str, balance: Credits) -> Self {
        let data =
            ObjectWriter::new().text("error", "credits cannot be withdrawn from the hub").finish();
        Self::new(to, "Claim-Reward-Failed").tag("Balance", price::format_price(balance)).data(data)
    }
}
