//! `rialto mcp`: the real program between a client on pipes and a hub.

mod eras;
mod fake_hub;
mod keys;
mod life;
mod offline;
pub mod process;
mod questions;
mod updates;
