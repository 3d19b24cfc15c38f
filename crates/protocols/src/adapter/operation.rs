//! Operations as a table: the router, the API document and the authority test are made from its
//! rows. An operation without a row does not exist.

use axum::Router;
use axum::routing::MethodRouter;
use rialto_core::alias::Protocol;

/// Who may call an operation. The authority test checks every row against every kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Any caller; it changes nothing.
    Public,
    /// Any caller, to create something new; limited by address.
    Register,
    /// The signer of the body, for what it may do.
    Signed,
    /// The named agent.
    Agent,
    /// The named agent, or the operator.
    AgentOrOperator,
    /// The requester of the job.
    Requester,
    /// Requester or worker of the job.
    Party,
    /// The worker of the job.
    Worker,
    /// The worker of the job, or the operator.
    WorkerOrOperator,
    /// An agent of the named owner.
    Owner,
    /// An agent of the named owner, or the operator.
    OwnerOrOperator,
    /// The holder of a token made for this one purpose.
    Token,
    /// An agent, by a token that permits reading its inbox.
    Inbox,
    /// The operator alone.
    Operator,
    /// Any agent, for what belongs to it.
    AnyAgent,
    /// Any agent for what belongs to it; the operator for everything.
    AnyAgentOrOperator,
}

/// One operation of a protocol.
pub struct Operation<S> {
    pub method: &'static str,
    /// Relative to the protocol's prefix, with `{name}` for variable parts; empty for the prefix
    /// itself.
    pub path: &'static str,
    /// Also served at the root of the hub.
    pub at_root: bool,
    pub access: Access,
    pub summary: &'static str,
    pub handler: fn() -> MethodRouter<S>,
}

impl<S> Operation<S> {
    /// An operation served under the prefix only.
    pub const fn under_prefix(
        method: &'static str,
        path: &'static str,
        reach: Access,
        about: &'static str,
        handler: fn() -> MethodRouter<S>,
    ) -> Self {
        Self { method, path, at_root: false, access: reach, summary: about, handler }
    }
}

/// An operation as documents and tests see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationInfo {
    pub protocol: Option<Protocol>,
    pub method: &'static str,
    /// From the root of the hub.
    pub path: String,
    pub reach: Access,
    pub about: &'static str,
}

/// The router of a table.
pub fn build_router<'r, S: Clone + Send + Sync + 'static>(
    rows: impl Iterator<Item = &'r Operation<S>>,
    state: S,
) -> Router {
    let add = |router: Router<S>, row: &Operation<S>| {
        let path = if row.path.is_empty() { "/" } else { row.path };
        router.route(path, (row.handler)())
    };
    rows.fold(Router::new(), add).with_state(state)
}

/// All operations of a table with their full paths: under the prefix, and at the root where served
/// there too.
pub fn describe_operations<S>(protocol: Protocol, rows: &[Operation<S>]) -> Vec<OperationInfo> {
    let one = |row: &Operation<S>, path| OperationInfo {
        protocol: Some(protocol),
        method: row.method,
        path,
        reach: row.access,
        about: row.summary,
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

impl Access {
    /// Whether a web page of any origin may read the answer.
    pub fn is_public(self) -> bool {
        self == Self::Public
    }
}
