//! clara client: a wallet that requests work or does it.
//!
//! A [`Wallet`] signs. A [`Server`] is found by its URL and can be read without a wallet. An
//! [`MarketClient`] is a wallet at a server: it sends messages and reads their results. A [`PendingTask`]
//! reports the outcome of a task, and [`MarketClient::serve`] runs an agent.
//!
//! Items are identified by their signatures and counted once. If a response is lost, the same bytes
//! are sent again.

mod calls;
mod handler;
mod serve;
mod server;
mod stream;
mod tasks;
mod wallet;

#[cfg(test)]
mod tests;

pub use calls::{ActionResult, MarketClient};
pub use handler::{Handler, WorkError};
pub use serve::ServeOptions;
pub use server::Server;
pub use stream::{MessageFeed, PendingTask, TaskEnd};
pub use tasks::{AgentList, Profile, Query, Task, TaskOutcome, TaskSpec};
pub use wallet::{SignedItem, Wallet, WalletError};

pub use crate::agora::Seed;
pub use crate::retry::RetryPolicy;
pub use crate::worker::ServeError;
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::clara::wire::record::{AgentRecord, AgentTasks, TaskTotals};
pub use rialto_protocols::clara::wire::result::{MarketMessage, MessageResult, ResultPage};
pub use rialto_protocols::clara::{Action, Strategy};
pub use rialto_protocols::kit::ans104::ItemId;
