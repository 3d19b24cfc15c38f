//! Converts a request from one protocol to another without a running hub.

use rialto_core::alias::Protocol;
use rialto_core::time::Timestamp;

use super::hop::field_map_of;
use super::message_view::MessageView;
use super::note::{Note, compare_fields};

/// A request before and after its conversion.
#[derive(Clone, Debug)]
pub struct Conversion {
    pub source: MessageView,
    pub target: MessageView,
    pub notes: Vec<Note>,
}

/// Reads a request of `from` and writes it for `to`. Ids, aliases and signatures, which only a hub
/// can produce, become placeholders.
pub fn convert(
    from: Protocol,
    to: Protocol,
    request: &[u8],
    at: Timestamp,
) -> Result<Conversion, String> {
    let unknown = |protocol| format!("unknown protocol {protocol}");
    let reader = field_map_of(from).ok_or_else(|| unknown(from))?;
    let writer = field_map_of(to).ok_or_else(|| unknown(to))?;
    let (asked, wanted) = reader.read_request(request, at)?;
    // Within one protocol a request is passed on unchanged.
    let given = if from == to { asked.clone() } else { writer.write_request(&wanted, at) };
    let notes = compare_fields(&asked, &given);
    Ok(Conversion { source: asked, target: given, notes })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::{Value, json};

    use super::*;
    use crate::adapter::fidelity::Fate;

    /// Request bodies of protocols that allow additional members.
    fn bodies() -> [(Protocol, Value); 3] {
        let id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
        [
            (
                crate::registry::ID,
                json!({"job_id": id, "skill_name": "sum", "input_data": {"a": 1}, "budget": 1}),
            ),
            (
                crate::openclaw::ID,
                json!({"request_id": id, "requester_agent_id": id, "capability_id": "sum",
                    "input_data": {"a": 1}, "correlation_id": id, "priority": 2,
                    "timestamp": "2026-02-06T16:30:00Z"}),
            ),
            (
                crate::relay::ID,
                json!({"chorus_version": "0.4", "sender_id": "a@b", "original_text": "hi",
                    "sender_culture": "en", "conversation_id": "c", "turn_number": 1}),
            ),
        ]
    }

    fn anything() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(2, 8, 3, |inner| {
            let lists = proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from);
            let objects = proptest::collection::btree_map("[a-z]{1,4}", inner, 0..3);
            prop_oneof![lists, objects.prop_map(Value::from_iter)]
        })
    }

    #[test]
    fn of_tags_with_one_name_one_is_passed_on() {
        let tags = [
            ("Protocol", "C.L.A.R.A."),
            ("Action", "Register-Task"),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "5"),
            ("mood", "good"),
            ("mood", "bad"),
        ];
        let tags = tags.map(|(name, value)| json!({"name": name, "value": value}));
        let request = json!({"Data": "{}", "Tags": tags}).to_string();
        let clara = Protocol::new("clara");
        for to in crate::ALL.iter().map(|adapter| adapter.id()).filter(|to| *to != clara) {
            let done = convert(clara, to, request.as_bytes(), Timestamp(0)).expect("a task");
            let given = crate::kit::ijson::read(done.target.payload.as_bytes());
            assert!(given.is_ok(), "{to}: {given:?}");
            let moods = done.notes.iter().filter(|note| note.field.name == "mood");
            assert_eq!(moods.count(), 1, "{to}");
        }
    }

    proptest! {
        #[test]
        fn whatever_else_a_request_says_is_told_of_once_between_all_protocols(
            extras in proptest::collection::btree_map("[a-z~/ ]{1,6}_", anything(), 0..6),
        ) {
            let extras: BTreeMap<String, Value> = extras;
            for (from, mut body) in bodies() {
                let members = body.as_object_mut().expect("an object");
                members.extend(extras.clone());
                let names = members.len();
                for to in crate::ALL.iter().map(|adapter| adapter.id()) {
                    let text = body.to_string();
                    let done = convert(from, to, text.as_bytes(), Timestamp(0)).expect(&text);
                    let own = done.notes.iter().filter(|note| note.fate != Fate::Defaulted);
                    let told: Vec<&str> = own.map(|note| note.field.name.as_str()).collect();
                    prop_assert_eq!(told.len(), names, "{} to {}: {:?}", from, to, told);
                    let mut once = told.clone();
                    once.sort_unstable();
                    once.dedup();
                    prop_assert_eq!(once.len(), names, "{} to {}: {:?}", from, to, told);
                }
            }
        }
    }
}
