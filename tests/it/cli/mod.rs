//! The command line, as a person or a script meets it: what it prints, and how it exits.

mod agents;
mod anew;
mod basics;
mod contexts;
mod doctor;
mod hiding;
mod keys;
pub mod kit;
mod messages;
mod pipes;
mod reputation;
mod spoilt;
mod typed;
mod wallet;
