//! Tests of the `/v1` API through its router, with an engine in memory.

mod agents;
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
