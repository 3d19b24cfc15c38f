//! The processes the market answers as, and the dialect each speaks.

use super::PROCESS;
use crate::kit::ans104::Id;

/// How the market words what it sends (D1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// As the spec does.
    #[default]
    Spec,
    /// As the processes do that are really deployed.
    Deployed,
}

/// The ids of the one market. Every hub also answers to the published one ([`PROCESS`]), but moves no
/// money for orders to it: the same signed order would be good on all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// This hub's own, which speaks as the spec does.
    pub spec: Id,
    /// The one that speaks as deployed processes do, if the operator wants one.
    pub deployed: Option<Id>,
}

impl Processes {
    /// How a process speaks; `None` if it is not the market (R67).
    pub fn dialect(&self, process: Id) -> Option<Dialect> {
        if process == self.spec {
            return Some(Dialect::Spec);
        }
        if Some(process) == self.deployed {
            return Some(Dialect::Deployed);
        }
        (Id::read(PROCESS) == Some(process)).then_some(Dialect::Spec)
    }

    /// Whether orders to a process may move money: it is this hub's own, or the operator's choice.
    pub fn may_pay(&self, process: Id) -> bool {
        process == self.spec || Some(process) == self.deployed
    }
}
