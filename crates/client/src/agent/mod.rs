//! Your own agent: skills, the handlers that do the work, and checks of their input and output.
//!
//! The same [`Workshop`] serves a hub and direct peers. The requester's protocol makes no
//! difference: a [`Job`] goes in, an [`Outcome`] comes out.

pub mod direct;
mod hub_registration;
mod handler;
mod job;
mod outcome;
pub mod hub;
pub mod program;
pub mod record;
mod state_dir;
mod skill;
mod shutdown;
#[cfg(test)]
mod tests;
mod error;
mod typed_handler;
mod builder;
mod handlers;

pub use hub_registration::plain;
pub use handler::Handler;
pub use job::Job;
pub use outcome::Outcome;
pub use state_dir::Seat;
pub use skill::{BadSkill, Skill};
pub use shutdown::told_to_stop;
pub use error::AgentError;
pub use typed_handler::typed;
pub use builder::Agent;
pub use handlers::{Refused, Room, Setup, Workshop};
