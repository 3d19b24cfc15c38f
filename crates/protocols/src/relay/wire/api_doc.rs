//! The form of requests and answers for the API document. The hub reads and writes them by hand.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use uuid::Uuid;

use super::error::Code;
use crate::kit::api_doc::{AnyObject, AnyOf, Nullable, Time};

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::ALL.map(Self::as_str)})
    }
}

/// `true` alone.
pub enum True {}
crate::value_schema!(True, {"type": "boolean", "const": true});
/// `false` alone.
pub enum False {}
crate::value_schema!(False, {"type": "boolean", "const": false});

/// An agent in a path.
pub enum AddressParam {}
crate::value_schema!(AddressParam, {
    "type": "string",
    "description": "An address, such as `alice@chorus`; a name alone is completed with the hub's own host"
});

/// A message in a path.
pub enum TraceId {}
crate::value_schema!(TraceId, {"type": "string", "description": "The `trace_id` of a message"});

crate::words! {
    /// How a receiver wants its envelopes wrapped.
    FormatName: "a2a-1.0" | "a2a-0.3"
}

crate::request_members! {
    /// The body of `POST /register` and `POST /agents`.
    RegisterMembers {
        /// `name@host`; a name alone is completed with the hub's own host.
        #[schemars(length(min = 1, max = 128))]
        agent_id: String,
        agent_card: Option<CardMembers>,
        /// Where envelopes are delivered; without it, the agent opens its inbox.
        endpoint: Option<String>,
        envelope_format: Option<FormatName>,
        /// Whether a known agent gets a new key.
        rotate_key: Option<bool>,
    }
}

crate::request_members! {
    /// What an agent says about itself. All members are stored and shown.
    CardMembers {
        /// `0.3`.
        card_version: String,
        /// A BCP 47 tag.
        user_culture: String,
        /// BCP 47 tags.
        #[schemars(length(min = 1, max = 1_000))]
        supported_languages: Vec<String>,
    }
}

crate::request_members! {
    /// The body of `POST /messages`.
    SendMembers {
        receiver_id: String,
        /// An envelope, or an A2A message with one.
        envelope: AnyOf<EnvelopeMembers, A2aMessage>,
        /// Whether the receiver's reply is wanted as a stream of events.
        stream: Option<bool>,
    }
}

crate::request_members! {
    /// The body of `POST /receive/{id}`.
    ReceiveMembers {
        /// An envelope, or an A2A message with one.
        envelope: AnyOf<EnvelopeMembers, A2aMessage>,
    }
}

/// An A2A message whose data part is an envelope, or the request that sends one.
pub enum A2aMessage {}
crate::value_schema!(A2aMessage, {"type": "object", "title": "A2aMessage"});

crate::request_members! {
    /// A message from one agent to another. All members are passed on.
    EnvelopeMembers {
        /// `0.4`.
        chorus_version: String,
        sender_id: String,
        #[schemars(length(min = 1))]
        original_text: String,
        /// A BCP 47 tag.
        sender_culture: String,
        #[schemars(length(min = 10, max = 500))]
        cultural_context: Option<String>,
        #[schemars(length(max = 64))]
        conversation_id: Option<String>,
        #[schemars(range(min = 1))]
        turn_number: Option<u64>,
        /// The skill that is wanted of an agent of another protocol.
        skill: Option<String>,
        /// The input of that work, instead of the text.
        input: Option<AnyObject>,
        /// The most that the work may cost.
        budget: Option<f64>,
    }
}

crate::request_members! {
    /// The body of `POST /agent/inbox/ack`.
    AckMembers {
        /// The last position that arrived.
        up_to: u64,
    }
}

crate::request_members! {
    /// Where the inbox stream starts.
    InboxQuery {
        /// The last position that arrived; `Last-Event-ID` takes precedence.
        after: Option<u64>,
        /// `explicit`: starts with what is not acknowledged.
        ack: Option<AckMode>,
    }
}

crate::words! {
    /// How a reader acknowledges.
    AckMode: "explicit"
}

crate::request_members! {
    /// Which messages to list.
    HistoryQuery {
        since: Option<Time>,
        /// A position in the caller's inbox.
        after: Option<u64>,
        /// `next_cursor` of the previous page.
        cursor: Option<u64>,
        #[schemars(range(min = 1, max = 500))]
        limit: Option<u16>,
    }
}

crate::words! {
    /// `true` or `false`.
    FlagText: "true" | "false" | "1" | "0"
}

crate::request_members! {
    /// Which agents to list.
    AgentsQuery {
        /// A BCP 47 tag.
        culture: Option<String>,
        /// A BCP 47 tag.
        language: Option<String>,
        online: Option<FlagText>,
        /// Their home protocol.
        protocol: Option<String>,
        /// A text in the address or the name.
        q: Option<String>,
        #[schemars(range(min = 1, max = 1_000))]
        limit: Option<u16>,
        /// `next_cursor` of the previous page.
        cursor: Option<u64>,
    }
}

/// A successful answer.
#[derive(JsonSchema)]
#[schemars(rename = "{T}Response")]
#[allow(dead_code, reason = "only the schema is used")]
pub struct Success<T> {
    success: True,
    data: T,
    metadata: Metadata,
}

