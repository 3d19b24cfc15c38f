//! Tests of versions and correlation ids.

use super::*;

use crate::openclaw::Code;

#[test]
fn absent_and_all_of_major_one_are_accepted() {
    for (name, kind, text) in examples() {
        for version in ["1.0.0", "1.7.12", "1.0.999"] {
            let text = text.replacen('{', &format!(r#"{{"protocol_version":"{version}","#), 1);
            assert!(read_as(kind, &text).is_ok(), "{name} {version}");
        }
        assert!(read_as(kind, &text).is_ok(), "{name}");
    }
}

#[test]
fn other_majors_are_told_apart_from_nonsense() {
    let (_, kind, text) = &examples()[1];
    for (version, code) in [
        ("\"2.0.0\"", Code::UnsupportedVersion),
        ("\"0.9.0\"", Code::UnsupportedVersion),
        ("\"10.0.0\"", Code::UnsupportedVersion),
        ("\"11.0.0\"", Code::UnsupportedVersion),
        ("\"1.0\"", Code::Validation),
        ("\"one\"", Code::Validation),
        ("\"1.0.x\"", Code::Validation),
        ("\"\"", Code::Validation),
        ("1", Code::Validation),
        ("null", Code::Validation),
    ] {
        let text = text.replacen('{', &format!(r#"{{"protocol_version":{version},"#), 1);
        let failure = read_as(*kind, &text).expect_err(version);
        assert_eq!((failure.code, failure.http_status), (code, 400), "{version}");
        assert!(failure.correlation_id.is_some(), "the message had one");
    }
}

#[test]
fn a_refusal_keeps_the_correlation_id_if_there_is_one() {
    let broken = without(example("Status: Idle"), "/agent_id");
    let failure = read_as(Kind::Status, &broken.to_string()).expect_err("no agent_id");
    let id = "660e8400-e29b-41d4-a716-446655440001";
    assert_eq!(failure.correlation_id.map(|id| id.to_string()).as_deref(), Some(id));
    let broken = with(broken, "/correlation_id", "x".into());
    let failure = read_as(Kind::Status, &broken.to_string()).expect_err("no agent_id");
    assert_eq!(failure.correlation_id, None);
    assert_eq!(failure.violations.len(), 2);
}

#[test]
fn an_identity_may_have_a_correlation_id_and_need_not() {
    let body = example("identity: Example");
    let Ok(AnyMessage::Identity(plain)) = AnyMessage::read(body.to_string().as_bytes()) else {
        panic!("plain")
    };
    assert_eq!(plain.correlation_id, None);
    let traced = with(body, "/correlation_id", "660e8400-e29b-41d4-a716-446655440001".into());
    let Ok(AnyMessage::Identity(traced)) = AnyMessage::read(traced.to_string().as_bytes()) else {
        panic!()
    };
    assert!(traced.correlation_id.is_some());
}
