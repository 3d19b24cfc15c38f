//! External names: protocols, aliases of agents, and foreign ids that were used.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::id::{AgentId, AliasId, ClaimId, JobId, NoticeId, PostingId, TransferId};
use crate::job::State;

/// Longest protocol id.
const PROTOCOL_LEN_MAX: usize = 15;

/// The id of a protocol. Core does not know which protocols exist.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Protocol {
    len: u8,
    text: [u8; PROTOCOL_LEN_MAX],
}

impl Protocol {
    /// A protocol id from its text: lower-case ASCII, at most 15 bytes, checked at compile time.
    pub const fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        assert!(!bytes.is_empty() && bytes.len() <= PROTOCOL_LEN_MAX, "protocol ids are short");
        let mut kept = [0; PROTOCOL_LEN_MAX];
        let mut at = 0;
        while at < bytes.len() {
            assert!(bytes[at].is_ascii_lowercase() || bytes[at].is_ascii_digit());
            kept[at] = bytes[at];
            at += 1;
        }
        Self { len: bytes.len() as u8, text: kept }
    }

    /// The id as text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.text[..usize::from(self.len)]).unwrap_or_default()
    }

    /// Parses a protocol id; `None` if the text is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let fits = !text.is_empty() && text.len() <= PROTOCOL_LEN_MAX;
        let plain = text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
        (fits && plain).then(|| Self::new(text))
    }
}

impl std::fmt::Display for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::fmt::Debug for Protocol {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Protocol {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Protocol {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<str>::deserialize(input)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not a protocol id"))
    }
}

/// One name of one agent in one protocol. Given once, kept forever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alias {
    pub id: AliasId,
    pub protocol: Protocol,
    /// Shared by the row and all indexes.
    pub name: Arc<str>,
    pub agent: AgentId,
}

/// Half a SHA-256: enough to tell contents apart, small enough to keep forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Digest(#[serde(with = "crate::hex")] pub [u8; 16]);

impl Digest {
    /// The digest of several parts. The boundaries count: `a|bc` and `ab|c` differ.
    pub fn of(parts: &[&[u8]]) -> Self {
        let mut hash = Sha256::new();
        for part in parts {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        let full = hash.finalize();
        let mut half = [0; 16];
        half.copy_from_slice(&full[..16]);
        Self(half)
    }
}

/// A foreign id that was used, and what for. It outlives what it named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    pub id: ClaimId,
    pub digest: Digest,
    pub target: ClaimTarget,
}

/// What a claimed id stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ClaimTarget {
    Job(JobId),
    Transfer(TransferId),
    /// A message and the digest of its content.
    Message {
        notice: NoticeId,
        content: Digest,
    },
    /// A signed order: the digest of its content, its job, and the job's state afterwards.
    #[serde(rename = "Heard")]
    SignedOrder {
        content: Digest,
        job: Option<JobId>,
        state: Option<State>,
    },
    /// One offer of a job, by its index.
    Offer {
        job: JobId,
        #[serde(rename = "place")]
        index: u32,
    },
    /// Two parties use this id for different things. The caller has to name the other party too.
    #[serde(rename = "Several")]
    Ambiguous,
    /// A market order, by the record published for it.
    #[serde(rename = "Posting")]
    MarketRecord(PostingId),
    /// Paid for outside the hub: no job of the hub may use this id any more.
    PaidElsewhere(TransferId),
    /// The id was released and may be used again.
    #[serde(rename = "Free")]
    Released,
}

/// The digests under which ids are claimed.
pub mod claim {
    use super::{Digest, Protocol};
    use crate::command::MessageIdentity;
    use crate::id::{AgentId, OwnerId};

    /// A job id chosen by a requester.
    pub fn job(origin: Protocol, foreign: &str) -> Digest {
        Digest::of(&[b"job", origin.as_str().as_bytes(), foreign.as_bytes()])
    }

    /// The id of a request for a job. It can be looked up without knowing the requester.
    pub fn request(origin: Protocol, id: &str) -> Digest {
        Digest::of(&[b"request", origin.as_str().as_bytes(), id.as_bytes()])
    }

    /// The hub's own public id of a job.
    pub fn job_uuid(uuid: uuid::Uuid) -> Digest {
        Digest::of(&[b"job-uuid", uuid.as_bytes()])
    }

    /// A transfer id chosen by a payer.
    pub fn transfer(origin: Protocol, foreign: &str) -> Digest {
        Digest::of(&[b"transfer", origin.as_str().as_bytes(), foreign.as_bytes()])
    }

    /// One message of a conversation, as its sender numbers it.
    pub fn message(from: Option<AgentId>, to: AgentId, turn: &MessageIdentity) -> Digest {
        // Agent ids start at 1, so 0 is free for unregistered senders. They are named in the
        // conversation.
        let from = from.map_or(0, |from| from.0).to_be_bytes();
        let (to, number) = (to.0.to_be_bytes(), turn.number);
        let conversation = turn.conversation.as_bytes();
        Digest::of(&[b"turn", &from, &to, conversation, &number.to_be_bytes()])
    }

    /// The id a signer gave its own order.
    pub fn signed_order(home: Protocol, native: &str, id: &str) -> Digest {
        Digest::of(&[b"signed", home.as_str().as_bytes(), native.as_bytes(), id.as_bytes()])
    }

    /// An order to a market.
    pub fn market_order(market: Protocol, id: &str) -> Digest {
        Digest::of(&[b"posted", market.as_str().as_bytes(), id.as_bytes()])
    }

    /// The end of a market's auction, by the order that opened it.
    pub fn closed_auction(market: Protocol, id: &str) -> Digest {
        Digest::of(&[b"closed", market.as_str().as_bytes(), id.as_bytes()])
    }

    /// A job an agent was invited to do, by the id its requester gave it.
    pub fn invited_job(provider: AgentId, id: &str) -> Digest {
        Digest::of(&[b"asked", &provider.0.to_be_bytes(), id.as_bytes()])
    }

    /// An offer an agent received, by the id its maker gave it; with the maker, if known.
    pub fn offer(to: AgentId, from: Option<AgentId>, id: &str) -> Digest {
        let from = from.map_or(0, |from| from.0).to_be_bytes();
        Digest::of(&[b"offer", &to.0.to_be_bytes(), &from, id.as_bytes()])
    }

    /// The one payment an owner makes for a job, whether the job ran here or elsewhere.
    pub fn payment(origin: Protocol, payer: OwnerId, job: &str) -> Digest {
        let payer = payer.0.to_be_bytes();
        Digest::of(&[b"payment", origin.as_str().as_bytes(), &payer, job.as_bytes()])
    }
}
