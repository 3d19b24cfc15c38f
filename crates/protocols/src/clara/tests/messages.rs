//! Tests of reading items and dry-runs.

use super::*;
use crate::clara::wire::message::{read_assign, read_dry_run, read_process};
use crate::clara::wire::result;
use crate::clara::{BODY_MAX, Failure, Processes};
use crate::kit::ans104::{BadItem, Item, ItemSignatureError, SignatureType, UnsignedItem};
use crate::kit::ed25519::SecretKey;

/// An item signed with a throw-away key.
pub fn signed(draft: &UnsignedItem<'_>) -> Vec<u8> {
    let key = SecretKey::from_seed(&[7; 32]);
    let owner = *key.public().as_bytes();
    let signature = key.sign(&draft.deep_hash(SignatureType::Ed25519, &owner));
    draft.with_signature(SignatureType::Ed25519, &owner, &signature)
}

fn dry(body: &str, then: impl FnOnce(IncomingMessage<'_>)) -> Result<(), Failure> {
    let json = read_dry_run(body.as_bytes())?;
    IncomingMessage::dry_run(&json, process()).map(then)
}

/// The error of a dry-run that is not accepted.
fn refused(body: &str) -> (u16, String) {
    let failure = dry(body, |message| panic!("{message:?}")).expect_err(body);
    (failure.status, failure.text.into_owned())
}

#[test]
fn an_item_is_from_its_signer_whatever_its_tags_say() {
    let tags = [
        ("From", "x"),
        ("Action", "List-Agents"),
        ("Owner", "y"),
        ("From-Process", "z"),
        ("Action", "Register-Task"),
        ("action", "lower"),
        ("from", "kept"),
    ];
    let draft =
        UnsignedItem {
            target: Some(process().0), tags: &tags, data: "é".as_bytes(), anchor: None
        };
    let bytes = signed(&draft);
    let item = Item::read(&bytes).expect("an item");
    let message = IncomingMessage::of(&item).expect("a message");
    assert_eq!((&*message.id, &*message.from), (&*item.id().to_string(), &*item.signer_address()));
    assert!(message.signed);
    assert_eq!((message.target, message.data), (process(), "é"));
    for name in ["From", "Owner", "From-Process"] {
        assert_eq!(message.tag(name), None);
    }
    assert_eq!(
        (message.tag("Action"), message.tag("action")),
        (Some("List-Agents"), Some("lower"))
    );
    assert_eq!(message.tag("from"), Some("kept"));
}

#[test]
fn items_that_are_no_messages_are_not_taken() {
    let with = |draft: &UnsignedItem<'_>| {
        let bytes = signed(draft);
        let item = Item::read(&bytes).expect("an item");
        IncomingMessage::of(&item).map(|message| message.signed)
    };
    let target = Some(process().0);
    let draft = UnsignedItem { target, anchor: None, tags: &[], data: b"" };
    assert_eq!(with(&draft), Ok(true));
    assert_eq!(with(&UnsignedItem { target: None, ..draft }), Err(Failure::unknown_process()));
    assert_eq!(with(&UnsignedItem { data: b"\xff", ..draft }), Err(Failure::not_text()));
    let tags = [("Type", "Process")];
    let spawn = with(&UnsignedItem { target: None, tags: &tags, ..draft }).expect_err("a spawn");
    assert_eq!((spawn.status, &*spawn.body()), (400, r#"{"error":"spawn is not supported"}"#));
}

#[test]
fn a_dry_run_trusts_the_named_sender_and_needs_no_signature() {
    let body = format!(
        r#"{{"Id":"1234","Target":"{PROCESS}","Owner":"{BOB}","Anchor":"0","Data":"\u0031",
            "From":"{ALICE}","Tags":[{{"name":"From","value":"{ALICE}"}},
            {{"name":"Action","value":"Balance"}},{{"name":"Action","value":"x"}}]}}"#
    );
    dry(&body, |message| {
        assert_eq!((&*message.id, &*message.from, message.signed), ("1234", BOB, false));
        assert_eq!((message.target, message.data), (process(), "1"));
        assert_eq!((message.tag("From"), message.tag("Action")), (None, Some("Balance")));
    })
    .expect("a message");
    dry("{}", |message| {
        assert_eq!((&*message.id, &*message.from, message.data), ("", "", ""));
        assert_eq!((message.target, message.tags.len()), (process(), 0));
    })
    .expect("a message");
}

