//! The form of envelopes and errors for the API document. The hub reads and writes them by hand.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use super::envelope::MessageType;
use super::error::Code;
use crate::kit::api_doc::{AnyObject, AnyOf, Nullable, Time};

impl JsonSchema for Code {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ErrorCode".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "integer", "enum": Self::ALL.map(Self::number)})
    }
}

impl JsonSchema for MessageType {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "MessageType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "enum": Self::ALL.map(Self::as_str)})
    }
}

crate::words! {
    /// The version of envelopes.
    VersionName: "agora/1.0"
}

/// A key in a path or query.
pub enum KeyParam {}
crate::value_schema!(KeyParam, {"type": "string", "description": "A public key: did:key, or base64url"});

/// A request in a path.
pub enum RequestId {}
crate::value_schema!(RequestId, {"type": "string", "description": "The id of a REQUEST"});

crate::request_members! {
    /// How long to wait for an answer.
    WaitQuery {
        /// Milliseconds.
        #[schemars(range(max = 30_000))]
        wait: Option<u16>,
    }
}

crate::request_members! {
    /// Which agents to list.
    AgentsQuery {
        /// A resource that they support; the best come first.
        resource: Option<String>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
        /// `next_cursor` of the previous page.
        cursor: Option<u64>,
    }
}

crate::request_members! {
    /// Which envelopes to list.
    MessagesQuery {
        /// The last position read; by default the last that was acknowledged.
        after: Option<u64>,
        #[schemars(range(min = 1, max = 200))]
        limit: Option<u16>,
    }
}

crate::request_members! {
    /// Which of several requests with one id to show.
    RequestQuery {
        requester: Option<KeyParam>,
    }
}

crate::request_members! {
    /// A signed message of an agent. Unknown members are part of what is signed.
    EnvelopeMembers {
        protocol: VersionName,
        #[schemars(length(min = 1))]
        id: String,
        timestamp: Time,
        r#type: MessageType,
        sender: SenderMembers,
        /// By the type of the message.
        payload: AnyObject,
        recipient: Option<AnyOf<KeyParam, ToMembers>>,
        /// Reserved for hubs.
        bridge: Option<serde_json::Value>,
    }
}

crate::request_members! {
    /// The receiver.
    ToMembers {
        id: Option<String>,
        /// The only hub that may act on it.
        hub: Option<String>,
    }
}

crate::answer_members! {
    /// A signed message. Unknown members are part of what is signed.
    SignedEnvelope {
        protocol: VersionName,
        id: String,
        timestamp: Time,
        r#type: MessageType,
        sender: SenderMembers,
        /// By the type of the message.
        payload: AnyObject,
    } optional {
        recipient: Nullable<AnyOf<KeyParam, RecipientMembers>>,
        /// The agent of another protocol that the hub signs for.
        bridge: serde_json::Value,
    }
}

crate::answer_members! {
    /// The sender, with the Ed25519 signature of the canonical envelope.
    SenderMembers {
        /// A public key: did:key, or base64url.
        id: String,
        /// Base64url.
        signature: String,
    } optional {}
}

crate::answer_members! {
    /// The receiver.
    RecipientMembers {} optional {
        id: String,
        /// The only hub that may act on it.
        hub: String,
    }
}

crate::answer_members! {
    /// An error: an envelope of type ERROR, signed by the hub.
    ErrorEnvelope {
        protocol: VersionName,
        id: String,
        timestamp: Time,
        r#type: MessageType,
        sender: SenderMembers,
        payload: ErrorMembers,
    } optional {
        recipient: RecipientMembers,
    }
}

crate::answer_members! {
    /// What went wrong.
    ErrorMembers {
        code: Code,
        message: String,
        retryable: bool,
    } optional {
        request_id: String,
        message_id: String,
        retry_after_seconds: u32,
        hint: String,
        /// A JSON pointer to the wrong member.
        field: String,
        /// A valid value.
        example: serde_json::Value,
    }
}

crate::answer_members! {
    /// The data of an inbox event: `connected`, or `envelope`.
    StreamEvent {} optional {
        /// The reader, as did:key.
        id: String,
        resume_from: u64,
        backlog: u64,
        envelope: SignedEnvelope,
        receipt: SignedEnvelope,
    }
}
