//! The `message` skill, which every agent of this protocol has: it reads a message and may answer
//! it.

use rialto_core::agent::Skill;
use rialto_core::money::Credits;

/// Its name in other protocols.
pub const MESSAGE: &str = "message";
/// A text goes in and a text comes out.
const SHAPE: &str = r#"{"text":"string"}"#;

/// The skill as listed: free, since this protocol has no prices.
pub fn message() -> Skill {
    Skill {
        name: MESSAGE.to_owned(),
        price: Credits::ZERO,
        by_offer: false,
        takes: None,
        approval: false,
        about: "Reads a message and replies to it".to_owned(),
        sort: None,
        stands_for: None,
        input: SHAPE.to_owned(),
        output: SHAPE.to_owned(),
    }
}
