//! Routes as a table: one row each, from which the router, the API document and the authority test
//! are made. What has no row does not exist.

use axum::Router;
use axum::routing::MethodRouter;
use rialto_core::alias::Protocol;

/// Who may call a route. The test of authority checks every row against every kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Anybody, and it changes nothing.
    Public,
    /// Anybody, for something new; limited by address.
    Register,
    /// Whoever signed the body, for what its signer may do.
    Signed,
    /// The agent that is named.
    Agent,
    /// The agent that is named, or the operator.
    AgentOrOperator,
    /// The requester of the job.
    Requester,
    /// Requester or worker of the job.
    Party,
    /// The worker of the job.
    Worker,
    /// The worker of the job, or the operator.
    WorkerOrOperator,
    /// An agent of the owner that is named.
    Owner,
    /// An agent of the owner that is named, or the operator.
    OwnerOrOperator,
    /// Whoever holds a token made for this one thing.
    Token,
    /// An agent, by a token for reading what came to it.
    Inbox,
    /// The operator alone.
    Operator,
    /// Any agent, for what is its own.
    AnyAgent,
    /// Any agent for what is its own; the operator for everything.
    AnyAgentOrOperator,
}

/// One route of a protocol.
pub struct Route<S> {
    pub method: &'static str,
    /// Relative to the protocol's prefix, with `{name}` for parts that vary; empty for the prefix
    /// itself.
    pub path: &'static str,
    /// Also served at the root of the hub.
    pub at_root: bool,
    pub reach: Reach,
    pub about: &'static str,
    pub handler: fn() -> MethodRouter<S>,
}

impl<S> Route<S> {
    /// A route under the prefix and nowhere else.
    pub const fn prefixed(
        method: &'static str,
        path: &'static str,
        reach: Reach,
        about: &'static str,
        handler: fn() -> MethodRouter<S>,
    ) -> Self {
        Self { method, path, at_root: false, reach, about, handler }
    }
}

/// A route as others see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub protocol: Option<Protocol>,
    pub method: &'static str,
    /// From the root of the hub.
    pub path: String,
    pub reach: Reach,
    pub about: &'static str,
}

/// The router of a table.
pub fn router<'r, S: Clone + Send + Sync + 'static>(
    rows: impl Iterator<Item = &'r Route<S>>,
    state: S,
) -> Router {
    let add = |router: Router<S>, row: &Route<S>| {
        let path = if row.path.is_empty() { "/" } else { row.path };
        router.route(path, (row.handler)())
    };
    rows.fold(Router::new(), add).with_state(state)
}

/// The table as others see it: under the prefix, and at the root where a route is served there too.
pub fn listed<S>(protocol: Protocol, rows: &[Route<S>]) -> Vec<Listed> {
    let one = |row: &Route<S>, path| Listed {
        protocol: Some(protocol),
        method: row.method,
        path,
        reach: row.reach,
        about: row.about,
    };
    let mut all = Vec::new();
    for row in rows {
        all.push(one(row, format!("/{protocol}{}", row.path)));
        if row.at_root {
            all.push(one(row, row.path.to_owned()));
        }
    }
    all
}

impl Reach {
    /// Whether a stranger's browser may read the answer.
    pub fn is_public(self) -> bool {
        self == Self::Public
    }
}
