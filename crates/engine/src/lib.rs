//! The engine: the only crate that does I/O.
//!
//! It loads rows, lets the core decide, commits, and then delivers. Stores, clocks, randomness,
//! keys and outgoing connections are here; the crates below have none of them.

pub mod audit;
pub mod backup;
pub mod clock;
pub mod delivery;
pub mod ids;
pub mod keys;
pub mod numbers;
pub mod offline;
pub mod private;
pub mod run;
#[cfg(test)]
mod scene;
pub mod secret;
pub mod store;
#[cfg(any(test, feature = "testkit"))]
pub mod testkit;

#[cfg(any(test, feature = "testkit"))]
pub use run::Hand;
pub use run::{
    Engine, Failure, Idempotency, Listener, Ran, Setup, Started, Watched, WatchedNews, Watcher,
};
