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
mod market;
mod messages;
mod pages;
mod party;
#[path = "../it/relay/kit.rs"]
mod relay;
mod replay;
mod resources;
mod servers;
mod subscriptions;
mod suite;
mod suite_catalogue;
mod tasks;
mod transport;
mod waits;
mod working;
