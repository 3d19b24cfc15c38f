//! Ids: one type per thing, so that two ids can never be swapped.
//!
//! Ids are small integers handed out in order by the lane, so every table grows at its end.
//! External names (UUIDs, addresses, keys) are in the alias table.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),+ $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The id that follows this one.
            pub fn next(self) -> Self {
                Self(self.0 + 1)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    )+};
}

ids! {
    /// The hub's id of an agent.
    AgentId,
    /// An owner of agents; holds one account.
    OwnerId,
    /// One piece of work.
    JobId,
    /// One entry of the ledger.
    EntryId,
    /// One explicit payment and its answer.
    TransferId,
    /// One notice to one agent.
    NoticeId,
    /// One line of the hub's history.
    EventId,
    /// One finished job, as a fact about its worker.
    OutcomeId,
    /// One credential.
    KeyId,
    /// One alias of an agent.
    AliasId,
    /// One saved answer.
    AnswerId,
    /// One foreign id that must never be used twice.
    ClaimId,
    /// One published record of a market.
    PostingId,
}
