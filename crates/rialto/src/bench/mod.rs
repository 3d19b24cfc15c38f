//! The benchmark: how fast the hub is, as ratios that hold on every machine.
//!
//! A rate alone says more about the machine than about the hub. So the hub is measured next to a
//! bare [`echo`] of the same bodies, by the same [`load`] client, on the same cores, in alternating
//! [`rounds`]. The [`report`] compares the ratios with the goals. The scenarios are [`jobs`],
//! [`discovery`], [`startup`], and for the relay [`send`], [`stored`], [`streams`], [`stalled`].
//! [`worker`] measures our own agent runtime by one requester's consecutive jobs, without an echo.
//! [`agora`] and [`clara`] are measured next to bare signature verification instead.

mod agents;
pub mod agora;
pub mod clara;
mod cpu;
pub mod discovery;
pub mod echo;
mod echo_message;
mod envelope_verifier;
mod envelopes;
mod event_parser;
mod hub;
mod hyper_connection;
mod inbox;
mod items;
pub mod jobs;
pub mod load;
pub mod measurement;
pub mod memory;
mod message;
mod process;
mod raw_connection;
mod relay_agent;
mod relay_fixture;
pub mod report;
pub mod rounds;
mod rsa_verifier;
pub mod send;
pub mod stalled;
pub mod startup;
pub mod stored;
pub mod streams;
pub mod worker;

#[cfg(test)]
mod tests;
