//! Agents that are called at their own address: by a hub, and by each other.

mod called;
mod handlers;
mod registry;
mod running;
mod stand;
