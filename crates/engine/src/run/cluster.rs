//! The engine of one node among several: reads that see everything committed before them.

use std::time::Duration;

use tokio::sync::{oneshot, watch};

use super::{CallHandler, Engine, Failure};
#[cfg(any(test, feature = "testkit"))]
use crate::cluster::mistake::Mistake;
use crate::cluster::state::{ClusterState, ClusterStatus, CoordinatorRequest, Role};
#[cfg(feature = "testkit")]
pub use manual::ManualNode;

/// How long a read waits for the database.
const FRESH_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a node that stops waits for the database, which then need not answer any more.
const LEAVE_TIMEOUT: Duration = Duration::from_secs(1);

impl Engine {
    fn cluster(&self) -> Option<&ClusterState> {
        self.inner.cluster.as_deref()
    }

    /// Waits until this node has everything that was committed before the call. Returns at once at
    /// a hub of one node.
    pub async fn fresh(&self) -> Result<(), Failure> {
        let Some(cluster) = self.cluster() else { return Ok(()) };
        let look = async {
            let (found, head) = oneshot::channel();
            cluster.requests.send(CoordinatorRequest::Look(found)).ok()?;
            let head = head.await.ok()?;
            let mut applied = cluster.applied.subscribe();
            applied.wait_for(|applied| applied.number >= head).await.ok().map(drop)
        };
        let looked = tokio::time::timeout(FRESH_TIMEOUT, look).await;
        looked.ok().flatten().ok_or(Failure::Unavailable)
    }

    /// Whether this node has looked at the log lately. A node that has not answers nothing.
    pub fn is_current(&self) -> bool {
        self.cluster().is_none_or(ClusterState::is_current)
    }

    /// Changes when this node begins or ceases to be current; `None` at a hub of one node.
    pub fn subscribe_current(&self) -> Option<watch::Receiver<bool>> {
        self.cluster().map(|cluster| cluster.current.subscribe())
    }

    /// Waits until this node ceases to be current: forever at a hub of one node.
    pub async fn until_stale(&self) {
        match self.subscribe_current() {
            Some(mut current) => drop(current.wait_for(|current| !current).await),
            None => std::future::pending().await,
        }
    }

    /// Whether this node decides commands and sends deliveries.
    pub fn is_writer(&self) -> bool {
        self.cluster().is_none_or(|cluster| cluster.applied.borrow().role == Role::Writer)
    }

    /// The epoch in which this node writes; `None` if it follows, or at a hub of one node.
    pub fn writer_epoch(&self) -> Option<u64> {
        let applied = *self.cluster()?.applied.borrow();
        (applied.role == Role::Writer).then_some(applied.epoch)
    }

    /// Whether what this node decided in `epoch` stands: it still writes in it, by a look that begins
    /// now. True without an epoch, for a node that looked before it decided.
    pub async fn still_writes(&self, epoch: Option<u64>) -> bool {
        #[cfg(any(test, feature = "testkit"))]
        if Mistake::of_process() == Some(Mistake::NoConfirmation) {
            return true;
        }
        epoch.is_none() || self.fresh().await.is_ok() && self.writer_epoch() == epoch
    }

    /// Whether this node takes part: it writes, or is connected to the writer. Always at a hub of
    /// one node.
    pub fn has_joined(&self) -> bool {
        self.cluster().is_none_or(|cluster| *cluster.joined.borrow())
    }

    /// Waits until this node takes part.
    pub async fn join(&self) {
        if let Some(cluster) = self.cluster() {
            let _ = cluster.joined.subscribe().wait_for(|joined| *joined).await;
        }
    }

    /// Asks the writer about state that only it has in memory. `None` if it does not answer.
    pub async fn call_writer(&self, body: Vec<u8>) -> Option<Vec<u8>> {
        match &self.inner.hop.get() {
            Some(hop) if !self.is_writer() => hop.call(body).await,
            _ => self.inner.call_handler.get()?(body).await,
        }
    }

    /// Sets what answers such calls. The first handler stays.
    pub fn set_call_handler(&self, handler: CallHandler) {
        let _ = self.inner.call_handler.set(handler);
    }

