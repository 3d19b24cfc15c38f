//! Simulation of the real core and the real engine, with a simulated clock, network, store and
//! agents.
//!
//! Each simulated life is a separate hub with agents of six protocols. Its engine is the real one
//! with a manual lane, so a seed decides which commands share a batch, between which two steps it
//! crashes, and what is late, lost, duplicated or false. Beside it runs a model, one command at a
//! time, on which every invariant is checked after every command. What the engine answers, writes
//! and shows must be the same.
//!
//! `cluster` does the same for two to four nodes over one log.

pub mod ask;
pub mod cast;
pub mod cluster;
pub mod dice;
pub mod failure;
pub mod hub;
pub mod life;
pub mod log;
pub mod mail;
pub mod memory;
pub mod model;
pub mod names;
pub mod net;
pub mod orders;
pub mod rest;
pub mod rights;
pub mod run;
pub mod store;
pub mod view;
