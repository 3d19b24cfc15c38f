//! The handlers. Each is a short story: a proven caller comes in, we translate, run, and translate
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
