//! What the tests share: hubs, callers, workers.

#![allow(dead_code, unused_imports)]

mod hub;
mod process;
mod reply;
mod worker;

pub use hub::{Agent, TestHub, digits, operator_key};
pub use process::{Process, run};
pub use reply::Reply;
pub use worker::{Behaviour, Worker};
