//! Topics of agents and tasks. The list is closed, except for what the operator adds (D13) and what
//! the deployed dialect knows.

use super::process::Dialect;
use super::{BROADCAST, TOPICS, TOPICS_DEPLOYED};

/// The prefix of a topic in the hub's skill name (docs/requirements.md, section 5).
pub const SKILL_PREFIX: &str = "clara.";

/// The topics of skills of other protocols (docs/requirements.md, section 5).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgedTopics {
    /// Skill names and the topics that an operator assigned to them.
    map: Vec<(String, String)>,
}

impl BridgedTopics {
    /// With the operator's map, in addition to the topics that names imply.
    pub fn with(map: impl IntoIterator<Item = (String, String)>) -> Self {
        Self { map: map.into_iter().collect() }
    }

    /// The topic of a skill of another protocol.
    pub fn topic_of<'n>(&'n self, capability: &'n str) -> Option<&'n str> {
        let mapped = self.map.iter().find(|(name, _)| name == capability);
        let mapped = mapped.map(|(_, topic)| topic.as_str());
        let own = || TOPICS.contains(&capability).then_some(capability);
        mapped.or_else(own).or_else(|| capability.strip_prefix(SKILL_PREFIX))
    }

    /// The skill names that a topic may have elsewhere, besides the hub's own.
    pub fn skill_names_of(&self, topic: &str) -> Vec<String> {
        let mapped = self.map.iter().filter(|(_, of)| of == topic).map(|(name, _)| name.clone());
        let own = TOPICS.contains(&topic).then(|| topic.to_owned());
        let elsewhere = |name: &String| self.topic_of(name) == Some(topic);
        own.into_iter().filter(elsewhere).chain(mapped).collect()
    }
}

/// The topics of a market.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Topics {
    extra: Vec<String>,
}

impl Topics {
    /// The spec's four topics and these.
    pub fn with(extra: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { extra: extra.into_iter().map(Into::into).collect() }
    }

    /// Whether an agent may have the topic. `broadcast` is never allowed, whatever the operator
    /// adds.
    pub fn allows_agent(&self, topic: &str, dialect: Dialect) -> bool {
        let deployed = dialect == Dialect::Deployed && TOPICS_DEPLOYED.contains(&topic);
        let known = TOPICS.contains(&topic) || self.extra.iter().any(|extra| extra == topic);
        topic != BROADCAST && (known || deployed)
    }

    /// Whether a task may have the topic.
    pub fn allows_task(&self, topic: &str, dialect: Dialect) -> bool {
        topic == BROADCAST || self.allows_agent(topic, dialect)
    }
}
