//! The form of requests and answers for the API document. The hub reads and writes them by hand.

use serde_json::Value;

/// A signed data item.
pub enum DataItem {}
crate::value_schema!(DataItem, {
    "type": "string",
    "format": "binary",
    "description": "An ANS-104 data item: a signed message to the process"
});

/// A process in a path.
pub enum ProcessParam {}
crate::value_schema!(ProcessParam, {"type": "string", "description": "The id of a process"});

/// A message in a path.
pub enum MessageParam {}
crate::value_schema!(MessageParam, {"type": "string", "description": "The id of a message"});

crate::request_members! {
    /// The assignment of a known message, instead of a body.
    AssignQuery {
        /// The id of the message.
        assign: Option<String>,
        /// The process it is assigned to.
        #[schemars(rename = "process-id")]
        process_id: Option<String>,
    }
}

crate::request_members! {
    /// The process that a message belongs to.
    ProcessQuery {
        #[schemars(rename = "process-id")]
        process_id: String,
    }
}

crate::words! {
    /// Oldest or newest first.
    SortName: "ASC" | "DESC"
}

crate::request_members! {
    /// Which results to list.
    ResultsQuery {
        /// Only later ones: a cursor, or milliseconds since 1970.
        from: Option<String>,
        /// No later ones: a cursor, or milliseconds since 1970.
        to: Option<String>,
        sort: Option<SortName>,
        #[schemars(range(min = 1, max = 1_000))]
        limit: Option<u16>,
    }
}

crate::request_members! {
    /// A message that is evaluated and not stored.
    DryRunMembers {
        /// The process; the query names it already.
        #[schemars(rename = "Target")]
        target: Option<Value>,
        #[schemars(rename = "Tags")]
        tags: Option<Vec<TagMembers>>,
        #[schemars(rename = "Data")]
        data: Option<Value>,
        /// The sender that the message claims.
        #[schemars(rename = "Owner")]
        owner: Option<Value>,
    }
}

crate::request_members! {
    /// A tag.
    TagMembers {
        name: String,
        value: String,
    }
}

crate::answer_members! {
    /// The market's process and the paths of its units.
    Overview {
        process: String,
        mu: String,
        cu: String,
    } optional {}
}

crate::answer_members! {
    /// A message was evaluated and stored.
    Accepted {
        message: String,
        id: String,
    } optional {}
}

crate::answer_members! {
    /// Nothing was to be done.
    Monitored {
        message: String,
    } optional {}
}

crate::answer_members! {
    /// An error.
    ErrorBody {
        error: String,
    } optional {}
}

crate::answer_members! {
    /// The result of a message.
    MessageResult {
        #[schemars(rename = "Messages")]
        messages: Vec<MarketMessage>,
        #[schemars(rename = "Assignments")]
        assignments: Vec<Value>,
        #[schemars(rename = "Spawns")]
        spawns: Vec<Value>,
        #[schemars(rename = "GasUsed")]
        gas_used: u64,
    } optional {
        #[schemars(rename = "Output")]
        output: Value,
        /// Why the message had no effect.
        #[schemars(rename = "Error")]
        error: String,
    }
}

crate::answer_members! {
    /// A message that the market sent.
    MarketMessage {
        /// The receiver's address.
        #[schemars(rename = "Target")]
        target: String,
        #[schemars(rename = "Anchor")]
        anchor: String,
        #[schemars(rename = "Tags")]
        tags: Vec<TagMembers>,
    } optional {
        #[schemars(rename = "Data")]
        data: String,
    }
}

crate::answer_members! {
    /// A page of results.
    ResultPage {
        #[schemars(rename = "pageInfo")]
        page_info: PageInfo,
        edges: Vec<ResultEdge>,
    } optional {}
}

crate::answer_members! {
    /// About a page.
    PageInfo {
        #[schemars(rename = "hasNextPage")]
        has_next_page: bool,
    } optional {}
}

crate::answer_members! {
    /// A result on a page.
    ResultEdge {
        node: MessageResult,
        cursor: String,
    } optional {}
}
