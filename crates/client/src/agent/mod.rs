//! Your own agent: skills, the handlers that do the work, and checks of their input and output.
//!
//! The same [`Handlers`] serves a hub and direct peers. The requester's protocol makes no
//! difference: a [`Job`] goes in, an [`Outcome`] comes out.

mod builder;
pub mod direct;
mod error;
mod handler;
mod handlers;
pub mod hub;
mod hub_registration;
mod job;
mod outcome;
pub mod program;
pub mod record;
mod shutdown;
mod skill;
mod state_dir;
#[cfg(test)]
mod tests;
mod typed_handler;

pub use builder::Agent;
pub use error::AgentError;
pub use handler::Handler;
pub use handlers::{Concurrency, Handlers, HandlersBuilder, JobRefusal};
pub use hub_registration::slug;
pub use job::Job;
pub use outcome::Outcome;
pub use shutdown::shutdown_signal;
pub use skill::{Skill, SkillError};
pub use state_dir::StateDir;
pub use typed_handler::typed_handler;
