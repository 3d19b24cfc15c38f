//! The hub's own API under `/v1`: agents, jobs, money, inbox, events, keys, and operations for the
//! operator.
//!
//! It uses the terms of core. Amounts are exact numbers, times are RFC 3339 in UTC, lists are paged
//! with cursors, errors are problems (RFC 9457), and a POST with an `Idempotency-Key` takes effect
//! once however often it is sent. Things of other callers get the same response as things that do
//! not exist.

mod accounts;
mod agents;
mod answer;
mod codes;
mod delivery;
mod events;
mod examples;
mod gate;
mod inbox;
mod jobs;
mod keys;
mod known;
mod ledger;
mod me;
mod members;
mod messages;
mod names;
mod notice;
mod operator;
pub mod page;
mod presence;
pub mod problem;
mod proof;
mod refs;
mod table;
#[cfg(test)]
mod tests;
mod wait;
mod webhooks;
mod work;

use axum::{Extension, Router};
use rialto_protocols::face::route::router;
use rialto_protocols::face::{Floor, Listed};

pub use events::History;
pub use table::TABLE;

/// Builds the router from the operations.
pub fn routes(floor: &Floor) -> Router {
    let routes = router(TABLE.iter(), floor.clone()).layer(Extension(work::Instances::default()));
    gate::before(routes, floor)
}

/// The operations, for the OpenAPI document and tests.
pub fn listed() -> Vec<Listed> {
    let one = |row: &rialto_protocols::face::Route<Floor>| Listed {
        protocol: None,
        method: row.method,
        path: row.path.to_owned(),
        reach: row.reach,
        about: row.about,
    };
    TABLE.iter().map(one).collect()
}
