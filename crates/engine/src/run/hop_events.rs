//! What other nodes report, as events for the lane and requests for the coordinator.

use std::sync::Weak;
use std::sync::atomic::Ordering;

use super::member::LaneEvent;
use super::{Inner, LaneMessage};
use crate::cluster::NodeId;
use crate::cluster::frame::{Ask, CallFuture, CommittedBatch, Head, HopEvents, Notes, Reply};
use crate::cluster::state::{ClusterState, CoordinatorRequest, Role};
use rialto_core::id::AgentId;
use tokio::sync::mpsc;

/// The engine's side of the connections between nodes.
pub struct EngineEvents {
    pub inner: Weak<Inner>,
    pub lane: mpsc::WeakSender<LaneMessage>,
}

impl Inner {
    /// Hands an event to the lane.
    pub(super) fn send_event(&self, lane: &mpsc::WeakSender<LaneMessage>, event: LaneEvent) {
        self.lane_events.lock().push(event);
        // With a full queue the lane is awake, and looks for events before every message.
        if let Some(lane) = lane.upgrade() {
            let _ = lane.try_send(LaneMessage::Events);
        }
    }
}

impl EngineEvents {
    fn with<R>(&self, work: impl FnOnce(&Inner, &ClusterState) -> R) -> Option<R> {
        let inner = self.inner.upgrade()?;
        let cluster = inner.cluster.clone()?;
        Some(work(&inner, &cluster))
    }

    fn send(&self, event: LaneEvent) {
        self.with(|inner, _| inner.send_event(&self.lane, event));
    }

    fn request(&self, request: CoordinatorRequest) {
        self.with(|_, cluster| cluster.requests.send(request).ok());
    }
}

impl HopEvents for EngineEvents {
    fn head(&self) -> Head {
        let head = self.with(|inner, cluster| Head {
            number: cluster.applied.borrow().number,
            now: inner.clock.now(),
        });
        head.unwrap_or_default()
    }

    fn leading_epoch(&self) -> Option<u64> {
        self.with(|_, cluster| {
            let applied = *cluster.applied.borrow();
            (applied.role == Role::Writer).then_some(applied.epoch)
        })?
    }

    fn connected(&self, epoch: u64, head: Head) {
        self.with(|inner, cluster| {
            // The first time, the writer's clock is taken as it is, so that a take-over moves no
            // deadline.
            match cluster.has_joined.swap(true, Ordering::AcqRel) {
                true => inner.clock.advance_to(head.now),
                false => {
                    inner.clock.set_to(head.now);
                    inner.clock.advance_to(inner.world.read().next.at);
                }
            }
            cluster.joined.send_replace(true);
        });
        self.send(LaneEvent::Connected { epoch });
    }

    fn refused(&self, epoch: u64) {
        self.request(CoordinatorRequest::WriterGone { epoch });
    }

    fn replied(&self, epoch: u64, reply: Reply) {
        let is_ahead = self.with(|_, cluster| cluster.is_missing(reply.place));
        self.send(LaneEvent::Replied { epoch, reply });
        if is_ahead == Some(true) {
            self.request(CoordinatorRequest::Hint);
        }
    }

    fn announced(&self, _epoch: u64, head: Head) {
        self.with(|inner, cluster| {
            inner.clock.advance_to(head.now);
            if cluster.is_missing(head.number) {
                let _ = cluster.requests.send(CoordinatorRequest::Hint);
            }
        });
    }

    fn received(&self, batch: CommittedBatch) {
        self.with(|inner, cluster| {
            inner.clock.advance_to(batch.now);
            let _ = cluster.requests.send(cluster.request_for(batch));
        });
    }

    fn readers_told(&self, agents: Vec<AgentId>) {
        self.with(|_, cluster| cluster.set_remote_readers(NodeId(0), agents));
    }

    fn asked(&self, epoch: u64, node: NodeId, ask: Ask) -> bool {
        self.send(LaneEvent::Asked { epoch, node, ask });
        true
    }

    fn noted(&self, node: NodeId, notes: Notes) {
        self.with(|inner, cluster| {
            let Notes { last_seen, presented, with_readers } = notes;
            {
                let mut known = inner.last_seen.lock();
                for (agent, at) in last_seen {
                    let newest = known.entry(agent).or_insert(at);
                    *newest = at.max(*newest);
                }
            }
            {
                let mut known = inner.presented.lock();
                for (agent, up_to) in presented {
                    let newest = known.entry(agent).or_default();
                    *newest = up_to.max(*newest);
                }
            }
            cluster.set_remote_readers(node, with_readers);
            // The other nodes are told at once.
            let _ = cluster.requests.send(CoordinatorRequest::Hint);
        });
    }

    fn called(&self, body: Vec<u8>) -> CallFuture {
        let handler = self.with(|inner, _| inner.call_handler.get().cloned()).flatten();
        match handler {
            Some(handler) => handler(body),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn left(&self, node: NodeId) {
        self.with(|_, cluster| cluster.set_remote_readers(node, Vec::new()));
    }
}
