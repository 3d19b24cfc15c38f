//! Topics: what agents can do and tasks are about. The list is closed but for what the operator adds
//! (D13) and what the deployed dialect knows.

use super::process::Dialect;
use super::{BROADCAST, TOPICS, TOPICS_DEPLOYED};

/// The topics of a market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    extra: Vec<String>,
}

impl Topics {
    /// The spec's four and these.
    pub fn with(extra: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { extra: extra.into_iter().map(Into::into).collect() }
    }

    /// Whether an agent may have it. No agent's topic is `broadcast`, whatever the operator adds.
    pub fn for_agent(&self, topic: &str, dialect: Dialect) -> bool {
        let deployed = dialect == Dialect::Deployed && TOPICS_DEPLOYED.contains(&topic);
        let known = TOPICS.contains(&topic) || self.extra.iter().any(|extra| extra == topic);
        topic != BROADCAST && (known || deployed)
    }

    /// Whether a task may have it.
    pub fn for_task(&self, topic: &str, dialect: Dialect) -> bool {
        topic == BROADCAST || self.for_agent(topic, dialect)
    }
}
