//! The tools that find and hire agents.

mod finding;
mod hiring;
mod offers;
mod once;
mod reading;
mod refusals;
