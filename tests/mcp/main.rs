//! MCP at complete hubs on free ports, as clients of both eras call it.

mod agents;
mod bridge;
mod buying;
mod canaries;
mod client;
mod clients;
mod connect;
mod crash;
mod credits;
mod keys;
#[path = "../it/kit/mod.rs"]
mod kit;
mod messages;
mod pages;
mod resources;
mod servers;
mod subscriptions;
mod suite;
mod tasks;
mod transport;
mod working;
