//! The form of requests and answers for the API document. The hub reads and writes them by hand.

use crate::kit::api_doc::{AnyObject, Time};

/// An agent in a path.
pub enum AgentName {}
crate::value_schema!(AgentName, {
    "type": "string",
    "description": "The name of an agent, such as `my-agent`"
});

/// The token of one assignment of one job.
pub enum CallbackName {}
crate::value_schema!(CallbackName, {
    "type": "string",
    "description": "The token of one assignment of one job"
});

/// A variable part of a path.
pub enum PathName {}
crate::value_schema!(PathName, {
    "type": "string",
    "description": "The name of an agent, or the id of a task or push configuration"
});

/// A JSON-RPC id.
pub enum RpcId {}
crate::value_schema!(RpcId, {"type": ["string", "integer", "null"]});

/// A configuration of any kind.
pub enum EmptyBody {}
crate::value_schema!(EmptyBody, {"type": "object"});

crate::request_members! {
    /// A JSON-RPC call.
    RpcMembers {
        /// `2.0`.
        jsonrpc: String,
        id: Option<RpcId>,
        /// A method of 1.0, such as `SendMessage`, or of 0.3, such as `message/send`.
        method: String,
        params: Option<AnyObject>,
    }
}

crate::answer_members! {
    /// A JSON-RPC response.
    RpcBody {
        jsonrpc: String,
        id: RpcId,
    } optional {
        result: serde_json::Value,
        error: RpcErrorMembers,
    }
}

crate::answer_members! {
    /// A JSON-RPC error.
    RpcErrorMembers {
        code: i32,
        message: String,
        data: serde_json::Value,
    } optional {}
}

/// The body of an error. Errors of JSON-RPC have its form.
#[derive(schemars::JsonSchema)]
#[allow(dead_code, reason = "only the schema is used")]
#[serde(untagged)]
pub enum ErrorBody {
    Http { error: HttpErrorMembers },
    Rpc { jsonrpc: String, id: RpcId, error: RpcErrorMembers },
}

crate::answer_members! {
    /// An error of HTTP+JSON.
    HttpErrorMembers {
        code: u16,
        status: String,
        message: String,
        details: Vec<AnyObject>,
    } optional {}
}

crate::request_members! {
    /// The body of a send.
    SendMembers {
        message: MessageMembers,
        configuration: Option<AnyObject>,
        metadata: Option<AnyObject>,
        tenant: Option<String>,
    }
}

/// A message to an agent.
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct MessageMembers {
    message_id: String,
    role: Role,
    parts: Vec<AnyObject>,
    context_id: Option<String>,
    task_id: Option<String>,
    extensions: Option<Vec<String>>,
    reference_task_ids: Option<Vec<String>>,
    metadata: Option<AnyObject>,
}

/// A message of either side.
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct MessageBody {
    message_id: String,
    role: Role,
    parts: Vec<AnyObject>,
    #[schemars(skip_serializing_if = "absent")]
    context_id: String,
    #[schemars(skip_serializing_if = "absent")]
    task_id: String,
    #[schemars(skip_serializing_if = "absent")]
    extensions: Vec<String>,
    #[schemars(skip_serializing_if = "absent")]
    reference_task_ids: Vec<String>,
    #[schemars(skip_serializing_if = "absent")]
    metadata: AnyObject,
}

crate::words! {
    /// Who wrote a message.
    Role: "ROLE_USER" | "ROLE_AGENT"
}

