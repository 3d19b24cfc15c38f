//! Envelopes that the hub signs: its own, and values of other protocols in them.
//!
//! Signing needs canonical JSON, which limits numbers to those that every reader reads the same,
//! and limits the depth. Other values are carried as text, so that no work or result is lost.

use std::borrow::Cow;

use rialto_core::time::Timestamp;

use super::AgoraContext;
use super::wire::envelope::MessageType;
use super::wire::error::Failure;
use super::wire::receipt::Receipt;
use super::wire::signature::{SignedMessage, UnsignedEnvelope};
use crate::kit::ed25519::PublicKey;
use crate::kit::object::ObjectWriter;
use crate::kit::{ijson, jcs};

/// The member that holds a value carried as text.
const AS_TEXT: &str = "json";
/// The levels of depth that an envelope needs for itself.
const LEVELS: usize = 8;
/// The values that an envelope needs for itself.
const MEMBERS: usize = 200;

/// Signs an envelope of the hub with the current time.
pub fn sign_now(
    context: &AgoraContext,
    kind: MessageType,
    payload: &str,
    to: Option<PublicKey>,
) -> SignedMessage {
    let id = context.engine.random().new_uuid().to_string();
    sign_as(context, &id, context.engine.wall_time(), kind, payload, to)
}

/// Signs an envelope of the hub with a given id and time, so that it is the same every time.
pub fn sign_as(
    context: &AgoraContext,
    id: &str,
    timestamp: Timestamp,
    kind: MessageType,
    payload: &str,
    recipient: Option<PublicKey>,
) -> SignedMessage {
    let draft =
        UnsignedEnvelope { id, timestamp, kind, payload, recipient, hub: None, bridge: None };
    context.state.signer.sign(&draft).expect("payloads that the hub writes are valid")
}

/// A receipt, signed now so that its reader finds it fresh.
pub fn signed_receipt(
    context: &AgoraContext,
    receipt: &Receipt<'_>,
    to: Option<PublicKey>,
) -> String {
    sign_now(context, MessageType::Status, &receipt.write(), to).text
}

/// An ERROR that answers an envelope that was not accepted.
pub fn signed_error(context: &AgoraContext, failure: &Failure, to: Option<PublicKey>) -> String {
    sign_now(context, MessageType::Error, &failure.payload(), to).text
}

/// JSON as an object that can be signed. A value that is not an object is wrapped in one under
/// `name`.
pub fn signable_object<'t>(text: &'t str, name: &str) -> Cow<'t, str> {
    if !is_signable(text) {
        return ObjectWriter::new().text(AS_TEXT, text).finish().into();
    }
    if text.trim_start().starts_with('{') {
        return text.into();
    }
    ObjectWriter::new().raw(name, text).finish().into()
}

/// JSON that can be signed: the value itself, or an object that contains it as text.
pub fn signable_value(text: &str) -> Cow<'_, str> {
    if is_signable(text) {
        return text.into();
    }
    ObjectWriter::new().text(AS_TEXT, text).finish().into()
}

/// Whether a value can be part of an envelope that is signed and read again.
fn is_signable(text: &str) -> bool {
    let (open, close) = ("[".repeat(LEVELS), "]".repeat(LEVELS));
    let inside = format!("[{open}{text}{close}{}]", ",0".repeat(MEMBERS));
    ijson::read(inside.as_bytes()).is_ok_and(|json| jcs::canonicalize(&json).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_signed_stays_as_it_is() {
        assert_eq!(signable_object(r#"{"n":1.50}"#, "input"), r#"{"n":1.50}"#);
        assert_eq!(signable_object("[1]", "input"), r#"{"input":[1]}"#);
        assert_eq!(signable_value("[1]"), "[1]");
    }

    #[test]
    fn numbers_and_depths_that_cannot_be_signed_are_carried_as_text() {
        for text in [r#"{"n":12345678901234567890}"#, r#"{"n":1e400}"#, r#"[9007199254740993]"#] {
            let carried = signable_object(text, "input");
            let read: serde_json::Value = serde_json::from_str(&carried).expect("JSON");
            assert_eq!(read["json"], text);
            assert!(is_signable(&carried));
        }
        let deep = format!("{}1{}", "[".repeat(60), "]".repeat(60));
        assert!(!is_signable(&deep) && is_signable(&signable_value(&deep)));
        let wide = format!("[{}0]", "0,".repeat(9_900));
        assert!(!is_signable(&wide) && is_signable(&signable_value(&wide)));
    }
}
