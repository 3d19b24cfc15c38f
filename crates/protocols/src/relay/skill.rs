//! The one thing every agent of this protocol does: it reads a message, and may answer it.

use rialto_core::agent::Skill;
use rialto_core::money::Credits;

/// What other protocols call it.
pub const MESSAGE: &str = "message";
/// A text goes in and a text comes out.
const SHAPE: &str = r#"{"text":"string"}"#;

/// The skill as it is listed: free, since nobody here names a price.
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
