//! The hub's own API under `/v1`: agents, jobs, money, inbox, events, keys, and operations for the
//! operator.
//!
//! It uses the terms of core. Amounts are exact numbers, times are RFC 3339 in UTC, lists are paged
//! with cursors, errors are problems (RFC 9457), and a POST with an `Idempotency-Key` takes effect
//! once however often it is sent. Things of other callers get the same response as things that do
//! not exist.

mod accounts;
mod agents;
mod response;
mod errors;
mod delivery_preview;
mod events;
mod examples;
mod middleware;
mod inbox;
mod jobs;
mod keys;
mod strict_fields;
mod ledger;
mod me;
mod json_object;
mod messages;
mod agent_names;
mod notices;
mod operator;
pub mod page;
mod presence;
pub mod problem;
mod auth;
mod public_ids;
mod operations;
#[cfg(test)]
mod tests;
mod wait;
mod webhooks;
mod work;

use axum::{Extension, Router};
use rialto_protocols::adapter::operation::router;
use rialto_protocols::adapter::{Floor, Listed};

pub use events::History;
pub use operations::TABLE;

/// Builds the router from the operations.
pub fn routes(floor: &Floor) -> Router {
    let routes = router(TABLE.iter(), floor.clone()).layer(Extension(work::Instances::default()));
    middleware::before(routes, floor)
}

/// The operations, for the OpenAPI document and tests.
pub fn listed() -> Vec<Listed> {
    let one = |row: &rialto_protocols::adapter::Route<Floor>| Listed {
        protocol: None,
        method: row.method,
        path: row.path.to_owned(),
        reach: row.reach,
        about: row.about,
    };
    TABLE.iter().map(one).collect()
}
