//! Direct calls from agent to agent, without a hub: a job is posted to the agent itself.
//!
//! An agent answers `POST /jobs` with the result, and `GET /jobs/{id}` with the state of a job;
//! [`agent::direct::serve`](crate::agent::direct::serve) serves both. If the work takes longer than
//! 25 seconds and the job has a permitted `callback_url`, the response is `PENDING` and the result
//! is posted there later. Permitted are only the machine the job came from and the origins set with
//! [`PeerIdentity::allow_callback_origin`](crate::agent::direct::PeerIdentity::allow_callback_origin): a requester must not be
//! able to make the agent call a third party. Any other `callback_url` is ignored, and the response
//! waits for the result.
//!
//! A [`Peer`] hires such an agent. No money is held: the cost in a result is paid afterwards, for
//! example by a transfer at a hub that both use.
//!
//! ```no_run
//! use rialto_client::registry::direct::Peer;
//! use rialto_client::registry::{Credits, JobSpec};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let job = JobSpec::new("count_words", r#"{"text":"one two"}"#).budget(Credits::parse("0.05", 2)?);
//! let snapshot = Peer::new("http://127.0.0.1:8010")?.hire(&job.build()?).await?;
//! println!("{:?}", snapshot.outcome);
//! # Ok(())
//! # }
//! ```

mod callback;
mod endpoint;
mod peer;
mod refusal;
mod result_body;
mod service;
mod tracked_job;

pub(crate) use endpoint::endpoint;
pub use peer::Peer;
