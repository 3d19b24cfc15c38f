//! The process ids that the market answers to, and the dialect of each.

use super::PROCESS;
use crate::kit::ans104::ItemId;

/// The format of the market's messages (D1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As in the spec.
    #[default]
    Spec,
    /// As the deployed processes do it.
    Deployed,
}

/// The process ids of the market. Every hub also answers to the published one ([`PROCESS`]), but
/// moves no money for orders to it: the same signed order would be valid on all hubs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// This hub's own process, in the spec's dialect.
    pub spec: ItemId,
    /// The process in the deployed dialect, if the operator configured one.
    pub deployed: Option<ItemId>,
}

impl Processes {
    /// The dialect of a process; `None` if it is not the market (R67).
    pub fn dialect(&self, process: ItemId) -> Option<Dialect> {
        if process == self.spec {
            return Some(Dialect::Spec);
        }
        if Some(process) == self.deployed {
            return Some(Dialect::Deployed);
        }
        (ItemId::read(PROCESS) == Some(process)).then_some(Dialect::Spec)
    }

    /// Whether orders to a process may move money: it is this hub's own, or the operator configured
    /// it.
    pub fn may_move_money(&self, process: ItemId) -> bool {
        process == self.spec || Some(process) == self.deployed
    }
}
