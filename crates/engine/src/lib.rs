//! The engine: the only crate that does I/O.
//!
//! It loads rows, lets the core decide, commits, and then delivers. Stores, clocks, randomness,
//! keys and outgoing connections are here; the crates below have none of them.

pub mod audit;
pub mod backup;
pub mod clock;
pub mod delivery;
#[cfg(test)]
mod fixtures;
pub mod keys;
pub mod metrics;
pub mod offline;
pub mod permissions;
pub mod random;
pub mod run;
pub mod secret;
pub mod store;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(any(test, feature = "testkit"))]
pub use run::ManualLane;
pub use run::{
    Engine, EngineParts, Failure, Idempotency, InboxSubscription, RunResult, RunningEngine,
    WatchFilter, WatchedNews, Watcher, receive_replies,
};
