//! The two kinds of errors: a [`Failure`] for a request that a unit does not accept, and an
//! [`OrderError`] for a message that arrived but had no effect (section 5).
//!
//! Clients read the status from the message unit only. Both units send a JSON body, because clients
//! read nothing else.

use std::borrow::Cow;

use rialto_core::money::Credits;

use super::register::format_price;
use crate::clara::{AGENT_ID_MAX, METADATA_MAX, PROTOCOL};
use crate::kit::ans104::{BadItem, ItemId, ItemSignatureError};
use crate::kit::fields::Malformed;
use crate::kit::ijson::JsonError;
use crate::kit::name::BadName;
use crate::kit::object::ObjectWriter;

/// A request that was not accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The HTTP status.
    pub status: u16,
    /// The reason as text for people.
    pub text: Cow<'static, str>,
    /// How long to wait before a retry.
    pub retry_after_seconds: Option<u32>,
}

impl Failure {
    /// A failure with a status and a text only.
    pub fn new(status: u16, text: impl Into<Cow<'static, str>>) -> Self {
        Self { status, text: text.into(), retry_after_seconds: None }
    }

    /// 400.
    pub fn bad_request(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(400, text)
    }

    /// 400: the hub has one process, and no other can be spawned.
    pub fn spawn_unsupported() -> Self {
        Self::bad_request("spawn is not supported")
    }

    /// 400: data that is not text cannot be passed to a handler.
    pub fn not_text() -> Self {
        Self::bad_request("the data of a message must be UTF-8 text")
    }

    /// 404: the message is for another process (R67).
    pub fn unknown_process() -> Self {
        Self::new(404, "unknown process")
    }

    /// 404: no message with this id has arrived.
    pub fn unknown_message() -> Self {
        Self::new(404, "unknown message")
    }

    /// 404: there is no operation at this path.
    pub fn not_found() -> Self {
        Self::new(404, "not found; the message unit is at /clara/mu, the compute unit at /clara/cu")
    }

    /// 405: the path does not allow this method.
    pub fn method_not_allowed() -> Self {
        Self::new(405, "method not allowed for this path")
    }

    /// 413.
    pub fn too_large() -> Self {
        Self::new(413, "a body has at most 1048576 bytes")
    }

    /// 415.
    pub fn encoded_body() -> Self {
        Self::new(415, "encoded bodies are not supported; remove Content-Encoding")
    }

    /// 429 with the number of seconds to wait.
    pub fn rate_limited(text: impl Into<Cow<'static, str>>, retry_after_seconds: u32) -> Self {
        Self { retry_after_seconds: Some(retry_after_seconds), ..Self::new(429, text) }
    }

    /// 500: an internal error. The log has the details under this id.
    pub fn internal(error_id: &str) -> Self {
        Self::new(500, format!("internal error: {error_id}"))
    }

    /// 503: the store cannot write.
    pub fn unavailable(text: impl Into<Cow<'static, str>>) -> Self {
        Self::new(503, text)
    }

    /// 507: the disk is full.
    pub fn disk_full() -> Self {
        Self::new(507, "the hub's disk is full")
    }

    /// Whether the same request can be accepted later.
    pub const fn is_retryable(&self) -> bool {
        matches!(self.status, 429 | 503 | 507)
    }

    /// The JSON body.
    pub fn body(&self) -> String {
        ObjectWriter::new().text("error", &self.text).finish()
    }
}

impl From<BadItem> for Failure {
    fn from(bad: BadItem) -> Self {
        match bad {
            BadItem::TooLong => Self::too_large(),
            _ => Self::bad_request(bad.to_string()),
        }
    }
}

impl From<ItemSignatureError> for Failure {
    fn from(bad: ItemSignatureError) -> Self {
        Self::new(401, bad.to_string())
    }
}

impl From<Malformed> for Failure {
    fn from(bad: Malformed) -> Self {
        Self::bad_request(bad.message)
    }
}

impl From<JsonError> for Failure {
    fn from(bad: JsonError) -> Self {
        Malformed::from(bad).into()
    }
}

