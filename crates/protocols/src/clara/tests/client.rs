//! Tests with the recorded requests of the real client, in its order.

use rialto_core::time::Timestamp;
use serde_json::Value;

use super::*;
use crate::clara::wire::message::{read_assign, read_dry_run, read_process};
use crate::clara::wire::order::{DeclineTask, SendResult};
use crate::clara::wire::register::Service;
use crate::clara::wire::result::PageBound;
use crate::clara::{Failure, Paging, ResultCursor};
use crate::kit::ans104::Item;

/// The request with that number.
fn request(number: usize) -> Value {
    let file = include_str!("../fixtures/aoconnect_http.json");
    let all: Value = serde_json::from_str(file).expect("JSON");
    let requests = all["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 23);
    let request = requests[number - 1].clone();
    assert_eq!(request["n"], number);
    request
}

/// Its body; `None` where the recording has none.
fn body(number: usize) -> Option<Vec<u8>> {
    let request = request(number);
    let hex = request["body_hex"].as_str()?;
    let digit = |byte: u8| char::from(byte).to_digit(16).expect("a digit") as u8;
    Some(hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect())
}

/// Its path and its query string.
fn path(number: usize) -> (String, String) {
    let request = request(number);
    let path = request["path"].as_str().expect("a path");
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    (path.to_owned(), query.to_owned())
}

/// Reads the order of the signed item in its body.
fn ordered(number: usize, then: impl FnOnce(&IncomingMessage<'_>, Result<Order<'_>, OrderError>)) {
    let bytes = body(number).expect("a body");
    let item = Item::read(&bytes).expect("an item");
    assert_eq!(item.verify(), Ok(()), "{number}");
    let message = IncomingMessage::of(&item).expect("a message");
    assert_eq!(message.target, process(), "{number}");
    assert!([ALICE, BOB].contains(&&*message.from), "{number}");
    let order = Order::read(&message, &Topics::default(), Dialect::Spec);
    then(&message, order);
}

#[test]
fn agents_register_decline_and_deliver() {
    ordered(1, |message, order| {
        assert_eq!(message.id, "6nNtWEkuN97j10aSpM36wMBe0puNHFeR2X3Kni72f1k");
        assert_eq!(message.from, ALICE);
        let Ok(Order::RegisterAgent(agent)) = order else { panic!("{order:?}") };
        let service = Some(Service { topic: "tweet", fee: credits(20) });
        assert_eq!((agent.id, agent.service), ("AO_Agent_1", service));
        assert_eq!(agent.metadata, message.data);
    });
    ordered(5, |message, order| {
        let decline = DeclineTask {
            agent_id: "AO_Agent_1",
            task_id: "xY6GGqrkXJhG0iH7hNz0xPC-1p0cLUgqRTtQjMOzj1w",
        };
        assert_eq!(order, Ok(Order::Decline(decline)), "{:?}", message.data);
    });
    ordered(8, |message, order| {
        let result = SendResult {
            agent_id: "AO_Agent_1",
            task_id: "qeGMxFlyASvEuCSFhRjeTWEnqBg_W9vHlwguV-qG7g8",
            result: message.data,
            recipient: None,
        };
        assert_eq!(order, Ok(Order::SendResult(result)));
    });
}

#[test]
fn a_reward_of_nothing_is_a_fault_but_the_missing_protocol_comes_first() {
    ordered(13, |message, order| {
        assert_eq!(message.tag("RedStone-Agent-Reward"), Some("0"));
        assert_eq!(order, Err(OrderError::UnknownProtocol(None)));
    });
}

#[test]
fn what_the_market_does_not_know_is_a_message_all_the_same() {
    for (number, at, action) in
        [(21, "/redir", Some("Nop")), (22, "/", Some("Nop")), (23, "/nowhere", None)]
    {
        assert_eq!(path(number).0, at);
        ordered(number, |message, order| {
            assert_eq!((message.tag("Action"), order), (action, Ok(Order::Unknown)), "{number}");
        });
    }
}

#[test]
fn who_watches_a_process_signs_an_item_without_tags() {
    for number in [16, 17] {
        assert_eq!(path(number).0, format!("/monitor/{PROCESS}"));
        ordered(number, |message, order| {
            assert!(message.tags.is_empty());
            assert_eq!(order, Ok(Order::Unknown));
        });
    }
}

#[test]
fn the_board_is_asked_without_signature() {
    assert_eq!(path(3).0, "/dry-run");
    let asked = read_process(&path(3).1).expect("a process");
    let bytes = body(3).expect("a body");
    assert_eq!(bytes, request(3)["body_text"].as_str().expect("text").as_bytes());
    let json = read_dry_run(&bytes).expect("JSON");
    let message = IncomingMessage::dry_run(&json, asked).expect("a message");
    assert_eq!((&*message.from, message.data, message.signed), ("1234", "1234", false));
    let order = Order::read(&message, &Topics::default(), Dialect::Spec);
    assert_eq!(order, Ok(Order::ListAgents));
}

#[test]
fn results_are_asked_of_the_process() {
    for number in [2, 6, 9, 14, 15] {
        let (path, raw) = path(number);
        let id = path.strip_prefix("/result/").expect("a result");
        assert!(ItemId::read(id).is_some(), "{number}");
        assert_eq!(read_process(&raw), Ok(process()), "{number}");
    }
}

#[test]
fn pages_of_results_are_asked_in_three_ways() {
    let paging = |number: usize| {
        let (path, raw) = path(number);
        assert_eq!(path, format!("/results/{PROCESS}"));
        Paging::read(&raw).expect("a page")
    };
    assert_eq!(paging(10), Paging { limit: 2, ..Paging::default() });
    let cursor = ResultCursor { at: Timestamp(1_794_766_893_510), ordinate: 2 };
    let from = Some(PageBound::Cursor(cursor));
    assert_eq!(paging(11), Paging { from, ..Paging::default() });
    assert_eq!(paging(12), Paging::default());
}

#[test]
fn a_known_message_can_be_assigned() {
    let asked = read_assign(&path(18).1).expect("a query").expect("a message");
    let message = ItemId::read("xY6GGqrkXJhG0iH7hNz0xPC-1p0cLUgqRTtQjMOzj1w");
    assert_eq!((asked.process, Some(asked.message)), (process(), message));
    assert_eq!(body(18), Some(Vec::new()));
}

#[test]
fn what_is_no_message_of_the_market_is_none() {
    // The first step of a spawn asks a gateway, which the market is not.
    let bytes = body(19).expect("a body");
    let json = read_dry_run(&bytes).expect("JSON");
    let message = IncomingMessage::dry_run(&json, process()).expect("a message");
    let order = Order::read(&message, &Topics::default(), Dialect::Spec);
    assert_eq!((path(19).0.as_str(), order), ("/graphql", Ok(Order::Unknown)));
    assert_eq!(Item::read(&bytes).map_err(Failure::from).err().map(|bad| bad.status), Some(400));
    for number in [4, 7, 20] {
        assert_eq!(body(number), None, "left out on purpose");
    }
}
