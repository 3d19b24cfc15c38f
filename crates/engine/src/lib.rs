//! The engine: the only crate that does I/O.
//!
//! It loads rows, lets the core decide, commits, and then delivers. Stores, clocks, randomness,
//! keys and outgoing connections are here; the crates below have none of them.

pub mod audit;
pub mod backup;
pub mod clock;
pub mod delivery;
pub mod random;
pub mod keys;
pub mod metrics;
pub mod offline;
pub mod permissions;
pub mod run;
#[cfg(test)]
mod fixtures;
pub mod secret;
pub mod store;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(any(test, feature = "testkit"))]
pub use run::Hand;
pub use run::{
    Engine, Failure, Idempotency, Listener, Ran, Setup, Started, Watched, WatchedNews, Watcher,
};
