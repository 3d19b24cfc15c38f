//! Notices when the list of tools changes.

use std::sync::Arc;
use std::time::Duration;

use rialto_core::agent::Agent;

use super::{AgentsCatalogue, pin};
use crate::mcp::catalogue::{ChangeFuture, ToolChanges};

/// How often the agents are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Watches the tools of an endpoint: their names, own words, schemas and prices.
///
/// It looks at the rows of its agents, which are replaced when an agent changes what it registered, by
/// whatever way, and on every node. Only then are the tools compared.
pub struct ToolsWatch {
    catalogue: Arc<AgentsCatalogue>,
    rows: Vec<Option<Arc<Agent>>>,
    pin: String,
}

impl ToolsWatch {
    pub(super) async fn start(catalogue: Arc<AgentsCatalogue>) -> Self {
        let rows = rows(&catalogue);
        let pin = pin::pin_of(&catalogue.listed_tools().await);
        Self { catalogue, rows, pin }
    }

    /// Waits until the tools are others than at the last call. Can be dropped and called again.
    async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let rows = rows(&self.catalogue);
            if self.rows.iter().zip(&rows).all(|(old, new)| is_same(old.as_ref(), new.as_ref())) {
                continue;
            }
            let pin = pin::pin_of(&self.catalogue.listed_tools().await);
            self.rows = rows;
            if pin != self.pin {
                self.pin = pin;
                return;
            }
        }
    }
}

impl ToolChanges for ToolsWatch {
    fn changed(&mut self) -> ChangeFuture<'_> {
        Box::pin(Self::changed(self))
    }
}

fn rows(catalogue: &AgentsCatalogue) -> Vec<Option<Arc<Agent>>> {
    catalogue
        .engine()
        .with_world(|world| catalogue.agents.iter().map(|id| world.agent(*id).cloned()).collect())
}

fn is_same(old: Option<&Arc<Agent>>, new: Option<&Arc<Agent>>) -> bool {
    match (old, new) {
        (Some(old), Some(new)) => Arc::ptr_eq(old, new),
        (None, None) => true,
        _ => false,
    }
}
