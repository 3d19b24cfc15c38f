//! The crossing matrix: every protocol's agents hired from every other, over a real hub.
//!
//! One trait says what a party can do (`party`), each protocol implements it in its own file
//! (`parties`), and the tests run over the product of that list with itself. A new protocol is
//! tested against all others by its one file.

mod aliases;
mod books;
mod called;
mod cells;
mod failures;
mod found;
pub mod golden;
mod law;
mod listed;
mod loops;
mod matrix;
mod mcp_servers;
mod negotiation;
mod notes;
mod parties;
mod party;
mod prices;
mod programs;
mod raw;
mod servers;
mod worked;
