//! clara client: a wallet that requests work or does it.
//!
//! A [`Wallet`] signs. A [`Server`] is found by its URL and can be read without a wallet. An
//! [`Account`] is a wallet at a server: it sends messages and reads their results. A [`Wait`]
//! reports the outcome of a task, and [`Account::serve`] runs an agent.
//!
//! Items are identified by their signatures and counted once. If a response is lost, the same bytes
//! are sent again.

mod market_client;
mod calls;
mod handler;
mod jwk;
mod task_spec;
mod record;
mod retry;
mod rsa;
mod serve;
mod server;
mod signed_item;
mod pending_task;
mod wallet;
mod message_feed;

#[cfg(test)]
mod tests;

pub use market_client::{Account, Said};
pub use handler::{Broken, Handler};
pub use task_spec::{Order, Profile};
pub use record::{Asked, Board, Job, Outcome};
pub use serve::{Mishap, Workplace};
pub use server::Server;
pub use signed_item::Signed;
pub use pending_task::{Ending, Wait};
pub use wallet::{NotAWallet, Wallet};
pub use message_feed::Watch;

pub use crate::agora::Seed;
pub use crate::retry::Retry;
pub use rialto_core::money::Credits;
pub use rialto_core::time::{Millis, Timestamp};
pub use rialto_protocols::clara::record::{Agent, Tasks, Totals};
pub use rialto_protocols::clara::result::{Evaluated, Page, Sent};
pub use rialto_protocols::clara::{Action, Strategy};
pub use rialto_protocols::kit::ans104::Id;
