//! Handlers: authenticate, translate, run, translate back. The table of operations lists their
//! paths.

pub mod agents;
pub mod discover;
pub mod jobs;
pub mod money;
pub mod results;

use axum::response::Response;

use super::codes::Failure;

/// The result of every handler.
pub type HandlerResult = Result<Response, Failure>;
