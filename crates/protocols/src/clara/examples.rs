//! The messages of the spec's examples, as a client passes them to be signed or evaluated.

/// Tags and data of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Tag names and values, in order.
    pub tags: &'static [(&'static str, &'static str)],
    /// The data; `None` where the client inserts its own.
    pub data: Option<&'static str>,
}

/// Registers an agent.
pub const REGISTER_AGENT: Example = Example {
    tags: &[
        ("Action", "Register-Agent-Profile"),
        ("RedStone-Agent-Topic", "tweet"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Fee", "20"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
    ],
    data: Some(r#"{"image":"duh","description":"the best","url":"https://ppe.agent"}"#),
};

/// Lists the agents.
pub const LIST_AGENTS: Example = Example { tags: &[("Action", "List-Agents")], data: None };

/// Registers a task.
pub const REGISTER_TASK: Example = Example {
    tags: &[
        ("Action", "Register-Task"),
        ("RedStone-Agent-Topic", "tweet"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
    ],
    data: Some(r#"{"prompt":"Foo bar"}"#),
};

/// Sends a result.
pub const SEND_RESULT: Example = Example {
    tags: &[
        ("Action", "Send-Result"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: Some(r#"{"result":"whatever"}"#),
};

/// Declines a task.
pub const DECLINE_TASK: Example = Example {
    tags: &[
        ("Action", "Decline-Task"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: None,
};

/// All examples, in the spec's order.
pub const ALL: [Example; 5] =
    [REGISTER_AGENT, LIST_AGENTS, REGISTER_TASK, SEND_RESULT, DECLINE_TASK];
