//! Tests of refusals before the signature is checked, and their fields.

use super::*;
use crate::agora::MessageType;

/// Alice's draft with one member changed; `null` removes it.
fn with(pointer: &str, value: Value) -> String {
    let mut envelope = draft();
    let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
    envelope.pointer_mut(parent).expect("an object")[name] = value;
    envelope.to_string()
}

#[test]
fn every_member_is_needed_and_has_its_type() {
    for pointer in [
        "/protocol",
        "/id",
        "/timestamp",
        "/type",
        "/sender",
        "/sender/id",
        "/sender/signature",
        "/payload",
    ] {
        for value in [json!(null), json!(7), json!([]), json!(true)] {
            assert_eq!(refused(&with(pointer, value)), (400, pointer.to_owned()));
        }
        let mut gone = draft();
        let (parent, name) = pointer.rsplit_once('/').expect("a pointer");
        let parent = gone.pointer_mut(parent).expect("there").as_object_mut().expect("an object");
        parent.remove(name);
        assert_eq!(refused(&gone.to_string()), (400, pointer.to_owned()));
    }
    for body in ["[]", "7", "null", "\"x\""] {
        assert_eq!(refused(body), (400, String::new()));
    }
}

#[test]
fn members_have_their_values() {
    let long = "x".repeat(129);
    for (pointer, values) in [
        ("/protocol", vec!["agora/1.1", "AGORA/1.0", "agora/1.0 ", ""]),
        ("/id", vec!["", long.as_str(), "a\u{200b}b", "a\nb"]),
        ("/type", vec!["request", "DEBATE", "REQUEST ", ""]),
        ("/sender/id", vec!["", "alice", "did:web:a.example"]),
        ("/recipient", vec!["", "bob"]),
    ] {
        for value in values {
            let failure = arrive(&with(pointer, json!(value))).expect_err(value);
            assert_eq!(failure.field.as_deref(), Some(pointer), "{value}");
            let example = failure.example.expect("an example");
            assert!(ijson::read(example.as_bytes()).is_ok());
            assert!(
                failure.message.starts_with(&pointer[1..].replace('/', ".")),
                "{}",
                failure.message
            );
        }
    }
    assert_eq!(refused(&with("/recipient", json!({}))), (400, "/recipient/id".to_owned()));
    assert_eq!(
        refused(&with("/recipient", json!({"id": "bob"}))),
        (400, "/recipient/id".to_owned())
    );
    assert_eq!(refused(&with("/recipient", json!([]))), (400, "/recipient".to_owned()));
    let text = with("/recipient", json!(bob().public().did()));
    let json = read_json(text.as_bytes()).expect("JSON");
    assert_eq!(Envelope::read(&json).expect("an envelope").recipient, Some(bob().public()));
}

#[test]
fn all_eight_types_are_read_and_their_ids_need_not_be_uuids() {
    for kind in MessageType::ALL {
        let text = with("/type", json!(kind.as_str()));
        let json = read_json(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        assert_eq!((envelope.message_type, envelope.id), (kind, "r-1"));
        assert_eq!(envelope.recipient, Some(bob().public()));
        assert_eq!(kind.to_string(), kind.as_str());
    }
}

#[test]
fn envelopes_of_other_protocols_are_told_which_one_is_spoken_here() {
    for member in ["version", "ts", "sig"] {
        let mut other = draft();
        other.as_object_mut().expect("an object").remove("protocol");
        other[member] = json!("1");
        let failure = arrive(&other.to_string()).expect_err("another protocol");
        assert_eq!(failure.field.as_deref(), Some("/protocol"));
        assert!(failure.hint.expect("a hint").contains("protocol: \"agora/1.0\""));
    }
    let failure = arrive(&with("/type", json!("DEBATE"))).expect_err("no such type");
    assert!(failure.hint.expect("a hint").contains("agora/1.0"));
}

#[test]
fn times_are_utc_and_say_so() {
    for text in [
        "2026-03-20T10:00:00Z",
        "2026-03-20T10:00:00.000Z",
        "2026-03-20T10:00:00.123456789+00:00",
        "2026-03-20T10:00:00+00:00",
    ] {
        let text = signed(
            serde_json::from_str(&with("/timestamp", json!(text))).expect("JSON"),
            &alice(),
            SignatureForm::Empty,
        );
        assert!(arrive(&text.to_string()).is_ok(), "{text}");
    }
    let fine = format!("2026-03-20T10:00:00.{}Z", "0".repeat(64));
    for text in [
        "",
        "2026-03-20T10:00:00",
        "2026-03-20T11:00:00+01:00",
        "2026-03-20T10:00:00-00:00",
        "2026-03-20T10:00:00z",
        "2026-03-20t10:00:00Z",
        "2026-03-20 10:00:00Z",
        "2026-03-20T10:00Z",
        "2026-03-20T10:00:60Z",
        "2026-03-20T24:00:00Z",
        "2026-02-30T10:00:00Z",
        "1969-12-31T23:59:59Z",
        "0000-01-01T00:00:00Z",
        "-001-01-01T00:00:00Z",
        "10000-01-01T00:00:00Z",
        "2026-03-20T10:00:00+24:00",
        "1774000800",
        fine.as_str(),
    ] {
        assert_eq!(
            refused(&with("/timestamp", json!(text))),
            (400, "/timestamp".to_owned()),
            "{text}"
        );
    }
    for year in ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z"] {
        assert_eq!(refused(&with("/timestamp", json!(year))).0, 401, "a time, and not now");
    }
}

