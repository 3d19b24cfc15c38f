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
pub mod direct;
mod discover;
mod jobs;
mod register;
mod server;

pub use accounts::{Account, Transfer, TransferReceipt};
pub use agent::{Agent, Skill, WorkOutcome};
pub use discover::{
    AgentPage, Health, ListedAgent, ListedSkill, Reputation, Search, SkillList, SkillPrice, Stats,
};
pub use jobs::{
    FetchedJob, JobOutcome, JobRequest, JobResult, JobSnapshot, JobSpec, ResultReceipt,
};
pub use register::{RegisteredAgent, Registration, SkillListing};
pub use server::Server;

pub use crate::key::Key;
pub use crate::retry::RetryPolicy;
pub use rialto_core::money::Credits;
pub use rialto_core::reputation::Score;
pub use uuid::Uuid;

/// Amounts and scores in responses, parsed digit by digit and never through a float.
mod decimals {
    use rialto_core::money::Credits;
    use rialto_core::reputation::Score;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde_json::value::RawValue;

    /// Maximum number of decimals; the protocol writes two.
    const DECIMALS: usize = 6;

    /// An amount.
    pub(super) fn credits<'de, D: Deserializer<'de>>(from: D) -> Result<Credits, D::Error> {
        let digits = Box::<RawValue>::deserialize(from)?;
        Credits::parse(digits.get(), DECIMALS).map_err(|why| D::Error::custom(format!("it {why}")))
    }

    /// An amount, if there is one.
    pub(super) fn optional_credits<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Credits>, D::Error> {
        let digits = Option::<Box<RawValue>>::deserialize(from)?;
        let parse = |digits: Box<RawValue>| Credits::parse(digits.get(), DECIMALS);
        digits.map(parse).transpose().map_err(|why| D::Error::custom(format!("it {why}")))
    }

    /// A score from 0 to 100.
    pub(super) fn score<'de, D: Deserializer<'de>>(from: D) -> Result<Score, D::Error> {
        // Not money, but parsed the same way: decimal text into exact millionths.
        credits(from).map(|exact| Score::from_millionths(exact.micros()))
    }
}
