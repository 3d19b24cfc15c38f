//! Shared by all tests: hubs, callers, workers.

#![allow(dead_code, unused_imports)]

mod aloud;
pub mod api_doc;
mod child;
mod clock;
mod closed;
mod dice;
mod eventually;
mod http;
mod hub;
mod in_time;
mod lines;
mod packages;
mod process;
mod refused;
mod reply;
pub mod schemas;
mod snapshot;
mod together;
mod walk;
mod worker;

pub use aloud::say_aloud;
pub use child::{ended, output, output_given};
pub use clock::MovedClock;
pub use closed::ClosedPort;
pub use dice::{Dice, SEED, number, seed};
pub use eventually::eventually;
pub use http::{http, http_builder};
pub use hub::{Agent, TestHub, digits, operator_key};
pub use in_time::in_time;
pub use lines::Lines;
pub use packages::{node_24, npm_folder, npm_package, python_packages};
pub use process::{Process, assert_audit_is_clean, run};
pub use refused::{assert_later, assert_malformed, assert_refused, repaired};
pub use reply::{API_DOC, Reply};
pub use snapshot::{Snapshot, counted, newest_event, snapshot};
pub use together::together;
pub use walk::{walk, walk_at, walk_with};
pub use worker::{Behaviour, Got, Worker};