crate::answer_members! {
    /// The result of a send: one of the two.
    SendBody {} optional {
        task: TaskBody,
        message: MessageBody,
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct EventBody {
    #[schemars(skip_serializing_if = "absent")]
    task: TaskBody,
    #[schemars(skip_serializing_if = "absent")]
    message: MessageBody,
    #[schemars(skip_serializing_if = "absent")]
    status_update: AnyObject,
    #[schemars(skip_serializing_if = "absent")]
    artifact_update: AnyObject,
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct TaskBody {
    id: String,
    context_id: String,
    status: StatusMembers,
    #[schemars(skip_serializing_if = "absent")]
    artifacts: Vec<AnyObject>,
    #[schemars(skip_serializing_if = "absent")]
    history: Vec<MessageBody>,
    #[schemars(skip_serializing_if = "absent")]
    metadata: AnyObject,
}

crate::answer_members! {
    /// The status of a task.
    StatusMembers {
        /// Such as `TASK_STATE_WORKING`.
        state: String,
    } optional {
        message: MessageBody,
        timestamp: Time,
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct TasksQuery {
    context_id: Option<String>,
    /// Such as `TASK_STATE_WORKING`.
    status: Option<String>,
    #[schemars(range(min = 1, max = 100))]
    page_size: Option<u32>,
    page_token: Option<String>,
    history_length: Option<u32>,
    status_timestamp_after: Option<Time>,
    include_artifacts: Option<bool>,
    tenant: Option<String>,
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct TaskQuery {
    history_length: Option<u32>,
    tenant: Option<String>,
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct TasksBody {
    tasks: Vec<TaskBody>,
    next_page_token: String,
    page_size: u32,
    total_size: u32,
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct PushMembers {
    id: Option<String>,
    url: String,
    /// Sent as `X-A2A-Notification-Token`.
    token: Option<String>,
    authentication: Option<AuthenticationMembers>,
    task_id: Option<String>,
    tenant: Option<String>,
}

crate::request_members! {
    /// What the receiver wants in `Authorization`.
    AuthenticationMembers {
        /// Such as `Bearer`.
        scheme: String,
        credentials: Option<String>,
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct PushBody {
    id: String,
    task_id: String,
    url: String,
    #[schemars(skip_serializing_if = "absent")]
    authentication: AnyObject,
}

crate::answer_members! {
    /// The push configurations of a task.
    PushListBody {
        configs: Vec<PushBody>,
    } optional {}
}

/// A card: that of 1.0, and unless 1.0 was asked for also the members of 0.3.
#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct AgentCardBody {
    name: String,
    description: String,
    version: String,
    supported_interfaces: Vec<AnyObject>,
    capabilities: AnyObject,
    default_input_modes: Vec<String>,
    default_output_modes: Vec<String>,
    skills: Vec<AnyObject>,
}

crate::answer_members! {
    /// A JSON Web Key Set.
    JwksBody {
        keys: Vec<AnyObject>,
    } optional {}
}

crate::request_members! {
    /// The query of the catalog.
    CatalogQuery {
        /// A page that the catalog links to.
        page: Option<u64>,
    }
}

#[derive(schemars::JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct CatalogBody {
    spec_version: String,
    host: AnyObject,
    entries: Vec<AnyObject>,
}

crate::request_members! {
    /// A registration.
    RegistrationMembers {
        /// 1 to 64 characters of a-z, 0-9 and -. Required without `card_url`.
        name: Option<String>,
        /// The card of an agent with a server of its own.
        card_url: Option<String>,
        /// What it asks for each of its skills, as decimal text.
        prices: Option<AnyObject>,
        /// What its server wants of callers.
        auth: Option<AuthMembers>,
        /// Whether a known agent gets a new key.
        rotate_key: Option<bool>,
    }
}

crate::request_members! {
    /// Credentials for the server of an agent: `bearer` with `token`, `basic` with `username` and
    /// `password`, `header` with `name` and `value`, or `oauth2` with `token_url`, `client_id`,
    /// `client_secret` and perhaps `scope`.
    AuthMembers {
        scheme: String,
        token: Option<String>,
        username: Option<String>,
        password: Option<String>,
        name: Option<String>,
        value: Option<String>,
        token_url: Option<String>,
        client_id: Option<String>,
        client_secret: Option<String>,
        scope: Option<String>,
    }
}

crate::answer_members! {
    /// A registered agent.
    RegistrationBody {
        status: String,
        name: String,
        url: String,
        owner: String,
        skills: Vec<PricedSkill>,
    } optional {
        api_key: String,
        interface: InterfaceBody,
        signature: SignatureName,
        proven: bool,
        proof: ProofBody,
        /// Skills that no price names.
        note: String,
        /// What is to be done until the prices count.
        next: String,
    }
}

crate::answer_members! {
    /// An agent whose card was fetched again.
    RefreshBody {
        status: String,
        name: String,
        changed: bool,
        skills: Vec<PricedSkill>,
        interface: InterfaceBody,
        signature: SignatureName,
        proven: bool,
    } optional {
        proof: ProofBody,
        /// Skills that no price names.
        note: String,
        /// What is to be done until the prices count.
        next: String,
    }
}

crate::answer_members! {
    /// A skill, at the price that counts, and at the price that its owner asks.
    PricedSkill {
        id: String,
        price: String,
        asks: String,
    } optional {}
}

crate::answer_members! {
    /// Where the hub calls an agent.
    InterfaceBody {
        url: String,
        binding: String,
        version: String,
    } optional {}
}

crate::words! {
    /// Whether a card has a good signature, or none.
    SignatureName: "verified" | "unsigned"
}

crate::answer_members! {
    /// The extension that shows whose card it is.
    ProofBody {
        uri: String,
        params: AnyObject,
    } optional {}
}

crate::answer_members! {
    /// An agent that was unregistered.
    RemovedBody {
        status: String,
        name: String,
    } optional {}
}

crate::request_members! {
    /// Which agents are listed.
    AgentsQuery {
        skill: Option<String>,
        /// Words in the name, or in a skill's name or description.
        text: Option<String>,
        /// Their home protocol.
        protocol: Option<String>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        /// `next_cursor` of the previous page.
        cursor: Option<String>,
    }
}

crate::answer_members! {
    /// A page of agents.
    AgentsBody {
        agents: Vec<ListedAgent>,
    } optional {
        next_cursor: String,
    }
}

crate::answer_members! {
    /// An agent in a list.
    ListedAgent {
        name: String,
        description: String,
        /// The URL of its card.
        card: String,
        protocol: String,
        presence: Presence,
    } optional {
        skill: String,
        price: String,
    }
}

crate::words! {
    /// Whether an agent takes work now.
    Presence: "ready" | "away"
}
