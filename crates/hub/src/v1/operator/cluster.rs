//! The nodes of the hub, as the node that is asked sees them.

use axum::extract::State;
use rialto_core::time::Timestamp;
use rialto_engine::cluster::state::{ClusterStatus, Role};
use rialto_engine::cluster::{NodeId, NodeReport, NodeRow};
use rialto_protocols::adapter::HubContext;
use rialto_protocols::kit::api_doc::Time;
use schemars::JsonSchema;
use serde::Serialize;

use crate::v1::auth::OperatorCaller;
use crate::v1::response::{HandlerResult, format_time, ok_response};

/// A hub of one node is shown as one node with the number 0 and no address, which writes.
#[derive(Serialize, JsonSchema)]
pub struct ClusterView {
    /// The node that answers.
    node: String,
    role: RoleName,
    /// Raised each time another node becomes the writer.
    epoch: u64,
    /// The newest batch of the log that this node has applied.
    seq: u64,
    /// How long ago this node last looked at the log, in milliseconds.
    lag_ms: u64,
    /// All nodes that have reported lately.
    nodes: Vec<NodeView>,
}

#[derive(Serialize, JsonSchema)]
pub struct NodeView {
    node: String,
    /// Where other nodes reach it, as host and port.
    address: String,
    role: RoleName,
    version: String,
    /// The newest batch of the log that it had applied when it reported.
    applied: u64,
    /// When it reported.
    seen_at: Time,
}

/// Whether a node decides commands or passes them on.
#[derive(Clone, Copy, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum RoleName {
    Writer,
    Follower,
}

impl From<Role> for RoleName {
    fn from(role: Role) -> Self {
        match role {
            Role::Writer => Self::Writer,
            Role::Follower => Self::Follower,
        }
    }
}

/// `GET /v1/operator/cluster`.
pub async fn show_cluster(State(context): State<HubContext>, _by: OperatorCaller) -> HandlerResult {
    let now = context.engine.now();
    let status = context.engine.cluster_status().unwrap_or_else(|| single_node(now));
    Ok(ok_response(&ClusterView::of(status)))
}

/// A hub of one node.
fn single_node(now: Timestamp) -> ClusterStatus {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    let report = NodeReport { version, ..NodeReport::default() };
    ClusterStatus {
        node: NodeId::default(),
        role: Role::Writer,
        epoch: 0,
        seq: 0,
        lag_ms: 0,
        takeovers: 0,
        writer: Some(NodeId::default()),
        nodes: vec![NodeRow { report, seen_at: now, silent_ms: 0 }],
    }
}

impl ClusterView {
    fn of(status: ClusterStatus) -> Self {
        let ClusterStatus { node, role, epoch, seq, lag_ms, writer, nodes, .. } = status;
        let shown = |row: NodeRow| {
            let role = if Some(row.report.node) == writer { Role::Writer } else { Role::Follower };
            NodeView {
                node: row.report.node.to_string(),
                address: row.report.address,
                role: role.into(),
                version: row.report.version,
                applied: row.report.applied,
                seen_at: format_time(row.seen_at),
            }
        };
        let nodes = nodes.into_iter().map(shown).collect();
        Self { node: node.to_string(), role: role.into(), epoch, seq, lag_ms, nodes }
    }
}
