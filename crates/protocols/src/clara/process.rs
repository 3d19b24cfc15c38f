//! The processes the market answers as, and the dialect each speaks.

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

/// The ids of the one market.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Processes {
    /// The one that speaks as the spec does.
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
        (Some(process) == self.deployed).then_some(Dialect::Deployed)
    }
}