    /// Waits until this node decides commands: not at all at a hub of one node.
    pub async fn until_writer(&self) {
        self.until_role(Role::Writer).await;
    }

    /// Waits until another node decides commands: forever at a hub of one node.
    pub async fn until_follower(&self) {
        self.until_role(Role::Follower).await;
    }

    async fn until_role(&self, role: Role) {
        match self.cluster() {
            Some(cluster) => {
                let mut applied = cluster.applied.subscribe();
                // The engine keeps the sender, so there is always a next value.
                let _ = applied.wait_for(|applied| applied.role == role).await;
            }
            None if role == Role::Writer => {}
            None => std::future::pending().await,
        }
    }

    /// This node and the others; `None` at a hub of one node.
    pub fn cluster_status(&self) -> Option<ClusterStatus> {
        self.cluster().map(ClusterState::status)
    }

    /// How many nodes serve, for limits that are shared between them.
    pub fn node_count(&self) -> usize {
        self.cluster().map_or(1, |cluster| cluster.nodes.lock().len().max(1))
    }

    /// Lets another node write, before this one stops.
    pub async fn resign(&self) {
        let Some(cluster) = self.cluster() else { return };
        let (done, resigned) = oneshot::channel();
        if cluster.requests.send(CoordinatorRequest::Resign(done)).is_ok() {
            let _ = tokio::time::timeout(FRESH_TIMEOUT, resigned).await;
        }
    }

    /// Saves the place of this node and tells the others that it has stopped, after its lane has.
    pub async fn leave(&self) {
        let Some(cluster) = self.inner.cluster.clone() else { return };
        let saving = cluster.clone();
        let saved = tokio::task::spawn_blocking(move || saving.save_place());
        let _ = tokio::time::timeout(LEAVE_TIMEOUT, saved).await;
        let (done, left) = oneshot::channel();
        if cluster.requests.send(CoordinatorRequest::Leave(done)).is_ok() {
            let _ = tokio::time::timeout(LEAVE_TIMEOUT, left).await;
        }
    }
}

/// A node of a cluster without a cluster, for tests of what nodes do.
#[cfg(feature = "testkit")]
mod manual {
    use std::sync::Arc;
    use std::time::{Duration, Instant};

    use tokio::sync::mpsc;

    use crate::cluster::NodeId;
    use crate::cluster::state::{Applied, ClusterState, CoordinatorRequest, Role};
    use crate::run::{Engine, EngineParts, RunningEngine};
    use crate::store::StoreError;

    /// A node whose coordinator is played by a test. The lane runs commands itself, whatever the role
    /// of the node.
    pub struct ManualNode {
        pub state: Arc<ClusterState>,
    }

    /// What the node asks its coordinator.
    pub type Requests = mpsc::UnboundedReceiver<CoordinatorRequest>;

    impl ManualNode {
        /// Starts a node with this role, which is current.
        pub fn start(
            setup: EngineParts,
            role: Role,
        ) -> Result<(RunningEngine, Self, Requests), StoreError> {
            let (sender, received) = std::sync::mpsc::channel();
            let (passed_on, requests) = mpsc::unbounded_channel();
            std::thread::spawn(move || {
                received.into_iter().try_for_each(|request| passed_on.send(request))
            });
            let state = Arc::new(ClusterState::new(NodeId(1), sender));
            state.applied.send_replace(Applied { role, ..Applied::default() });
            let running = Engine::start_in(setup, state.clone())?;
            let node = Self { state };
            node.set_current(true);
            Ok((running, node, requests))
        }

        /// Whether the node has looked at the log lately; it stays so.
        pub fn set_current(&self, current: bool) {
            const LONG: Duration = Duration::from_secs(3_600);
            *self.state.looked_at.lock() = current.then(|| Instant::now() + LONG);
            self.state.current.send_replace(current);
        }

        pub fn set_role(&self, role: Role) {
            self.state.applied.send_modify(|applied| applied.role = role);
        }
    }
}
