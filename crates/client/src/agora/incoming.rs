//! An envelope that arrived and is to be believed: its signature fits, it was fresh when it was
//! received, and it is for nobody else.

use rialto_core::time::{Millis, Timestamp};
use rialto_protocols::agora::receipt::{self, Untrusted};
use rialto_protocols::agora::{Bridge, Envelope, Failure, Kind, Proof, envelope, prove};
use rialto_protocols::kit::ed25519::PublicKey;

use super::said::Said;

/// A message of somebody else.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Its place in the inbox; `None` for what did not come from one.
    pub position: Option<u64>,
    /// Its sender's name for it.
    pub id: String,
    /// Who sent it.
    pub sender: PublicKey,
    /// What it is for.
    pub kind: Kind,
    /// Whom it names as its receiver, which is then the reader.
    pub recipient: Option<PublicKey>,
    /// What it says.
    pub said: Said,
    /// When the hub had it, or when it arrived here.
    pub received_at: Timestamp,
    /// Protocol and name of an agent for whom the hub signs, as the envelope claims (R70). Anybody
    /// can claim that: `held_by` of the sender's directory entry tells whether it is so.
    pub bridged: Option<(String, String)>,
    raw: String,
}

/// Why an envelope is not to be believed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotTrusted {
    /// It makes no sense, or it is not its sender's, or not of now.
    #[error("the envelope is refused: {}", .0.message)]
    Envelope(Box<Failure>),
    /// Its receipt does not vouch for it.
    #[error("{0}")]
    Receipt(Box<Untrusted>),
    /// There is no receipt.
    #[error("the envelope has no receipt of the hub")]
    NoReceipt,
    /// It is signed for another receiver.
    #[error("the envelope is addressed to another recipient")]
    NotForMe,
    /// A delivery that is not the hub's.
    #[error("{0}")]
    Delivery(crate::signature::NotVerified),
    /// What should hold an envelope holds none.
    #[error("not an envelope with a receipt: {0}")]
    Unreadable(String),
}

impl From<Failure> for NotTrusted {
    fn from(failure: Failure) -> Self {
        Self::Envelope(Box::new(failure))
    }
}

/// Who reads, and whose word counts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reader {
    pub(super) me: PublicKey,
    pub(super) hub: PublicKey,
    pub(super) window: Millis,
}

impl Incoming {
    /// The whole envelope as it came.
    pub fn raw(&self) -> &str {
        &self.raw
    }

    /// Believes an envelope that its hub vouches for, however old it is by now.
    pub(super) fn vouched(
        text: &str,
        receipt: Option<&str>,
        position: Option<u64>,
        reader: Reader,
    ) -> Result<Self, NotTrusted> {
        let json = envelope::parse(text.as_bytes())?;
        let envelope = Envelope::read(&json)?;
        let receipt = receipt.ok_or(NotTrusted::NoReceipt)?;
        let (proof, at) = receipt::check(receipt, reader.hub, &envelope, reader.window)
            .map_err(|why| NotTrusted::Receipt(Box::new(why)))?;
        Self::of(&envelope, &proof, position, at, reader)
    }

    /// Believes an envelope that arrives just now.
    pub(super) fn fresh(text: &str, now: Timestamp, reader: Reader) -> Result<Self, NotTrusted> {
        let json = envelope::parse(text.as_bytes())?;
        let envelope = Envelope::read(&json)?;
        let proof = prove(&envelope, now, reader.window)?;
        Self::of(&envelope, &proof, None, now, reader)
    }

    fn of(
        envelope: &Envelope<'_>,
        proof: &Proof,
        position: Option<u64>,
        received_at: Timestamp,
        reader: Reader,
    ) -> Result<Self, NotTrusted> {
        let is_ours = |key| key == reader.me || key == reader.hub;
        if envelope.recipient.is_some_and(|key| !is_ours(key)) {
            return Err(NotTrusted::NotForMe);
        }
        let bridge = envelope.bridge.and_then(Bridge::read);
        let of_hub = |bridge: &Bridge<'_>| PublicKey::parse(bridge.hub) == Ok(reader.hub);
        Ok(Self {
            position,
            id: envelope.id.to_owned(),
            sender: proof.key,
            kind: envelope.kind,
            recipient: envelope.recipient.filter(|key| *key == reader.me),
            said: Said::read(envelope)?,
            received_at,
            bridged: bridge
                .filter(of_hub)
                .map(|bridge| (bridge.protocol.to_owned(), bridge.agent.to_owned())),
            raw: envelope.raw().to_owned(),
        })
    }
}
