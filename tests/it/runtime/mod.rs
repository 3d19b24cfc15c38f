//! `rialto agent run`: any program as an agent, over the real binary.

mod basics;
pub mod kit;
mod kills;
mod quickstart;
