//! An agent of one's own: a few skills, something that does the work, and a workshop around it that
//! checks what comes in and what goes out.
//!
//! The same [`Workshop`] works for a hub and without one. What is asked of it looks the same
//! whichever protocol the requester speaks: a [`Job`] goes in, an [`Outcome`] comes out.

pub mod direct;
mod handler;
mod job;
mod outcome;
pub mod post;
pub mod program;
pub mod record;
mod skill;
#[cfg(test)]
mod tests;
mod workshop;

pub use handler::Handler;
pub use job::Job;
pub use outcome::Outcome;
pub use skill::{BadSkill, Skill};
pub use workshop::{Refused, Room, Setup, Workshop};
