//! Tests of the `/v1` API through its router, with an engine in memory.

mod agents;
/// Shared with the integration tests.
#[path = "../../../../../tests/it/kit/api_doc.rs"]
mod api_doc;
mod asking;
mod authority;
mod dialogue;
mod events;
mod inbox;
mod jobs;
pub mod kit;
mod money;
mod offers;
mod once;
mod operator;
mod reputation;
mod webhooks;
mod work;
