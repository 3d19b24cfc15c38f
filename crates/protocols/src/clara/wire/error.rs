//! The `Error` of a result: the message arrived but had no effect (section 5).

use rialto_core::money::Credits;

use super::price::format_price as whole;
use super::{AGENT_ID_MAX, METADATA_MAX, PROTOCOL};
use crate::kit::ans104::ItemId;
use crate::kit::name::BadName;

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
    #[error("Requesting agent ({address}) funds ({}) are insufficient", whole(*.funds))]
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
    #[error("Offer {} exceeds reward {}", whole(*.offer), whole(*.reward))]
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
