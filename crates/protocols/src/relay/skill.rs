//! The `message` skill, which every agent of this protocol has: it reads a message and may answer
//! it.

use rialto_core::agent::Skill;
use rialto_core::money::Credits;

/// Its name in other protocols.
pub const MESSAGE_SKILL: &str = "message";
/// A text goes in and a text comes out.
const SHAPE: &str = r#"{"text":"string"}"#;

/// The skill as listed: free, since this protocol has no prices.
pub fn message_skill() -> Skill {
    Skill {
        name: MESSAGE_SKILL.to_owned(),
        price: Credits::ZERO,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        description: "Reads a message and replies to it".to_owned(),
        category: None,
        native_name: None,
        input: SHAPE.to_owned(),
        output: SHAPE.to_owned(),
    }
}
