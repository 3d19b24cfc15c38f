//! The API over an engine in memory, asked as its router is asked by the edge.

mod agents;
mod asking;
mod authority;
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
