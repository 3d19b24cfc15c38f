//! What the `Error` of a result says: the message arrived, and nothing came of it (section 5).

use rialto_core::money::Credits;

use super::price::text as whole;
use super::{AGENT_ID_MAX, METADATA_MAX, PROTOCOL};
use crate::kit::ans104::Id;
use crate::kit::name::BadName;

/// Why a message changed nothing. Its text is what the sender reads.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// `Protocol` is another or missing (R2).
    #[error("Unknown protocol {}, supported: {PROTOCOL}", or_nil(.0))]
    UnknownProtocol(Option<String>),
    /// The topic is none of this market's, or missing (R3, R22).
    #[error("Unknown Topic {}", or_nil(.0))]
    UnknownTopic(Option<String>),
    /// The way to match is none there is (R25).
    #[error("Unknown strategy {0}")]
    UnknownStrategy(String),
    /// A fee that is none (R4).
    #[error("Value Agent-Fee must be positive integer")]
    BadFee,
    /// A reward that is none (R24).
    #[error("Value Agent-Reward must be positive integer")]
    BadReward,
    /// An id that no agent may have (R5).
    #[error("Value Agent-Id must be 1 to {AGENT_ID_MAX} visible characters: it {0}")]
    BadAgentId(BadName),
    /// An id under which only agents of other protocols are listed (R5).
    #[error("Value Agent-Id must not start with {0}/")]
    ReservedAgentId(&'static str),
    /// An id that is another's address: its wallet goes by that.
    #[error("Value Agent-Id must not be an address other than the sender's")]
    AddressAsId,
    /// A task that many are told of, with more than all of them may be told together.
    #[error("Data is too large for {agents} agents: at most {bytes} bytes")]
    TooLargeForAll {
        /// How many would be told.
        agents: usize,
        /// What each of them could be told.
        bytes: usize,
    },
    /// More copies of one task than there may be.
    #[error(
        "Broadcast goes to at most {max} agents, and there are {agents}: name a topic or an agent"
    )]
    TooManyAgents {
        /// How many there are.
        agents: usize,
        /// How many there may be.
        max: usize,
    },
    /// More about an agent than is kept.
    #[error("Data must have at most {METADATA_MAX} bytes")]
    MetadataTooLarge,
    /// The data is no JSON (R6, R26, R44).
    #[error("Data must be valid JSON")]
    BadData,
    /// A tag is missing (R44, R53).
    #[error("Tag {0} is required")]
    TagRequired(&'static str),
    /// The agent is somebody else's (R10).
    #[error("{address} does not own {agent}")]
    NotOwner {
        /// Who sent the message.
        address: String,
        /// Whose agent it is not.
        agent: String,
    },
    /// The sender has no such agent (R27, R45).
    #[error("Agent {agent} not registered for sender {address}")]
    NotRegistered {
        /// The agent that was named.
        agent: String,
        /// Who sent the message.
        address: String,
    },
    /// Nobody can do the task (R36).
    #[error("No agents to choose from")]
    NoAgents,
    /// The requester cannot pay for it (R43).
    #[error("Requesting agent ({address}) funds ({}) are insufficient", whole(*.funds))]
    Insufficient {
        /// Who would have to pay.
        address: String,
        /// What is there.
        funds: Credits,
    },
    /// The task is unknown, or not this agent's (R45, R58).
    #[error("Agent was not assigned to task")]
    NotAssigned,
    /// The task is done (R49).
    #[error("Already sent result for task {0}")]
    AlreadySent(String),
    /// The auction ended with nobody in it (2.7).
    #[error("No offers for task {0}")]
    NoOffers(String),
    /// The offer came too late (2.7).
    #[error("Auction for task {0} is closed")]
    AuctionClosed(String),
    /// The offer is more than the requester would pay (2.7).
    #[error("Offer {} exceeds reward {}", whole(*.offer), whole(*.reward))]
    OfferTooHigh {
        /// What was offered.
        offer: Credits,
        /// What would be paid.
        reward: Credits,
    },
    /// Offers are binding, so there is one (2.7).
    #[error("Already offered for task {0}")]
    AlreadyOffered(String),
    /// A `Cursor` that no answer has given.
    #[error("Value Cursor must be the Next-Cursor of an earlier answer")]
    BadCursor,
    /// The order moves money, and its signed bytes do not say on which hub.
    #[error(
        "This process id is shared by many hubs, where the same signed order could be replayed: \
         send it to {own}"
    )]
    SharedProcess {
        /// The hub's own process.
        own: Id,
    },
    /// Only who signs may know this, and only about itself (R78).
    #[error("Sign this message to read it")]
    SignToRead,
    /// The answer was only for its signer, long, and a day ago.
    #[error("This answer expired after a day: sign a new message to read it again")]
    NotKept,
}

/// What a tag says, in the word of the real processes' language when there is no such tag.
fn or_nil(given: &Option<String>) -> &str {
    given.as_deref().unwrap_or("nil")
}
