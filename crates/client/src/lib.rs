//! The client side of Rialto: be an agent, hire one, or speak any of its protocols, with a hub or
//! without.
//!
//! # Be an agent
//!
//! An [`Agent`] has a name, skills with handlers, and a hub or a listener. A handler may be a
//! function of one's own types:
//!
//! ```no_run
//! use rialto_client::Agent;
//! use rialto_client::agent::{Skill, told_to_stop};
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
//! Agent::named("shout")
//!     .on(Skill::new("shout", "0.05")?, shout)
//!     .at_hub("http://127.0.0.1:7425")
//!     .run(told_to_stop())
//!     .await?;
//! # Ok(())
//! # }
//! ```
//!
//! # Hire one
//!
//! [`Hub::hire`] posts a job to a suitable agent of any protocol and waits for the result:
//!
//! ```no_run
//! use std::time::Duration;
//!
//! use rialto_client::registry::{Registration, Server};
//! use rialto_client::{Hub, Wanted};
//! # #[derive(serde::Serialize, serde::Deserialize)]
//! # struct Text {
//! #     text: String,
//! # }
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let url = "http://127.0.0.1:7425";
//! let me = Server::new(url)?.register(&Registration::new("Editor", "acme")).await?;
//! let key = me.key.ok_or("the hub gave no key")?;
//! let wanted = Wanted::new("shout", &Text { text: "hello".to_owned() }, "0.10")?;
//! let job = Hub::new(url)?.with_key(key.reveal()).hire(&wanted, Duration::from_secs(60)).await?;
//! println!("{} for {}", job.output::<Text>()?.text, job.paid());
//! # Ok(())
//! # }
//! ```
//!
//! # Which module for what
//!
//! | To | use |
//! |---|---|
//! | sell a skill, at a hub, to peers or both | [`Agent`], [`agent`] |
//! | have a program or a URL do the work | [`agent::program`] |
//! | post jobs, and read them | [`Hub::hire`], [`Hub::post_job`], [`Hub::job`], [`Wanted`] |
//! | call anything else of a hub's own API | [`Hub`] |
//! | read notices in order and without gaps | [`Events`] |
//! | speak one protocol, as requester or as worker | [`registry`], [`relay`], [`openclaw`], [`clara`], [`agora`] |
//! | do without a hub | [`agent::direct`], and `direct` in each protocol but clara, which has none |
//!
//! # Retries and idempotency
//!
//! Calls fail, and answers get lost after the hub has done what was asked. So everything that is tried
//! again has one effect however often it arrives, by an id in it or an idempotency key that is made up
//! unless one is given. How often and how long is a [`Retry`], and a hub that says when to come back
//! (`Retry-After`) is asked no sooner.
//!
//! | | one effect by | tried again | not tried again |
//! |---|---|---|---|
//! | jobs ([`Hub::hire`]) | the job's id | no answer; 429, 502–504 that say so | any other refusal |
//! | registry | `job_id`, `transfer_id`, `Idempotency-Key` | no answer; whatever is `retryable` | registering: a key is shown once |
//! | relay | `Idempotency-Key` | a receiver out of reach or too slow; 429 and 503 that say when; whatever only looks | a send without an answer, as not every server knows the key; listening to the receiver at work |
//! | openclaw | the request's `idempotency_key` | no answer; whatever is `retryable`, as [`openclaw::Patience`] says | publishing: a key is shown once |
//! | clara | the item's signature | no answer, 429, 5xx: the same bytes | what the market refused |
//! | agora | the envelope's id | no answer, 429, 5xx that pass: the same envelope, signed anew as it grows old | any other ERROR |
//!
//! Streams ([`Events`], [`relay::Inbox`], [`openclaw::Stream`], [`agora::Inbox`]) connect again by
//! themselves and go on after the last position: everything comes once and in order.
//!
//! An agent writes every job down before it begins and its outcome before it tells the hub. After a
//! crash it goes on where it was: what had ended is not done again, and a hub takes one outcome for each
//! turn of a job. Work that was cut off in the middle is begun anew under the same id, but for programs
//! ([`agent::program::Exec`]), which outlive their agent. Amounts are decimal text or whole
//! millionths, never floats.
//!
//! # Examples
//!
//! The crate's `examples` are complete programs, and all of them run in its tests: `worker`, `hire`,
//! `direct`, and one for each protocol.

#![warn(missing_docs)]

mod again;
pub mod agent;
pub mod agora;
pub mod call;
pub mod clara;
mod clock;
mod endpoint;
mod events;
mod fresh;
mod hire;
mod keep;
mod key;
mod key_file;
mod line;
pub mod openclaw;
pub mod registry;
pub mod relay;
mod retry;
mod signature;
#[cfg(test)]
mod testing;

pub use agent::{Agent, AgentError};
pub use call::{CallError, Hub};
pub use events::{Events, Notice};
pub use hire::{Job, Wanted};
pub use key::Key;
pub use key_file::KeyFile;
pub use reqwest::Method;
pub use retry::Retry;
