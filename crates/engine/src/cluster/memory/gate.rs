//! For tests: holds back the appends of a node until the test lets them go on.
//!
//! A lane hands a batch to another thread, which appends it at any time. With a gate the test says
//! when, and knows on return that it has happened: the order of all appends is the test's own.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};

use crate::cluster::NodeId;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Gate {
    /// The next append waits.
    Closed,
    /// The next append, or the one that waits, goes on.
    Open,
}

/// The gates of all nodes. A node without one appends at once.
#[derive(Clone, Default)]
pub struct AppendGates(Arc<(Mutex<HashMap<NodeId, Gate>>, Condvar)>);

impl AppendGates {
    /// Holds back the next append of a node, which must be on another thread.
    pub fn close(&self, node: NodeId) {
        self.0.0.lock().insert(node, Gate::Closed);
    }

    /// Lets the append go on, and returns when it has ended.
    pub fn open(&self, node: NodeId) {
        let (gates, changed) = &*self.0;
        let mut gates = gates.lock();
        gates.insert(node, Gate::Open);
        changed.notify_all();
        changed.wait_while(&mut gates, |gates| gates.contains_key(&node));
    }

    /// Runs an append of a node when it may go on.
    pub fn pass<R>(&self, node: NodeId, append: impl FnOnce() -> R) -> R {
        let (gates, changed) = &*self.0;
        changed.wait_while(&mut gates.lock(), |gates| gates.get(&node) == Some(&Gate::Closed));
        let appended = append();
        gates.lock().remove(&node);
        changed.notify_all();
        appended
    }
}
