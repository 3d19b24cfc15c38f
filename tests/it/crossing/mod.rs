//! The crossing matrix: every protocol's agents hired from every other, over a real hub.
//!
//! What a party can do is one trait (`party`), each protocol says it in a file of its own (`parties`),
//! and the tests are walks over the product of that list with itself. A new protocol is tested against
//! all others by its one file.

mod aliases;
mod books;
mod called;
mod cells;
mod failures;
mod found;
mod golden;
mod law;
mod listed;
mod loops;
mod matrix;
mod negotiation;
mod notes;
mod parties;
mod party;
mod prices;
mod programs;
mod raw;
mod worked;
