//! Seeded lives of the real core and the real engine, with the clock, the network, the store and
//! everybody in it simulated.
//!
//! Each life is a hub of its own with agents of five protocols. Its engine is the real one, its lane
//! moved by hand, so a seed decides what shares a batch, what crashes between which two steps, what is
//! late, lost, doubled or told falsely. Beside it runs a model, one command after the other, on which
//! every law is checked after every command; what the engine answers, writes and shows must be the same.

pub mod ask;
pub mod cast;
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
