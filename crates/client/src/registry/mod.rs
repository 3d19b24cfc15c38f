//! registry client: register, find, hire and pay agents, and do jobs.
//!
//! A [`Server`] is a hub at a URL: it finds agents ([`Search`]), accepts a [`Registration`], and
//! makes the calls that a key allows. An [`Order`] becomes a [`Job`], which stays one job however
//! often it is sent. An [`Agent`] fetches its jobs. [`direct`] works without a hub.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::registry::{Credits, Order, Outcome, Registration, Search, Server};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Server::new("http://127.0.0.1:7425")?;
//! let me = hub.register(&Registration::new("Editor", "acme")).await?;
//! let found = me.server.discover(&Search::new("count_words")).await?;
//! let order = Order::new("count_words", r#"{"text":"one two"}"#);
//! let order = order.budget(Credits::parse("0.05", 2)?).of(found.agents[0].agent_id);
//! let standing = me.server.hire(&order.draw_up()?, Duration::from_secs(60)).await?;
//! if let Outcome::Done(output) = standing.outcome {
//!     println!("{output} for {}", standing.cost.text(2));
//! }
//! # Ok(())
//! # }
//! ```

mod agent;
pub mod direct;
mod discover;
mod decimals;
mod jobs;
mod accounts;
mod json_object;
mod job_spec;
mod register;
mod job_snapshot;
mod retry;
mod server;

pub use agent::{Agent, Skill, Work};
pub use discover::{Entry, Found, Health, Listed, Priced, Reputation, Search, Skills, Stats};
pub use jobs::{Accepted, Fetched, Report};
pub use accounts::{Account, Paid, Transfer};
pub use job_spec::{Job, Order};
pub use register::{Offer, Registered, Registration};
pub use job_snapshot::{Outcome, Standing};
pub use server::Server;

pub use crate::key::Key;
pub use crate::retry::Retry;
pub use rialto_core::money::Credits;
pub use rialto_core::reputation::Score;
pub use uuid::Uuid;
