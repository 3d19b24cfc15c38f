//! Authorization where a signature is the proof: every message type against every signer.
//!
//! The route does not decide here, so the tables list actions. A message type without a row fails
//! the suite. A refused message must change nothing, at whichever route it is posted.

pub mod envelopes;
pub mod items;

use rialto_hub::app::operations;
use rialto_protocols::adapter::Access;

use crate::kit::{TestHub, snapshot};

/// The signers, in the order of the columns of both tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Requested the job.
    Requester,
    /// Its worker, or the first to make an offer.
    Worker,
    /// Also invited.
    Asked,
    /// An unrelated signer.
    Stranger,
    /// Claims the right sender, without a signature.
    Unsigned,
    /// The same with the signature of another key.
    Forged,
    /// The same, with the operator's key as bearer token.
    Operator,
}

pub const SIGNERS: [Signer; 7] = [
    Signer::Requester,
    Signer::Worker,
    Signer::Asked,
    Signer::Stranger,
    Signer::Unsigned,
    Signer::Forged,
    Signer::Operator,
];

/// Seeds a key that no agent of the scene has.
const FORGER: u8 = 66;

impl Signer {
    /// The seed of the signer's key; an impostor has none.
    fn seed(self) -> Option<u8> {
        match self {
            Self::Requester => Some(1),
            Self::Worker => Some(2),
            Self::Asked => Some(3),
            Self::Stranger => Some(4),
            Self::Unsigned | Self::Forged | Self::Operator => None,
        }
    }
}

/// The routes of one protocol that accept signed messages.
pub fn doors(prefix: &str) -> Vec<String> {
    let posts = operations().into_iter().filter(|route| route.method == "POST");
    let signed = posts.filter(|route| route.access == Access::Signed);
    let all: Vec<String> = signed
        .map(|route| route.path.to_string())
        .filter(|path| path.starts_with(prefix))
        .collect();
    assert!(all.len() >= 2, "{all:?}");
    all
}

/// Rows, public pages and inboxes. The number of posted messages is left out, since the market also
/// records messages without effect.
async fn held(hub: &TestHub) -> (impl PartialEq + std::fmt::Debug + use<>, Vec<String>) {
    let snapshot = snapshot(hub).await;
    let boxes = hub.engine.with_world(|world| {
        let mut all: Vec<_> = world.agents().map(|agent| agent.id).collect();
        all.sort_unstable();
        all.into_iter().map(|id| format!("{:?}", world.inbox(id))).collect()
    });
    ((snapshot.shown, snapshot.kept), boxes)
}