#[test]
fn a_dry_run_is_bounded_and_typed() {
    let long = "x".repeat(129);
    for (body, text) in [
        ("{".to_owned(), "body is not valid JSON: unexpected end at byte 1"),
        ("[]".to_owned(), "body must be a JSON object"),
        (r#"{"Data":7}"#.to_owned(), "Data must be a string"),
        (r#"{"Tags":{}}"#.to_owned(), "Tags must be an array"),
        (r#"{"Tags":[7]}"#.to_owned(), "0 must be an object"),
        (r#"{"Tags":[{"name":"a"}]}"#.to_owned(), "value is required"),
        (r#"{"Tags":[{"name":"a","value":1}]}"#.to_owned(), "value must be a string"),
        (format!(r#"{{"Owner":"{long}"}}"#), "Owner has more than 128 characters"),
        (format!(r#"{{"Id":"{long}"}}"#), "Id has more than 128 characters"),
    ] {
        assert_eq!(refused(&body), (400, text.to_owned()));
    }
    let tags =
        |bytes: usize| format!(r#"{{"Tags":[{{"name":"","value":"{}"}}]}}"#, "x".repeat(bytes));
    assert!(dry(&tags(4_096), |_| {}).is_ok());
    assert_eq!(refused(&tags(4_097)), (400, "Tags have more than 4096 bytes".to_owned()));
    let many = vec![r#"{"name":"","value":""}"#; 2_049].join(",");
    assert_eq!(refused(&format!(r#"{{"Tags":[{many}]}}"#)).1, "Tags has more than 2048 items");
    assert_eq!(refused(&format!(r#"{{"Target":"{ALICE}"}}"#)).0, 404);
    assert_eq!(refused(r#"{"Target":"x"}"#).0, 404);
    assert_eq!(refused(&" ".repeat(BODY_MAX + 1)).0, 413);
}

#[test]
fn the_market_answers_as_its_own_processes_only() {
    let other = ItemId::read(ALICE).expect("an id");
    let one = Processes { spec: process(), deployed: None };
    assert_eq!((one.dialect(process()), one.dialect(other)), (Some(Dialect::Spec), None));
    let two = Processes { deployed: Some(other), ..one };
    assert_eq!(two.dialect(other), Some(Dialect::Deployed));
    let same = Processes { deployed: Some(process()), ..one };
    assert_eq!(same.dialect(process()), Some(Dialect::Spec));
}

#[test]
fn queries_name_a_process_and_perhaps_a_message() {
    assert_eq!(read_process(&format!("process-id={PROCESS}")), Ok(process()));
    assert_eq!(read_process("").expect_err("none").status, 400);
    assert_eq!(read_process("process-id=x"), Err(Failure::unknown_process()));
    assert_eq!(read_assign(""), Ok(None));
    let asked = read_assign(&format!("process-id={PROCESS}&assign={TASK}&base-layer&exclude=Data"));
    let asked = asked.expect("a query").expect("a message");
    assert_eq!((asked.process, asked.message.to_string()), (process(), TASK.to_owned()));
    let unknown = read_assign(&format!("process-id={PROCESS}&assign=x"));
    assert_eq!(unknown, Err(Failure::unknown_message()));
}

#[test]
fn failures_have_the_statuses_of_the_book() {
    for (failure, status, retryable) in [
        (Failure::from(BadItem::TooShort), 400, false),
        (Failure::from(BadItem::UnknownKind(9)), 400, false),
        (Failure::from(BadItem::TooLong), 413, false),
        (Failure::from(ItemSignatureError::BadSignature), 401, false),
        (Failure::from(ItemSignatureError::Malleable), 401, false),
        (Failure::unknown_process(), 404, false),
        (Failure::unknown_message(), 404, false),
        (Failure::not_found(), 404, false),
        (Failure::method_not_allowed(), 405, false),
        (Failure::encoded_body(), 415, false),
        (Failure::rate_limited("slower", 7), 429, true),
        (Failure::internal("e1"), 500, false),
        (Failure::unavailable("no store"), 503, true),
        (Failure::disk_full(), 507, true),
    ] {
        assert_eq!((failure.status, failure.is_retryable()), (status, retryable), "{failure:?}");
    }
    assert_eq!(Failure::rate_limited("slower", 7).retry_after_seconds, Some(7));
    assert_eq!(Failure::bad_request("a \"b\"").body(), r#"{"error":"a \"b\""}"#);
}

#[test]
fn short_answers_are_those_of_the_book() {
    let id = ItemId::read(TASK).expect("an id");
    let taken = format!(r#"{{"message":"Processing DataItem","id":"{TASK}"}}"#);
    assert_eq!(result::message_accepted_body(TASK), taken);
    let read: result::AcceptedMessage = serde_json::from_str(&taken).expect("JSON");
    assert_eq!(read.id, TASK);
    let assigned = format!(r#"{{"message":"Processing Assignment","id":"{TASK}"}}"#);
    assert_eq!(result::assignment_accepted_body(id), assigned);
    assert_eq!(result::monitor_body(), r#"{"message":"ok"}"#);
    let overview = format!(r#"{{"process":"{PROCESS}","mu":"/clara/mu","cu":"/clara/cu"}}"#);
    assert_eq!(result::overview_body(process()), overview);
}
