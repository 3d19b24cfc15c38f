//! Which part of a job each tag and each record member carries.

use crate::adapter::fidelity::{FieldParts, Part};

/// The field parts of one kind of message.
#[derive(Clone, Copy, Debug)]
pub struct TagParts {
    tags: &'static [(&'static str, Part)],
    /// The part that the data carries as a whole, where it is not a record of the market.
    pub data: Option<Part>,
    pub record: FieldParts,
}

impl TagParts {
    /// The part that a tag carries.
    pub fn part_of_tag(&self, name: &str) -> Part {
        let found = self.tags.iter().chain(USUAL).find(|(known, _)| *known == name);
        found.map_or(Part::Extra, |(_, part)| *part)
    }
}

/// The tags of every message.
const USUAL: &[(&str, Part)] = &[
    ("Action", Part::Framing),
    ("Protocol", Part::Framing),
    ("Data-Protocol", Part::Framing),
    ("Variant", Part::Framing),
    ("Type", Part::Framing),
];

/// A task is registered.
pub const REGISTER_TASK: TagParts = TagParts {
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
pub const ASSIGNMENT: TagParts = TagParts {
    tags: &[
        ("/Target", Part::Worker),
        ("TaskId", Part::Id),
        ("Task-Id", Part::Id),
        ("Agent-Id", Part::Worker),
        ("Assigned-Agent-Id", Part::Worker),
        ("Requesting-Agent-Id", Part::Requester),
        ("Context-Id", Part::Correlation),
        ("Number-Of-Agents", Part::Framing),
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
        ("/Data/block", Part::Framing),
    ],
};

/// A result is sent, or the task declined.
pub const SEND_RESULT: TagParts = TagParts {
    tags: &[("RedStone-Agent-Id", Part::Worker), ("RedStone-Task-Id", Part::Id)],
    data: Some(Part::Output),
    record: &[],
};

/// The result of a task, or the notice that there is none.
pub const TASK_RESULT: TagParts = TagParts {
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
        ("/Data/block", Part::Framing),
        ("/Data/originalTask", Part::Framing),
    ],
};
