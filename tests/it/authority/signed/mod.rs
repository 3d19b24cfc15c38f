//! Who may say what where a signature is the proof: every type of message against every signer.
//!
//! The route tells nothing about who may do what here, so the table is one of deeds. A type of message
//! without a row fails the suite. What is refused must change nothing, at whatever door it is brought.

pub mod envelopes;
pub mod items;

use rialto_hub::app::listed;
use rialto_protocols::face::Reach;

use crate::kit::{TestHub, snapshot};

/// Who says it, in the order of the columns of both tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signer {
    /// Asked for the job that is spoken of.
    Requester,
    /// Was given it, or was the first to name a price.
    Worker,
    /// Was asked for it as well.
    Asked,
    /// Has nothing to do with it.
    Stranger,
    /// Speaks in the name of whose word it is, without a signature.
    Unsigned,
    /// The same with the signature of another key.
    Forged,
    /// The same, and shows the operator's key besides.
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

/// Seeds a key that nobody of the scene has.
const FORGER: u8 = 66;

impl Signer {
    /// What the key of somebody with a signature is made from; a liar has none of its own.
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

/// The doors of one protocol at which something signed is posted.
pub fn doors(prefix: &str) -> Vec<String> {
    let posts = listed().into_iter().filter(|route| route.method == "POST");
    let signed = posts.filter(|route| route.reach == Reach::Signed);
    let all: Vec<String> = signed
        .map(|route| route.path.to_string())
        .filter(|path| path.starts_with(prefix))
        .collect();
    assert!(all.len() >= 2, "{all:?}");
    all
}

/// What is kept, shown and waiting. How many words were ever posted is left out, since a market also
/// remembers those from which nothing came.
async fn held(hub: &TestHub) -> (impl PartialEq + std::fmt::Debug + use<>, Vec<String>) {
    let snapshot = snapshot(hub).await;
    let boxes = hub.engine.look(|world| {
        let mut all: Vec<_> = world.agents().map(|agent| agent.id).collect();
        all.sort_unstable();
        all.into_iter().map(|id| format!("{:?}", world.mailbox(id))).collect()
    });
    ((snapshot.shown, snapshot.kept), boxes)
}
