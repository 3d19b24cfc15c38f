//! Crowds and people who mean harm, against the real program (G7, G20, T26, T43 to T50).
//!
//! Every test has a bystander: somebody who uses the hub as it is meant to be used while the others
//! are at it, and who must not notice. What is asserted is that it succeeds, never how fast.

mod bombs;
mod bystander;
mod crowd;
mod floods;
mod full;
mod house;
mod memory;
mod polls;
mod receivers;
mod room;
mod slow;
mod smuggling;
mod unread;
