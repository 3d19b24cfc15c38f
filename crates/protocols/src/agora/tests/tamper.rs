//! Changing the content breaks the signature; changing the formatting does not.

use super::vectors::{all, now};
use super::*;

/// JSON pointers to every value, the root included.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(members) => {
            members
                .iter()
                .for_each(|(name, v)| places(v, &format!("{at}/{}", escaped(name)), found));
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(n, v)| places(v, &format!("{at}/{n}"), found));
        }
        _ => {}
    }
}

/// Valid envelopes: the vectors, and one of Alice's in both forms.
fn good() -> Vec<(Value, Timestamp)> {
    let ours = [SignatureForm::Empty, SignatureForm::Removed]
        .map(|form| (signed(draft(), &alice(), form), NOW));
    let published = all().into_iter().map(|(vector, _)| (vector["envelope"].clone(), now(&vector)));
    published.chain(ours).collect()
}

fn holds(envelope: &Value, now: Timestamp) -> bool {
    arrive_at(envelope.to_string().as_bytes(), now).is_ok()
}

#[test]
fn every_flipped_bit_is_found() {
    for (vector, text) in all() {
        let compact = serde_json::from_str::<Value>(&text).expect("JSON").to_string();
        assert!(arrive_at(compact.as_bytes(), now(&vector)).is_ok());
        for at in 0..compact.len() {
            for bit in 0..8 {
                let mut bytes = compact.clone().into_bytes();
                bytes[at] ^= 1 << bit;
                let shown = String::from_utf8_lossy(&bytes).into_owned();
                assert!(arrive_at(&bytes, now(&vector)).is_err(), "{shown}");
            }
        }
    }
}

#[test]
fn every_value_changed_and_every_member_added_or_removed_is_found() {
    for (envelope, now) in good() {
        assert!(holds(&envelope, now));
        let mut found = Vec::new();
        places(&envelope, "", &mut found);
        for place in &found {
            let changes =
                [json!(null), json!(8), json!("other"), json!({"a": 1}), json!([]), json!(true)];
            for change in changes {
                let mut changed = envelope.clone();
                let there = changed.pointer_mut(place).expect("a place");
                if *there == change {
                    continue;
                }
                *there = change;
                assert!(!holds(&changed, now), "{place} {changed}");
            }
            let mut more = envelope.clone();
            match more.pointer_mut(place).expect("a place") {
                Value::Object(members) => drop(members.insert("new".into(), Value::Null)),
                Value::Array(items) => items.push(Value::Null),
                _ => continue,
            }
            assert!(!holds(&more, now), "{place} {more}");
        }
        for place in found.iter().filter(|place| !place.is_empty()) {
            let (parent, name) = place.rsplit_once('/').expect("a pointer");
            let mut less = envelope.clone();
            match less.pointer_mut(parent).expect("a place") {
                Value::Object(members) => drop(members.remove(name)),
                Value::Array(items) => drop(items.remove(name.parse().expect("a number"))),
                _ => continue,
            }
            assert!(!holds(&less, now), "{place} {less}");
        }
    }
}

#[test]
fn order_white_space_and_escapes_do_not_matter() {
    let envelope = signed(draft(), &alice(), SignatureForm::Empty);
    let proof = arrive(&envelope.to_string()).expect("a good signature");
    let pretty = serde_json::to_string_pretty(&envelope).expect("JSON");
    let members = envelope.as_object().expect("an object");
    let reversed: Vec<_> =
        members.iter().rev().map(|(name, value)| format!("{}:{value}", json!(name))).collect();
    let reversed = format!(" {{{}}}\r\n", reversed.join("\t, "));
    let escaped =
        envelope.to_string().replace("weather", "w\\u0065\\u0061ther").replace('/', "\\/");
    let renumbered = envelope.to_string().replace("5.25", "525e-2").replace("10000", "1.0E+4");
    for text in [pretty, reversed, escaped, renumbered] {
        assert_eq!(arrive(&text), Ok(proof), "{text}");
    }
}

#[test]
fn both_forms_are_one_message() {
    let empty =
        arrive(&signed(draft(), &alice(), SignatureForm::Empty).to_string()).expect("one form");
    let removed =
        arrive(&signed(draft(), &alice(), SignatureForm::Removed).to_string()).expect("the other");
    assert_eq!((empty.form, removed.form), (SignatureForm::Empty, SignatureForm::Removed));
    assert_eq!(empty.content, removed.content);
    assert_eq!(empty.canonical_sha256, empty.content);
    assert_ne!(removed.canonical_sha256, removed.content);
    let mut other = draft();
    other["payload"]["timeout"] = json!(10_001);
    let other = arrive(&signed(other, &alice(), SignatureForm::Empty).to_string())
        .expect("another message");
    assert_ne!(other.content, empty.content);
}

#[test]
fn a_signature_has_one_spelling_and_perhaps_its_padding() {
    let envelope = signed(draft(), &alice(), SignatureForm::Empty);
    let good = envelope["sender"]["signature"].as_str().expect("text").to_owned();
    assert_eq!(good.len(), 86);
    let with = |signature: &str| {
        let mut envelope = envelope.clone();
        envelope["sender"]["signature"] = json!(signature);
        arrive(&envelope.to_string())
    };
    assert_eq!(with(&format!("{good}==")), with(&good));
    assert!(with(&good).is_ok());
    let standard: String = "+/".repeat(43);
    let hex: String =
        base64url::decode(&good).expect("bytes").iter().map(|b| format!("{b:02x}")).collect();
    for bad in [
        String::new(),
        format!("{good}="),
        format!("{good}==="),
        format!("{good} "),
        format!(" {good}"),
        format!("{good}\n"),
        format!("{good}A"),
        format!("{good}AA"),
        good[..85].to_owned(),
        good[..84].to_owned(),
        good.replace(['-', '_'], "+"),
        standard,
        hex,
        "A".repeat(86),
    ] {
        if bad == good {
            continue;
        }
        assert_eq!(with(&bad).expect_err(&bad).code.number(), 401, "{bad}");
    }
    for last in "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".chars() {
        let respelled = format!("{}{last}", &good[..85]);
        assert_eq!(with(&respelled).is_ok(), respelled == good, "spare bits of {last}");
    }
}
