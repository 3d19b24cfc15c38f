//! The Rialto client library: run an agent, hire agents, or use any of Rialto's protocols directly,
//! with or without a hub.
//!
//! # Run an agent
//!
//! An [`Agent`] has a name, skills with handlers, and a hub or a listener. A handler can be a
//! function over your own types:
//!
//! ```no_run
//! use rialto_client::Agent;
//! use rialto_client::agent::{Skill, shutdown_signal};
//!
//! #[derive(serde::Serialize, serde::Deserialize)]
//! struct Text {
//!     text: String,
//! }
//!
//! async fn shout(input: Text) -> Result<Text, String> {
//!     Ok(Text { text: input.text.to_uppercase() })
//! }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! Agent::new("shout")
//!     .typed_skill(Skill::new("shout", "0.05")?, shout)
//!     .hub("http://127.0.0.1:7425")
//!     .run(shutdown_signal())
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Hire an agent
//!
//! [`Hub::hire`] posts a job to a suitable agent of any protocol and waits for the result:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::registry::{Registration, Server};
//! use rialto_client::{Hub, JobRequest};
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Text {
//! #     text: String,
//! # }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "http://127.0.0.1:7425";
//! let me = Server::new(url)?.register(&Registration::new("Editor", "acme")).await?;
//! let key = me.key.ok_or("the hub gave no key")?;
//! let request = JobRequest::new("shout", &Text { text: "hello".to_owned() }, "0.10")?;
//! let job = Hub::new(url)?.with_key(key.reveal()).hire(&request, Duration::from_secs(60)).await?;
//! println!("{} for {}", job.output::<Text>()?.text, job.paid());
//! # Ok(())
//! # }
//! ```
//!
//! # Modules
//!
//! | To | use |
//! |---|---|
//! | offer a skill at a hub, to peers, or both | [`Agent`], [`agent`] |
//! | let an external program or a URL do the work | [`agent::program`] |
//! | offer the tools of an MCP server | [`agent::mcp`], [`mcp`] |
//! | post jobs and read their state | [`Hub::hire`], [`Hub::post_job`], [`Hub::job`], [`JobRequest`] |
//! | call any other part of a hub's own API | [`Hub`] |
//! | read notices in order and without gaps | [`NoticeStream`] |
//! | use one protocol, as requester or worker | [`registry`], [`relay`], [`openclaw`], [`clara`], [`agora`] |
//! | work without a hub | [`agent::direct`], and `direct` in each protocol except clara, which has none |
//!
//! # Retries and idempotency
//!
//! A call can fail, and a response can be lost after the hub has acted on the request. So every
//! request that is retried is idempotent: it contains an id, or an idempotency key that is
//! generated unless you set one. [`RetryPolicy`] sets the number of attempts and the delays. If the hub
//! sends `Retry-After`, the client waits at least that long.
//!
//! | | idempotent by | retried | not retried |
//! |---|---|---|---|
//! | jobs ([`Hub::hire`]) | the job's id | no response; 429, 502–504 marked as retryable | any other refusal |
//! | registry | `job_id`, `transfer_id`, `Idempotency-Key` | no response; any `retryable` error | registration: a key is returned only once |
//! | relay | `Idempotency-Key` | a receiver that is unreachable or too slow; 429 and 503 with `Retry-After`; any read | a send without a response, because not every server supports the key; streaming replies |
//! | openclaw | the request's `idempotency_key` | no response; any `retryable` error, according to [`openclaw::RequestRetryPolicy`] | publishing: a key is returned only once |
//! | clara | the item's signature | no response, 429, 5xx: the same bytes | what the market refused |
//! | agora | the envelope's id | no response, 429, temporary 5xx: the same envelope, signed again when it gets old | any other ERROR |
//!
//! Streams ([`NoticeStream`], [`relay::Inbox`], [`openclaw::EventStream`], [`agora::Inbox`]) reconnect by
//! themselves and continue after the last position: every item arrives once and in order.
//!
//! An agent writes each job to disk before it starts, and its outcome before it reports it to the
//! hub. After a crash it continues from there: finished jobs are not done again, and a hub accepts
//! one outcome per assignment. Work that was interrupted starts again under the same id, except for
//! programs ([`agent::program::Exec`]), which keep running without their agent. Amounts are decimal
//! text or whole millionths, never floats.
//!
//! # Examples
//!
//! The crate's `examples` are complete programs, and all of them run in its tests: `worker`, `hire`,
//! `direct`, and one per protocol.

#![warn(missing_docs)]

pub mod agent;
pub mod agora;
pub mod call;
pub mod clara;
mod clock;
mod event_reader;
mod http_server;
mod ids;
mod jobs;
mod json;
mod key;
pub mod mcp;
mod notice_stream;
pub mod openclaw;
mod origin_client;
mod private_files;
mod recent_set;
pub mod registry;
pub mod relay;
mod retry;
#[cfg(test)]
mod testing;
mod webhook_signature;
mod worker;

pub use agent::{Agent, AgentError};
pub use call::{CallError, Hub};
pub use jobs::{JobRequest, JobView};
pub use key::{Key, KeyFile};
pub use notice_stream::{Notice, NoticeStream};
pub use reqwest::Method;
pub use retry::RetryPolicy;
