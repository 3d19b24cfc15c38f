//! Crowds and attackers against the real program (G7, G20, T26, T43 to T50).
//!
//! Every test has a bystander: a client that uses the hub normally during the attack and must not
//! be affected. The tests assert that its requests succeed, never how fast.

mod bombs;
mod bystander;
mod crowd;
mod floods;
mod full;
mod hub_process;
mod memory;
mod polls;
mod receivers;
mod room;
mod slow;
mod smuggling;
mod unread;
