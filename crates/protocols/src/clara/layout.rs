//! Which part of a job each tag and each record member carries.

use crate::adapter::fidelity::{Layout, Part};

/// The field parts of one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    tags: &'static [(&'static str, Part)],
    /// The part that the data carries as a whole, where it is not a record of the market.
    pub data: Option<Part>,
    pub record: Layout,
}

impl Tags {
    /// The part that a tag carries.
    pub fn tag(&self, name: &str) -> Part {
        let found = self.tags.iter().chain(USUAL).find(|(known, _)| *known == name);
        found.map_or(Part::Extra, |(_, part)| *part)
    }
}

/// The tags of every message.
const USUAL: &[(&str, Part)] = &[
    ("Action", Part::Form),
    ("Protocol", Part::Form),
    ("Data-Protocol", Part::Form),
    ("Variant", Part::Form),
    ("Type", Part::Form),
];

/// A task is registered.
pub const REGISTER_TASK: Tags = Tags {
    tags: &[
        ("/Id", Part::Id),
        ("/Owner", Part::Requester),
        ("RedStone-Agent-Topic", Part::Skill),
        ("RedStone-Agent-Reward", Part::Budget),
        ("RedStone-Agent-Matching", Part::Strategy),
        ("RedStone-Agent-Id", Part::Requester),
        ("Context-Id", Part::Correlation),
        ("Target-Agent-Id", Part::Worker),
        ("Capability", Part::Skill),
    ],
    data: Some(Part::Input),
    record: &[],
};

/// A task is assigned.
pub const ASSIGNMENT: Tags = Tags {
    tags: &[
        ("/Target", Part::Worker),
        ("TaskId", Part::Id),
        ("Task-Id", Part::Id),
        ("Agent-Id", Part::Worker),
        ("Assigned-Agent-Id", Part::Worker),
        ("Requesting-Agent-Id", Part::Requester),
        ("Context-Id", Part::Correlation),
        ("Number-Of-Agents", Part::Form),
    ],
    data: None,
    record: &[
        ("/Data/id", Part::Id),
        ("/Data/agentId", Part::Worker),
        ("/Data/requester", Part::Requester),
        ("/Data/requesterId", Part::Requester),
        ("/Data/reward", Part::Budget),
        ("/Data/matchingStrategy", Part::Strategy),
        ("/Data/strategy", Part::Strategy),
        ("/Data/payload", Part::Input),
        ("/Data/topic", Part::Skill),
        ("/Data/contextId", Part::Correlation),
        ("/Data/timestamp", Part::Time),
        ("/Data/block", Part::Form),
    ],
};

/// A result is sent, or the task declined.
pub const SEND_RESULT: Tags = Tags {
    tags: &[("RedStone-Agent-Id", Part::Worker), ("RedStone-Task-Id", Part::Id)],
    data: Some(Part::Output),
    record: &[],
};

/// The result of a task, or the notice that there is none.
pub const TASK_RESULT: Tags = Tags {
    tags: &[
        ("/Target", Part::Requester),
        ("TaskId", Part::Id),
        ("Task-Id", Part::Id),
        ("Assigned-Agent-Id", Part::Worker),
        ("Assigned-Agent-Address", Part::Worker),
        ("Fee", Part::Paid),
    ],
    data: None,
    record: &[
        ("/Data/id", Part::Id),
        ("/Data/agentId", Part::Worker),
        ("/Data/agentAddress", Part::Worker),
        ("/Data/sender", Part::Worker),
        ("/Data/recipient", Part::Requester),
        ("/Data/result", Part::Output),
        ("/Data/timestamp", Part::Time),
        ("/Data/block", Part::Form),
        ("/Data/originalTask", Part::Form),
    ],
};
