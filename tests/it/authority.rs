//! Authorization: every route against every kind of caller.
//!
//! A route without a row fails the suite, and so does a row without a route. A refused request must
//! change nothing, and neither must a public one.

mod a2a;
mod actions;
mod claws;
mod reads;
pub mod scene;
pub mod signed;
pub mod table;

use std::collections::BTreeSet;

use rialto_hub::app::operations;
use rialto_protocols::adapter::{Access, OperationInfo};

use crate::kit::snapshot;
use scene::Scene;
use table::{Row, TABLE};

/// The six kinds of caller, in the order of the table's columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Caller {
    /// No credential.
    Anyone,
    /// The agent the request is about.
    Itself,
    /// Requested the job the request is about.
    Requester,
    /// The worker of that job.
    Worker,
    /// An unrelated agent.
    Other,
    Operator,
}

pub const CALLERS: [Caller; 6] = [
    Caller::Anyone,
    Caller::Itself,
    Caller::Requester,
    Caller::Worker,
    Caller::Other,
    Caller::Operator,
];

pub fn name(route: &OperationInfo) -> String {
    format!("{} {}", route.method, route.path)
}

pub fn route_of(row: &Row) -> OperationInfo {
    let found = operations().into_iter().find(|route| name(route) == row.route);
    found.unwrap_or_else(|| panic!("no such route: {}", row.route))
}

#[test]
fn every_route_has_a_row_and_every_row_a_route() {
    let routes: BTreeSet<String> = operations().iter().map(name).collect();
    let rows: BTreeSet<String> = TABLE.iter().map(|row| row.route.to_owned()).collect();
    let without_row: Vec<_> = routes.difference(&rows).collect();
    let without_route: Vec<_> = rows.difference(&routes).collect();
    assert!(without_row.is_empty(), "routes without a row: {without_row:?}");
    assert!(without_route.is_empty(), "rows without a route: {without_route:?}");
}

#[test]
fn the_documented_reach_of_every_route_is_the_real_one() {
    for row in TABLE.iter() {
        // A protocol switch counts as allowed.
        let may = row.expected.map(|status| status == 101 || (200..300).contains(&status));
        let [anyone, itself, requester, worker, other, operator] = may;
        assert!(may.contains(&true), "{} is allowed for no caller", row.route);
        let agents = [itself, requester, worker, other];
        let fits = match route_of(row).access {
            // The proof is in the body or the path, so every caller may send it.
            Access::Public | Access::Token | Access::Signed => may == [true; 6],
            Access::Inbox => agents == [true, false, false, false] && !anyone && !operator,
            // Anyone may register a new agent; an existing one belongs to itself and its owner.
            Access::Register => itself && operator,
            Access::Agent | Access::Owner => {
                agents == [true, false, false, false] && !anyone && !operator
            }
            Access::AgentOrOperator | Access::OwnerOrOperator => {
                agents == [true, false, false, false] && !anyone && operator
            }
            Access::Requester => agents == [false, true, false, false] && !anyone && !operator,
            Access::Party => agents == [false, true, true, false] && !anyone && !operator,
            Access::Worker => agents == [false, false, true, false] && !anyone && !operator,
            Access::WorkerOrOperator => {
                agents == [false, false, true, false] && !anyone && operator
            }
            Access::Operator => agents == [false; 4] && !anyone && operator,
            // The row says which agent's own resource it must be.
            Access::AnyAgent => agents.contains(&true) && !anyone && !operator,
            Access::AnyAgentOrOperator => agents.contains(&true) && !anyone && operator,
            Access::AgentOrAnonymous => agents == [true; 4] && anyone && !operator,
        };
        assert!(
            fits,
            "{} is listed as {:?} and answers {:?}",
            row.route,
            route_of(row).access,
            row.expected
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_caller_gets_what_the_table_says_and_a_refusal_changes_nothing() {
    for row in TABLE.iter() {
        let route = route_of(row);
        let columns = || CALLERS.into_iter().zip(row.expected);
        let mut scene = Scene::set(row).await;
        let before = snapshot(&scene.hub).await;
        for (caller, expected) in columns().filter(|(_, status)| *status >= 300) {
            let status = scene.ask(row, caller).await;
            assert_eq!(status, expected, "{} by {caller:?}", row.route);
            assert_eq!(
                snapshot(&scene.hub).await,
                before,
                "{} by {caller:?} was refused",
                row.route
            );
        }
        // Fetched work is with its worker and cannot be cancelled any more.
        let fetches = row.route == "GET /v1/work";
        let reads = (route.method == "GET" || route.access == Access::Public) && !fetches;
        let mut allowed = columns().filter(|(_, status)| *status < 300).peekable();
        while let Some((caller, expected)) = allowed.next() {
            let status = scene.ask(row, caller).await;
            assert_eq!(status, expected, "{} by {caller:?}", row.route);
            if reads {
                assert_eq!(
                    snapshot(&scene.hub).await,
                    before,
                    "{} by {caller:?} only reads",
                    row.route
                );
            } else if allowed.peek().is_some() {
                // The allowed request took effect, so the next caller gets a new scene.
                scene.end().await;
                scene = Scene::set(row).await;
            }
        }
        scene.end().await;
    }
}
