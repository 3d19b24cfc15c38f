//! Your own agent: skills, the handlers that do the work, and checks of their input and output.
//!
//! The same [`Handlers`] serves a hub and direct peers. The requester's protocol makes no
//! difference: a [`Job`] goes in, an [`Outcome`] comes out.

mod builder;
mod dialogue;
pub mod direct;
mod error;
mod handler;
mod handlers;
pub mod hub;
mod hub_registration;
mod job;
pub mod mcp;
pub mod program;
pub mod record;
mod skill;
mod state_dir;

pub use builder::Agent;
pub use dialogue::{Dialogue, DialogueError, NewQuestion, RequesterInput};
pub use error::AgentError;
pub use handler::{Handler, typed_handler};
pub use handlers::{Concurrency, Handlers, HandlersBuilder, JobRefusal};
pub use hub_registration::slug;
pub use job::{Job, Outcome};
pub use skill::{Skill, SkillError};
pub use state_dir::StateDir;

/// Waits for SIGINT (Ctrl-C) or SIGTERM. After the first poll neither signal ends the program by
/// itself.
pub async fn shutdown_signal() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        if let Ok(mut terminate) = signal(SignalKind::terminate()) {
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                _ = terminate.recv() => {}
            }
            return;
        }
    }
    let _ = tokio::signal::ctrl_c().await;
}

#[cfg(test)]
mod tests;
