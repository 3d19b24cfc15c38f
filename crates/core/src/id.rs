//! Names for things: one type per thing, so that two ids can never be swapped.
//!
//! Ids are small integers handed out in order by the lane, which keeps every table growing at its
//! end. What the outside world calls a thing (UUIDs, addresses, keys) lives in the alias table.

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
    /// Our name for an agent.
    AgentId,
    /// An owner of agents; holds one account.
    OwnerId,
    /// One piece of work.
    JobId,
    /// One line of the ledger.
    EntryId,
    /// One explicit payment order and its answer.
    TransferId,
    /// One thing told to one agent.
    NoticeId,
    /// One line of the hub's history.
    EventId,
    /// One finished job, as a fact about its worker.
    OutcomeId,
    /// One credential.
    KeyId,
    /// One foreign name of an agent.
    AliasId,
    /// One remembered answer.
    AnswerId,
    /// One foreign id that must never be used twice.
    ClaimId,
    /// One step of a market, as it was published.
    PostingId,
}
