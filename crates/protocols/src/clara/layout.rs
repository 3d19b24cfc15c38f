//! Which tag, and which member of a record, is about what.

use crate::face::fidelity::{Layout, Part};

/// The fields of one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct Tags {
    tags: &'static [(&'static str, Part)],
    /// What the data is about as a whole, where it is no record of the market's.
    pub data: Option<Part>,
    pub record: Layout,
}

impl Tags {
    /// What a tag is about.
    pub fn tag(&self, name: &str) -> Part {
        let found = self.tags.iter().chain(USUAL).find(|(known, _)| *known == name);
        found.map_or(Part::Extra, |(_, part)| *part)
    }
}

/// Tags of every message.
const USUAL: &[(&str, Part)] = &[
    ("Action", Part::Form),
    ("Protocol", Part::Form),
    ("Data-Protocol", Part::Form),
    ("Variant", Part::Form),
    ("Type", Part::Form),
];

/// Work is wanted.
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

/// Somebody gets it.
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

/// Work is done, or will not be.
pub const SEND_RESULT: Tags = Tags {
    tags: &[("RedStone-Agent-Id", Part::Worker), ("RedStone-Task-Id", Part::Id)],
    data: Some(Part::Output),
    record: &[],
};

/// What came of it, or that nothing did.
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
