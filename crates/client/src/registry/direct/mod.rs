//! From agent to agent, without a hub: a job is posted to the agent itself.
//!
//! An agent answers `POST /jobs` with the result, and `GET /jobs/{id}` with how a job stands; it is
//! served by [`agent::direct::serve`](crate::agent::direct::serve). Work that takes longer than 25
//! seconds is answered `PENDING` if the job names a `callback_url` that may be called: then its result
//! is posted there. May be called is only the machine that the job came from, and what
//! [`Identity::calls_back`](crate::agent::direct::Identity::calls_back) names: a requester must not be
//! able to send an agent's words to somebody else. Every other `callback_url` is left alone, and the
//! answer waits for the result.
//!
//! A [`Peer`] hires such an agent. Nobody holds the money meanwhile: what a result says it costs is
//! paid afterwards, by a transfer at a hub that both know, for instance.
//!
//! ```no_run
//! use rialto_client::registry::direct::Peer;
//! use rialto_client::registry::{Credits, Order};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let order = Order::new("count_words", r#"{"text":"one two"}"#).budget(Credits::parse("0.05", 2)?);
//! let standing = Peer::new("http://127.0.0.1:8010")?.hire(&order.draw_up()?).await?;
//! println!("{:?}", standing.outcome);
//! # Ok(())
//! # }
//! ```

mod callback;
mod desk;
mod paper;
mod peer;
mod refusal;
mod said;
mod works;

pub use peer::Peer;
pub(crate) use works::endpoint;
