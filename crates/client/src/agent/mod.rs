//! Your own agent: skills, the handlers that do the work, and checks of their input and output.
//!
//! The same [`Workshop`] serves a hub and direct peers. The requester's protocol makes no
//! difference: a [`Job`] goes in, an [`Outcome`] comes out.

pub mod direct;
mod enrolment;
mod handler;
mod job;
mod outcome;
pub mod post;
pub mod program;
pub mod record;
mod seat;
mod skill;
mod stop;
#[cfg(test)]
mod tests;
mod trouble;
mod typed;
mod whole;
mod workshop;

pub use enrolment::plain;
pub use handler::Handler;
pub use job::Job;
pub use outcome::Outcome;
pub use seat::Seat;
pub use skill::{BadSkill, Skill};
pub use stop::told_to_stop;
pub use trouble::AgentError;
pub use typed::typed;
pub use whole::Agent;
pub use workshop::{Refused, Room, Setup, Workshop};
