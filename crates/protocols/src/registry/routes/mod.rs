//! Handlers: authenticate, translate, run, translate
//! back. The table in `face` says where each one lives.

pub mod agents;
pub mod discover;
pub mod jobs;
pub mod money;
pub mod results;

use axum::response::Response;

use super::codes::Failure;

/// What every handler gives.
pub type Answered = Result<Response, Failure>;
