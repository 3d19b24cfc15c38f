//! Property tests that hold for every message.

use proptest::prelude::*;
use rialto_core::time::Timestamp;

use super::messages::signed;
use super::*;
use crate::clara::wire::message::{read_assign, read_dry_run, read_process};
use crate::clara::wire::record::{self, AgentRecord};
use crate::clara::wire::register::{format_price, read_price, read_sum};
use crate::clara::wire::result::{self, MessageResult, ResultPage};
use crate::clara::wire::task::{TaskQuery, TaskRecord, TaskResult};
use crate::clara::{Action, OutgoingMessage, Paging, ResultCursor, Strategy as Pick};
use crate::kit::ans104::{Item, UnsignedItem};
use crate::kit::ijson;

/// Known tag names and some unknown ones.
fn name() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 9] = [
        "Protocol",
        "RedStone-Agent-Topic",
        "RedStone-Agent-Fee",
        "RedStone-Agent-Id",
        "RedStone-Task-Id",
        "RedStone-Agent-Reward",
        "RedStone-Agent-Matching",
        "Recipient",
        "From",
    ];
    prop_oneof![4 => prop::sample::select(&KNOWN[..]).prop_map(str::to_owned), 1 => "\\PC{0,8}"]
}

/// Values that may be valid.
fn value() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 6] = ["C.L.A.R.A.", "tweet", "50", "A1", TASK, "cheapest"];
    prop_oneof![4 => prop::sample::select(&KNOWN[..]).prop_map(str::to_owned), 1 => "\\PC{0,60}"]
}

fn action() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&Action::ALL[..]).prop_map(Action::as_str)
}

proptest! {
    #[test]
    fn any_tags_and_data_are_an_order_or_a_fault(
        action in action(),
        tags in prop::collection::vec((name(), value()), 0..8),
        data in prop_oneof![Just("{}".to_owned()), "\\PC{0,40}"],
        signs in any::<bool>(),
        deployed in any::<bool>(),
    ) {
        let mut all = vec![("Action", action)];
        all.extend(tags.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let dialect = if deployed { Dialect::Deployed } else { Dialect::Spec };
        let message = IncomingMessage { signed: signs, ..message(&all, &data) };
        match Order::read(&message, &Topics::default(), dialect) {
            Ok(order) => prop_assert_ne!(order, Order::Unknown),
            Err(fault) => {
                let text = result::write_error_result(&fault.to_string());
                let read = MessageResult::read(text.as_bytes()).expect("a result");
                prop_assert_eq!(read.error, Some(fault.to_string()));
            }
        }
    }

    #[test]
    fn a_dry_run_orders_what_an_item_with_the_same_tags_does(
        action in action(),
        tags in prop::collection::vec((name(), value()), 0..8),
        data in prop_oneof![Just("{}".to_owned()), "\\PC{0,40}"],
    ) {
        let mut all = vec![("Action", action)];
        all.extend(tags.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let target = Some(process().0);
        let bytes = signed(&UnsignedItem { target, anchor: None, tags: &all, data: data.as_bytes() });
        let item = Item::read(&bytes).expect("an item");
        let posted = IncomingMessage::of(&item).expect("a message");
        let tags: Vec<_> = all
            .iter()
            .map(|(name, value)| serde_json::json!({"name": name, "value": value}))
            .collect();
        let body = serde_json::json!({
            "Id": posted.id, "Owner": posted.from, "Data": data, "Tags": tags, "Target": PROCESS,
        });
        let body = body.to_string();
        let json = read_dry_run(body.as_bytes()).expect("JSON");
        let dry = IncomingMessage::dry_run(&json, process()).expect("a message");
        prop_assert_eq!(IncomingMessage { signed: true, ..dry }, posted);
    }

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok(json) = read_dry_run(&bytes) {
            let _ = IncomingMessage::dry_run(&json, process());
        }
        if let Ok(item) = Item::read(&bytes) {
            let _ = IncomingMessage::of(&item);
        }
        let _ = MessageResult::read(&bytes);
        let _ = ResultPage::read(&bytes);
    }

    #[test]
    fn no_text_makes_a_reader_panic(text in any::<String>()) {
        let _ = Paging::read(&text);
        let _ = (read_process(&text), read_assign(&text));
        let _ = (ResultCursor::read(&text), read_price(&text), read_sum(&text));
        let _ = record::read_record::<Vec<AgentRecord<'_>>>(&text);
        let _ = record::read_record::<TaskRecord<'_>>(&text);
        let _ = record::read_record::<TaskResult<'_>>(&text);
        let _ = record::read_record::<TaskQuery<'_>>(&text);
    }

    #[test]
    fn a_record_with_any_change_is_read_or_not(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut bytes = records::agent().write().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if let Ok(text) = std::str::from_utf8(&bytes) {
            let _ = record::read_record::<AgentRecord<'_>>(text);
        }
    }

    #[test]
    fn a_task_that_is_written_is_read(
        texts in prop::collection::vec(any::<String>(), 5),
        agent in prop::option::of(any::<String>()),
        reward in 1..=1_000_000_000_i64,
        pick in prop::sample::select(&Pick::ALL[..]),
        payload in prop::option::of(any::<String>()),
        numbers in (any::<i64>(), any::<u64>()),
    ) {
        let payload = payload.map(|text| serde_json::to_string(&text).expect("JSON"));
        let task = TaskRecord {
            id: texts[0].as_str().into(),
            agent_id: agent.map(Into::into),
            requester: texts[1].as_str().into(),
            reward: credits(reward),
            strategy: pick,
            payload: payload.as_deref(),
            timestamp: Timestamp(numbers.0),
            block: numbers.1,
            topic: texts[2].as_str().into(),
            context_id: texts[3].as_str().into(),
            requester_id: Some(texts[4].as_str().into()),
        };
        let text = task.write();
        prop_assert!(ijson::read(text.as_bytes()).is_ok());
        prop_assert_eq!(record::read_record::<TaskRecord<'_>>(&text).expect("a task"), task);
    }

    #[test]
    fn a_message_that_is_written_is_read(to in any::<String>(), agent in any::<String>(), n in any::<u64>()) {
        let sent = OutgoingMessage::task_declined(&to, &agent, &agent);
        let text = result::write_result(&[sent.write(n), OutgoingMessage::registered(&to, &agent).write(n)]);
        let read = MessageResult::read(text.as_bytes()).expect("a result");
        prop_assert_eq!(&read.messages[0].target, &to);
        prop_assert_eq!(read.messages[0].tag("Task-Id"), Some(agent.as_str()));
        let number = n.to_string();
        prop_assert_eq!(read.messages[1].tag("Reference"), Some(number.as_str()));
    }

    #[test]
    fn a_cursor_that_is_written_is_read(at in any::<i64>(), ordinate in any::<u64>()) {
        let cursor = ResultCursor { at: Timestamp(at), ordinate };
        prop_assert_eq!(ResultCursor::read(&cursor.write()), Some(cursor));
    }

    #[test]
    fn a_price_that_is_written_is_read(whole in 1..=1_000_000_000_i64) {
        prop_assert_eq!(read_price(&format_price(credits(whole))), Some(credits(whole)));
    }
}
