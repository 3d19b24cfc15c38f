//! The table of operations, and the protocol adapter.

use std::sync::Arc;

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use rialto_core::alias::Protocol;
use rialto_core::job::Job;
use rialto_core::notice::Push;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Answer, SendError};
use rialto_engine::delivery::{Courier, Letter, Verdict};
use rialto_engine::secret::HubSecret;

use super::routes::{compute, messages};
use super::sides::ClaraSides;
use super::{BODY_MAX, ID, intake, people};
use crate::adapter::fidelity::Sides;
use crate::adapter::operation::{listed, router};
use crate::adapter::{Face, Floor, Listed, Newcomer, Reach, Route, Trouble, delivery_result, naming};
use crate::kit::ijson::Json;

/// The adapter of this protocol.
pub struct Clara;

/// Every operation is served under its unit's name and directly under the prefix. Clients whose
/// base URL ends in a slash send two slashes, so those paths are served, too.
const TABLE: &[Route<Floor>] = &[
    Route::prefixed(
        "GET",
        "",
        Reach::Public,
        "Show the process id and the paths of its units",
        || get(messages::overview),
    ),
    Route::prefixed("POST", "", Reach::Signed, "Post a signed message", || post(messages::post)),
    Route::prefixed("POST", "/mu", Reach::Signed, "Post a signed message", || post(messages::post)),
    Route::prefixed(
        "POST",
        "/mu/monitor/{process}",
        Reach::Public,
        "Accepted for compatibility; has no effect",
        || post(messages::monitor),
    ),
    Route::prefixed(
        "DELETE",
        "/mu/monitor/{process}",
        Reach::Public,
        "Accepted for compatibility; has no effect",
        || delete(messages::monitor),
    ),
    Route::prefixed(
        "POST",
        "/monitor/{process}",
        Reach::Public,
        "Accepted for compatibility; has no effect",
        || post(messages::monitor),
    ),
    Route::prefixed(
        "DELETE",
        "/monitor/{process}",
        Reach::Public,
        "Accepted for compatibility; has no effect",
        || delete(messages::monitor),
    ),
    Route::prefixed(
        "GET",
        "/cu/result/{message}",
        Reach::Public,
        "Get the result of a message",
        || get(compute::result),
    ),
    Route::prefixed(
        "GET",
        "/result/{message}",
        Reach::Public,
        "Get the result of a message",
        || get(compute::result),
    ),
    Route::prefixed(
        "GET",
        "/cu/results/{process}",
        Reach::Public,
        "List results page by page",
        || get(compute::results),
    ),
    Route::prefixed(
        "GET",
        "/results/{process}",
        Reach::Public,
        "List results page by page",
        || get(compute::results),
    ),
    Route::prefixed(
        "POST",
        "/cu/dry-run",
        Reach::Public,
        "Evaluate a message without storing it",
        || post(compute::dry_run),
    ),
    Route::prefixed(
        "POST",
        "/dry-run",
        Reach::Public,
        "Evaluate a message without storing it",
        || post(compute::dry_run),
    ),
];

impl Face for Clara {
    fn id(&self) -> Protocol {
        ID
    }

    fn routes(&self, floor: &Floor) -> Router {
        router(TABLE.iter(), floor.clone())
    }

    fn root_routes(&self, _: &Floor) -> Router {
        Router::new()
    }

    fn listed(&self) -> Vec<Listed> {
        listed(ID, TABLE)
    }

    fn courier(&self, _: &Floor) -> Arc<dyn Courier> {
        Arc::new(Nobody)
    }

    fn trouble(&self, _: &Floor, trouble: Trouble) -> Response {
        intake::refused(&trouble).into_response()
    }

    /// Agents register with a signed message.
    fn claims_registration(&self, _: &Json<'_>) -> bool {
        false
    }

    fn registration_example(&self) -> Option<&'static str> {
        None
    }

    fn sides(&self) -> &'static dyn Sides {
        &ClaraSides
    }

    fn alias(&self, _: &HubSecret, new: &Newcomer<'_>, taken: bool) -> Option<String> {
        let digits = naming::digits(new.home, new.native, taken);
        Some(format!("{}/{}-{digits}", new.home, naming::slug(new.name)))
    }

    fn looks(&self, native: &str) -> Vec<String> {
        people::looks(native)
    }

    fn is_open_to_pages(&self) -> bool {
        true
    }

    fn body_limit(&self, general: usize) -> usize {
        general.min(BODY_MAX)
    }
}

/// Clara agents poll: there are no deliveries.
struct Nobody;

impl Courier for Nobody {
    fn worded(&self, _: &Engine, _: &Push, _: Option<&Job>) -> Option<Letter> {
        None
    }

    fn verdict(
        &self,
        _: &Engine,
        _: &Push,
        _: Option<&Job>,
        answer: &Result<Answer, SendError>,
    ) -> Verdict {
        delivery_result::by_status(answer)
    }
}
