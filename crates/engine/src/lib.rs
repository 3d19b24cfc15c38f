//! The engine: the only crate that does I/O.
//!
//! It loads rows, lets the core decide, commits, and then delivers. Stores, clocks, randomness,
//! keys and outgoing connections are here; the crates below have none of them.

pub mod audit;
pub mod backup;
pub mod clock;
pub mod cluster;
pub mod delivery;
#[cfg(test)]
mod fixtures;
pub mod key_use;
pub mod keys;
#[cfg(unix)]
pub mod local_postgres;
pub mod metrics;
pub mod migrate;
pub mod offline;
pub mod permissions;
pub mod random;
pub mod run;
mod seal;
pub mod secret;
pub mod store;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(feature = "testkit")]
pub use run::ManualNode;
pub use run::{
    ClusterOptions, Engine, EngineParts, Failure, Idempotency, InboxSubscription, RunResult,
    RunningEngine, WatchFilter, WatchedNews, Watcher, receive_replies,
};
#[cfg(any(test, feature = "testkit"))]
pub use run::{DecidedCommand, ManualLane};