#[test]
fn a_minute_either_way_is_fresh_and_a_millisecond_more_is_not() {
    let now = Timestamp(NOW.0 + 60_000);
    for (time, passes) in [
        ("2026-03-20T10:00:00.000Z", true),
        ("2026-03-20T10:02:00.000Z", true),
        ("2026-03-20T09:59:59.999Z", false),
        ("2026-03-20T10:02:00.001Z", false),
    ] {
        let mut envelope = draft();
        envelope["timestamp"] = json!(time);
        let text = signed(envelope, &alice(), SignatureForm::Empty).to_string();
        match arrive_at(text.as_bytes(), now) {
            Ok(_) => assert!(passes, "{time}"),
            Err(failure) => {
                assert!(!passes, "{time}");
                assert_eq!(failure.code.number(), 401);
                assert!(failure.hint.expect("a hint").contains("2026-03-20T10:01:00.000Z"));
            }
        }
    }
}

#[test]
fn numbers_that_mean_two_things_are_refused_before_the_signature() {
    for (number, passes) in [
        ("9007199254740991", true),
        ("-9007199254740991", true),
        ("9007199254740992", false),
        ("9007199254740993", false),
        ("-9007199254740992", false),
        ("9007199254740993.0", true),
        ("1e300", true),
        ("1e309", false),
        ("-1e999", false),
    ] {
        let text = with("/payload/x", json!("NUMBER")).replace("\"NUMBER\"", number);
        let found = refused(&text);
        let wanted = if passes { (401, String::new()) } else { (400, "/payload/x".to_owned()) };
        assert_eq!(found, wanted, "{number}");
    }
    let failure =
        arrive(&with("/payload/x", json!("N")).replace("\"N\"", "1e999")).expect_err("1e999");
    assert_eq!(failure.message, "payload.x is not a finite double");
}

#[test]
fn what_two_readers_could_read_differently_is_refused() {
    let good = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    assert!(arrive(&good).is_ok());
    for bad in [
        good.replacen('{', "{\"id\":\"r-1\",", 1),
        good.replacen('{', "{\"\\u0069d\":\"r-1\",", 1),
        good.replace("\"budget\":{", "\"budget\":{\"max\":5.25,"),
        good.replace("\"weather\"", "\"\\ud800\""),
        good.replace("\"weather\"", "\"\\udc00\\ud800\""),
        good.replace("\"weather\"", "\"a\nb\""),
        format!("\u{feff}{good}"),
        format!("{good}{good}"),
        format!("{good}x"),
        format!("{good}\0"),
        good[..good.len() - 1].to_owned(),
        good.replace("\"weather\"", &("[".repeat(64) + &"]".repeat(64))),
        String::new(),
    ] {
        assert_eq!(refused(&bad), (400, String::new()), "{bad}");
    }
    let mut bytes = good.into_bytes();
    bytes[20] = 0xff;
    assert_eq!(arrive_at(&bytes, NOW).expect_err("no text").code.number(), 400);
}

#[test]
fn a_mebibyte_is_read_and_one_byte_more_is_not() {
    let text = signed(draft(), &alice(), SignatureForm::Empty).to_string();
    let padded = |length: usize| text.clone() + &" ".repeat(length - text.len());
    assert!(arrive(&padded(1_048_576)).is_ok());
    let failure = arrive(&padded(1_048_577)).expect_err("too long");
    assert_eq!((failure.http_status, failure.code.number()), (413, 400));
}

#[test]
fn what_is_malformed_is_said_before_what_is_not_proven() {
    let mut envelope = draft();
    envelope["sender"]["id"] = json!("did:key:z6LSbysY2xFMRpGMhb7tFTLMpeuPRaqaWM1yECx2AtzE3KCc");
    envelope["timestamp"] = json!("2020-01-01T00:00:00Z");
    let failure = arrive(&envelope.to_string()).expect_err("another key type");
    assert_eq!(failure.code.number(), 401);
    assert!(failure.message.starts_with("sender.id"), "the key comes before the time");
    envelope["payload"] = json!([]);
    assert_eq!(refused(&envelope.to_string()), (400, "/payload".to_owned()));
}
