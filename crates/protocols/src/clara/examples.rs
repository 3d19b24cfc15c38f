//! The messages of the spec's examples: what a client hands to be signed or asked.

/// Tags and data of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Example {
    /// Names and values, in order.
    pub tags: &'static [(&'static str, &'static str)],
    /// What it carries; `None` where the client puts something of its own.
    pub data: Option<&'static str>,
}

/// An agent registers.
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

/// Somebody looks who is there.
pub const LIST_AGENTS: Example = Example { tags: &[("Action", "List-Agents")], data: None };

/// Work is wanted.
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

/// Work is done.
pub const SEND_RESULT: Example = Example {
    tags: &[
        ("Action", "Send-Result"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: Some(r#"{"result":"whatever"}"#),
};

/// Work will not be done.
pub const DECLINE_TASK: Example = Example {
    tags: &[
        ("Action", "Decline-Task"),
        ("RedStone-Agent-Id", "AO_Agent_1"),
        ("RedStone-Task-Id", "iwJQJ7GBCuc4xTdVE1b0v2dH3kqeCZcIihvQgY-KFKA"),
        ("Protocol", "C.L.A.R.A."),
    ],
    data: None,
};

/// All of them, in the spec's order.
pub const ALL: [Example; 5] =
    [REGISTER_AGENT, LIST_AGENTS, REGISTER_TASK, SEND_RESULT, DECLINE_TASK];
