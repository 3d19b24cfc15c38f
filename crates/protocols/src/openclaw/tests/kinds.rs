//! Tests of detecting the kind of a message.

use super::*;

use crate::openclaw::Code;
use crate::openclaw::wire::stream::Event;
use crate::openclaw::wire::words::{Category, ErrorType, Mode, Role, State, Status, UpdateType};

#[test]
fn a_message_of_no_kind_or_of_two_is_refused_with_the_six_sets() {
    for body in [
        "{}",
        r#"{"agent_id":"x"}"#,
        r#"{"capabilities":{}}"#,
        r#"{"requester_agent_id":"x"}"#,
        r#"{"status_update":{},"reputation_update":{}}"#,
        r#"{"response_status":"accepted","result_status":"failed"}"#,
        "[]",
        "7",
    ] {
        let failure = AnyMessage::read(body.as_bytes()).expect_err(body);
        assert_eq!((failure.code, failure.http_status), (Code::Validation, 400));
        assert_eq!(failure.violations.len(), 6, "{body}");
        assert!(failure.violations[0].contains("capabilities and agent_name"));
    }
}

#[test]
fn what_is_no_json_is_refused() {
    for body in [&b""[..], b"{", b"{\"a\":1,\"a\":2}", b"\xff", b"{} {}", b"\xef\xbb\xbf{}"] {
        let failure = AnyMessage::read(body).expect_err("no JSON");
        assert_eq!(failure.code, Code::Validation);
        assert!(failure.violations[0].starts_with("body cannot be read: "));
    }
}

#[test]
fn every_word_is_read_as_it_is_written() {
    macro_rules! both_ways {
        ($($words:ident)+) => {$(
            for word in $words::ALL {
                assert_eq!($words::read(word.as_str()), Some(*word));
                let json = serde_json::to_string(word).expect("JSON");
                assert_eq!(json, format!("\"{word}\""));
                assert_eq!(serde_json::from_str::<$words>(&json).expect("a word"), *word);
            }
            assert_eq!($words::read("no such word"), None);
        )+};
    }
    both_ways!(Kind Status ErrorType Category Mode State Role UpdateType Event);
    assert_eq!(State::ALL.iter().filter(|state| state.is_final()).count(), 4);
    assert_eq!(Kind::ALL.iter().filter_map(|kind| Event::carrying(*kind)).count(), 5);
}

#[test]
fn every_example_that_is_shown_is_right() {
    for kind in Kind::ALL {
        assert!(read_as(*kind, kind.example()).is_ok(), "{kind}");
    }
}