/// Why a message had no effect. The sender reads the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OrderError {
    /// `Protocol` is missing or has another value (R2).
    #[error("Unknown protocol {}, supported: {PROTOCOL}", or_nil(.0))]
    UnknownProtocol(Option<String>),
    /// The topic is missing or not one of this market's (R3, R22).
    #[error("Unknown Topic {}", or_nil(.0))]
    UnknownTopic(Option<String>),
    /// The matching strategy is unknown (R25).
    #[error("Unknown strategy {0}")]
    UnknownStrategy(String),
    /// The fee is not valid (R4).
    #[error("Value Agent-Fee must be positive integer")]
    BadFee,
    /// The reward is not valid (R24).
    #[error("Value Agent-Reward must be positive integer")]
    BadReward,
    /// The id is not allowed for an agent (R5).
    #[error("Value Agent-Id must be 1 to {AGENT_ID_MAX} visible characters: it {0}")]
    BadAgentId(BadName),
    /// The id has a prefix reserved for agents of other protocols (R5).
    #[error("Value Agent-Id must not start with {0}/")]
    ReservedAgentId(&'static str),
    /// The id is the address of another sender, which names that sender's wallet.
    #[error("Value Agent-Id must not be an address other than the sender's")]
    AddressAsId,
    /// The task has many recipients and is too large for all of them together.
    #[error("Data is too large for {agents} agents: at most {bytes} bytes")]
    TooLargeForAll {
        /// The number of recipients.
        agents: usize,
        /// The most bytes for each recipient.
        bytes: usize,
    },
    /// The task would have too many copies.
    #[error(
        "Broadcast goes to at most {max} agents, and there are {agents}: name a topic or an agent"
    )]
    TooManyAgents {
        /// The number of agents.
        agents: usize,
        /// The most copies.
        max: usize,
    },
    /// The metadata of an agent is too large.
    #[error("Data must have at most {METADATA_MAX} bytes")]
    MetadataTooLarge,
    /// The data is not valid JSON (R6, R26, R44).
    #[error("Data must be valid JSON")]
    BadData,
    /// A tag is missing (R44, R53).
    #[error("Tag {0} is required")]
    TagRequired(&'static str),
    /// The agent belongs to another owner (R10).
    #[error("{address} does not own {agent}")]
    NotOwner {
        /// The sender's address.
        address: String,
        /// The agent that the sender does not own.
        agent: String,
    },
    /// The sender has no such agent (R27, R45).
    #[error("Agent {agent} not registered for sender {address}")]
    NotRegistered {
        /// The agent that was named.
        agent: String,
        /// The sender's address.
        address: String,
    },
    /// No agent can do the task (R36).
    #[error("No agents to choose from")]
    NoAgents,
    /// The requester has too few credits for the task (R43).
    #[error("Requesting agent ({address}) funds ({}) are insufficient", format_price(*.funds))]
    InsufficientFunds {
        /// The address that would have to pay.
        address: String,
        /// The available credits.
        funds: Credits,
    },
    /// The task is unknown, or not assigned to this agent (R45, R58).
    #[error("Agent was not assigned to task")]
    NotAssigned,
    /// The task already has a result (R49).
    #[error("Already sent result for task {0}")]
    AlreadySent(String),
    /// The auction ended without an offer (2.7).
    #[error("No offers for task {0}")]
    NoOffers(String),
    /// The offer arrived after the auction closed (2.7).
    #[error("Auction for task {0} is closed")]
    AuctionClosed(String),
    /// The offer is above the reward (2.7).
    #[error("Offer {} exceeds reward {}", format_price(*.offer), format_price(*.reward))]
    OfferTooHigh {
        /// The offered fee.
        offer: Credits,
        /// The reward.
        reward: Credits,
    },
    /// Offers are binding, so each agent may make only one (2.7).
    #[error("Already offered for task {0}")]
    AlreadyOffered(String),
    /// The `Cursor` does not come from an earlier answer.
    #[error("Value Cursor must be the Next-Cursor of an earlier answer")]
    BadCursor,
    /// The order moves money, but the signed bytes do not name this hub's process.
    #[error(
        "This process id is shared by many hubs, where the same signed order could be replayed: \
         send it to {own}"
    )]
    SharedProcess {
        /// This hub's own process.
        own: ItemId,
    },
    /// Only the signer may read this, and only about itself (R78).
    #[error("Sign this message to read it")]
    SignToRead,
    /// The answer was private to its signer, too long to store, and is more than a day old.
    #[error("This answer expired after a day: sign a new message to read it again")]
    AnswerExpired,
}

/// The value of a tag, or `nil` (the word of the real processes' language) when it is missing.
fn or_nil(given: &Option<String>) -> &str {
    given.as_deref().unwrap_or("nil")
}
