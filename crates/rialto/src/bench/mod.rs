//! The benchmark: how fast the hub is, told as ratios that mean the same on every machine.
//!
//! A rate alone says more about the machine than about the hub. So the hub is measured next to a
//! bare [`echo`] of the same bodies, by the same [`load`] client, on the same cores, in [`rounds`]
//! that take turns, and the [`report`] compares what is left of the echo's rate with the goals.
//! What is asked of the hub
//! is for the scenarios: [`jobs`], [`discovery`], [`startup`].

pub mod discovery;
pub mod echo;
mod hub;
pub mod jobs;
pub mod load;
pub mod measured;
pub mod memory;
mod people;
pub mod report;
pub mod rounds;
pub mod startup;
mod wire;

#[cfg(test)]
mod tests;
