//! `rialto agent run`: any program as an agent, over the real binary.

mod alone;
mod basics;
mod dialogue;
mod environment;
mod folders;
mod found;
mod kills;
pub mod kit;
mod quickstart;
mod stopping;
mod suspended;
