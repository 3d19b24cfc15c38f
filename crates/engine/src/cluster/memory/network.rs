//! The connections between nodes of one process: nothing is late, and nothing is lost.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rialto_core::id::AgentId;
use rialto_core::time::Timestamp;

use crate::cluster::frame::{
    Ask, BatchRecord, CallFuture, CommittedBatch, Head, Hop, HopEvents, Notes, Reply,
};
use crate::cluster::{Lease, NodeId};
use crate::store::log::Place;

/// The connections between the nodes of one process.
#[derive(Clone, Default)]
pub struct MemoryNetwork(Arc<Mutex<HashMap<NodeId, Arc<dyn HopEvents>>>>);

impl MemoryNetwork {
    /// Adds a node.
    pub fn add(&self, node: NodeId, events: Arc<dyn HopEvents>) -> Arc<dyn Hop> {
        self.0.lock().insert(node, events);
        let network = self.clone();
        Arc::new(MemoryHop { network, node, writer: Mutex::default() })
    }

    /// Ends a node, as if its process was killed.
    pub fn remove(&self, node: NodeId) {
        self.0.lock().remove(&node);
    }

    fn get(&self, node: NodeId) -> Option<Arc<dyn HopEvents>> {
        self.0.lock().get(&node).cloned()
    }
}

struct MemoryHop {
    network: MemoryNetwork,
    node: NodeId,
    /// The writer and its epoch.
    writer: Mutex<Option<(NodeId, u64)>>,
}

impl MemoryHop {
    /// The writer, if it still writes in that epoch.
    fn writer(&self) -> Option<(Arc<dyn HopEvents>, u64)> {
        let (node, epoch) = (*self.writer.lock())?;
        let events = self.network.get(node)?;
        (events.leading_epoch() == Some(epoch)).then_some((events, epoch))
    }
}

impl Hop for MemoryHop {
    fn follow(&self, writer: &Lease) {
        let named = Some((writer.node, writer.epoch));
        let is_new = std::mem::replace(&mut *self.writer.lock(), named) != named;
        let Some(own) = self.network.get(self.node) else { return };
        match self.writer() {
            Some((events, epoch)) if is_new => own.connected(epoch, events.head()),
            Some(_) => {}
            None => own.refused(writer.epoch),
        }
    }

    fn lead(&self, _: u64) {
        *self.writer.lock() = None;
    }

    fn ask(&self, epoch: u64, ask: Ask) {
        match self.writer() {
            Some((events, of)) if of == epoch => {
                events.asked(epoch, self.node, ask);
            }
            _ => {
                if let Some(own) = self.network.get(self.node) {
                    own.refused(epoch);
                }
            }
        }
    }

    fn note(&self, notes: Notes) {
        if let Some((events, _)) = self.writer() {
            events.noted(self.node, notes);
        }
    }

    fn reply(&self, node: NodeId, epoch: u64, reply: Reply) {
        if let Some(events) = self.network.get(node) {
            events.replied(epoch, reply);
        }
    }

    fn announce(&self, epoch: u64, place: Place, now: Timestamp, record: Option<BatchRecord>) {
        let others: Vec<_> = {
            let nodes = self.network.0.lock();
            let others = nodes.iter().filter(|(node, _)| **node != self.node);
            others.map(|(_, events)| events.clone()).collect()
        };
        let batch = record.map(|record| CommittedBatch { place, epoch, now, record });
        for events in others {
            match &batch {
                Some(batch) => events.received(batch.clone()),
                None => events.announced(0, Head { number: place.number, now }),
            }
        }
    }

    fn tell_readers(&self, agents: &[AgentId]) {
        let nodes = self.network.0.lock().clone();
        for (_, events) in nodes.iter().filter(|(node, _)| **node != self.node) {
            events.readers_told(agents.to_vec());
        }
    }

    fn call(&self, body: Vec<u8>) -> CallFuture {
        match self.writer() {
            Some((events, _)) => events.called(body),
            None => Box::pin(std::future::ready(None)),
        }
    }
}
