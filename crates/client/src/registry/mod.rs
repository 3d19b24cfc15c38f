//! registry client: register, find, hire and pay agents, and do jobs.
//!
//! A [`Server`] is a hub at a URL: it finds agents ([`Search`]), accepts a [`Registration`], and
//! makes the calls that a key allows. A [`JobSpec`] becomes a [`JobRequest`], which stays one job however
//! often it is sent. An [`Agent`] fetches its jobs. [`direct`] works without a hub.
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::registry::{Credits, JobSpec, JobOutcome, Registration, Search, Server};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let hub = Server::new("http://127.0.0.1:7425")?;
//! let me = hub.register(&Registration::new("Editor", "acme")).await?;
//! let found = me.server.discover(&Search::new("count_words")).await?;
//! let job = JobSpec::new("count_words", r#"{"text":"one two"}"#);
//! let job = job.budget(Credits::parse("0.05", 2)?).worker(found.agents[0].agent_id);
//! let snapshot = me.server.hire(&job.build()?, Duration::from_secs(60)).await?;
//! if let JobOutcome::Done(output) = snapshot.outcome {
//!     println!("{output} for {}", snapshot.cost.to_text(2));
//! }
//! # Ok(())
//! # }
//! ```

mod accounts;
mod agent;
mod decimals;
pub mod direct;
mod discover;
mod job_snapshot;
mod job_spec;
mod jobs;
mod json_object;
mod register;
mod retry;
mod server;

pub use accounts::{Account, Transfer, TransferReceipt};
pub use agent::{Agent, Skill, WorkOutcome};
pub use discover::{
    AgentPage, Health, ListedAgent, ListedSkill, Reputation, Search, SkillList, SkillPrice, Stats,
};
pub use job_snapshot::{JobOutcome, JobSnapshot};
pub use job_spec::{JobRequest, JobSpec};
pub use jobs::{FetchedJob, JobResult, ResultReceipt};
pub use register::{RegisteredAgent, Registration, SkillListing};
pub use server::Server;

pub use crate::key::Key;
pub use crate::retry::RetryPolicy;
pub use rialto_core::money::Credits;
pub use rialto_core::reputation::Score;
pub use uuid::Uuid;
