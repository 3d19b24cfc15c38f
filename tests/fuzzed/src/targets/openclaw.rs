//! The six messages: rejected with every reason, or the same after writing and parsing.

use rialto_core::time::Timestamp;
use rialto_protocols::kit::ijson;
use rialto_protocols::openclaw::wire::request::{ApproveBody, CancelBody};
use rialto_protocols::openclaw::wire::{Rejection, ResultError};
use rialto_protocols::openclaw::{AnyMessage, Failure};
use uuid::Uuid;

use super::text;

/// Checks all parsers of openclaw on the same body.
pub fn openclaw(bytes: &[u8]) {
    match AnyMessage::read(bytes) {
        Err(failure) => refused(&failure),
        Ok(any) => {
            let (raw, written) = texts(&any);
            assert_eq!(raw, ijson::read(bytes).expect("it was read").raw());
            // Written by the hub, it has the hub's version and no unknown members.
            let again = AnyMessage::read(written.as_bytes())
                .unwrap_or_else(|failure| panic!("{written} is refused: {failure:?}"));
            assert_eq!(texts(&again).1, written, "it changes when it is written again");
        }
    }
    let _ = (ApproveBody::read(bytes), CancelBody::read(bytes));
    let Some(text) = text(bytes) else { return };
    if let Some(reason) = Rejection::read(text) {
        assert_eq!(Rejection::read(&reason.write()), Some(reason));
    }
    let _ = ResultError::read(text);
}

/// The original text, and the text written by the hub.
fn texts(any: &AnyMessage) -> (&str, String) {
    match any {
        AnyMessage::Identity(message) => (&message.raw, message.body.write()),
        AnyMessage::Status(message) => (&message.raw, message.body.write()),
        AnyMessage::Reputation(message) => (&message.raw, message.body.write()),
        AnyMessage::Request(message) => (&message.raw, message.body.write()),
        AnyMessage::Response(message) => (&message.raw, message.body.write()),
        AnyMessage::Result(message) => (&message.raw, message.body.write()),
    }
}

fn refused(failure: &Failure) {
    let answer = failure.write(Uuid::nil(), Timestamp(0));
    assert!(ijson::read(answer.as_bytes()).is_ok(), "the refusal is not valid JSON: {answer}");
}
