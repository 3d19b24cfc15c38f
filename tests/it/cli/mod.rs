//! The command line as people and scripts use it: its output and its exit codes.

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