crate::answer_members! {
    /// About an answer.
    Metadata {
        timestamp: Time,
    } optional {
        /// Leads to the next page of a list.
        next_cursor: String,
    }
}

crate::answer_members! {
    /// An error.
    ErrorBody {
        success: False,
        error: ErrorObject,
        metadata: Metadata,
    } optional {
        /// What became of a message.
        data: AnyObject,
    }
}

crate::answer_members! {
    /// What went wrong.
    ErrorObject {
        code: Code,
        message: String,
        retryable: bool,
    } optional {
        retry_after_seconds: u32,
        /// A JSON pointer to the wrong field.
        field: String,
        hint: String,
        /// A valid value.
        example: serde_json::Value,
    }
}

crate::answer_members! {
    /// An agent as it is listed.
    AgentRecord {
        agent_id: String,
        agent_card: Nullable<AnyObject>,
        registered_at: Time,
        online: bool,
        /// Its home protocol.
        protocol: String,
    } optional {
        /// Its id in its home protocol.
        native_id: String,
        envelope_format: FormatName,
        /// Shown to itself and the operator.
        endpoint: String,
    }
}

crate::answer_members! {
    /// The answer to a registration.
    Registration {
        agent_id: String,
        registration: AgentRecord,
    } optional {
        api_key: String,
        /// The secret that signs deliveries to the endpoint.
        webhook_secret: String,
    }
}

crate::answer_members! {
    /// Whether an agent was unregistered.
    Deletion {
        deleted: bool,
        agent_id: String,
    } optional {}
}

crate::answer_members! {
    /// A new key.
    MintedKey {
        agent_id: String,
    } optional {
        /// Shown once.
        api_key: String,
    }
}

crate::answer_members! {
    /// Up to where an inbox is acknowledged.
    AckState {
        acked_to: u64,
        pending: u64,
    } optional {}
}

crate::words! {
    /// How far a message got.
    DeliveryName: "delivered_sse" | "delivered" | "queued" | "failed" | "rejected"
}

crate::answer_members! {
    /// What became of a message.
    DeliveryData {
        delivery: DeliveryName,
        trace_id: Uuid,
    } optional {
        /// What the receiver answered.
        receiver_response: AnyObject,
        error_code: Code,
        detail: String,
        /// It is held back, because two agents seem to be in a loop.
        loop_guard: True,
    }
}

crate::answer_members! {
    /// A message in the history.
    HistoryEntry {
        /// Its position in the caller's inbox; `null` for a message the caller sent.
        id: Nullable<u64>,
        trace_id: String,
        sender_id: String,
        receiver_id: String,
        delivered_via: Channel,
        timestamp: Time,
        envelope: AnyObject,
    } optional {
        /// The job the envelope is about.
        job: serde_json::Value,
        /// The protocol and the agent the hub writes for.
        bridge: serde_json::Value,
        /// Members of a request that have no field in an envelope.
        meta: serde_json::Value,
    }
}

crate::words! {
    /// How a message was delivered.
    Channel: "webhook" | "sse" | "queued"
}

crate::answer_members! {
    /// The state of a message.
    MessageState {
        trace_id: String,
        sender_id: String,
        receiver_id: String,
        state: String,
        timestamp: Time,
        attempts: u32,
    } optional {
        envelope: AnyObject,
        /// The job the envelope is about.
        job: serde_json::Value,
        /// The protocol and the agent the hub writes for.
        bridge: serde_json::Value,
        /// Members of a request that have no field in an envelope.
        meta: serde_json::Value,
    }
}

crate::answer_members! {
    /// The data of an inbox event: `connected`, or `message`.
    InboxEvent {} optional {
        agent_id: String,
        /// A text for people.
        message: String,
        resume_from: u64,
        backlog: u64,
        trace_id: Uuid,
        sender_id: String,
        envelope: AnyObject,
        timestamp: Time,
        /// The operator sent it in the sender's name.
        sent_by: String,
        /// Its sender is not proven.
        verified: False,
        loop_guard: True,
        job: serde_json::Value,
        bridge: serde_json::Value,
        meta: serde_json::Value,
    }
}

crate::answer_members! {
    /// The data of an event of a streamed reply: `chunk`, `done`, `error` or `delivery`.
    ReplyEvent {} optional {
        text: String,
        full_text: String,
        envelope: Nullable<AnyObject>,
        code: String,
        message: String,
        delivery: DeliveryName,
        trace_id: Uuid,
        receiver_response: AnyObject,
        error_code: Code,
        detail: String,
        loop_guard: True,
    }
}

crate::answer_members! {
    /// The answer of a receive endpoint.
    ReceiverReply {
        status: ReplyName,
    } optional {
        error_code: Code,
        detail: String,
    }
}

crate::words! {
    /// Whether the receiver could use the envelope.
    ReplyName: "ok" | "error"
}

crate::answer_members! {
    /// The health of the hub.
    Health {
        status: HealthName,
        version: String,
        uptime_seconds: u64,
        agents_registered: u64,
        messages_delivered: u64,
        messages_failed: u64,
        messages_queued: u64,
        inbox_connections: u64,
    } optional {}
}

crate::words! {
    /// Whether the hub accepts writes.
    HealthName: "ok" | "unavailable"
}
