//! Tests of writing and reading results and pages.

use rialto_core::time::Timestamp;

use super::*;
use crate::clara::wire::result::{self, MessageResult, ResultPage};
use crate::clara::{OutgoingMessage, ResultCursor};

#[test]
fn a_result_is_written_as_printed() {
    let message = OutgoingMessage::registered(ALICE, "A1").write(7);
    let printed = format!(
        r#"{{"Messages":[{message}],"Assignments":[],"Spawns":[],"Output":{{"data":"","prompt":"","print":false}},"GasUsed":0}}"#
    );
    assert_eq!(result::write_result(&[&message]), printed);
    let none: [&str; 0] = [];
    assert!(result::write_result(&none).starts_with(r#"{"Messages":[],"#));
    let text = OrderError::NoAgents.to_string();
    assert_eq!(
        result::write_error_result(&text),
        r#"{"Error":"No agents to choose from","Messages":[],"Assignments":[],"Spawns":[],"GasUsed":0}"#
    );
}

#[test]
fn a_client_reads_what_was_sent() {
    let messages = [
        OutgoingMessage::registered(ALICE, "A \"1\"\n").write(7),
        OutgoingMessage::task_declined(BOB, TASK, "A1").write(8),
    ];
    let text = result::write_result(&messages);
    let read = MessageResult::read(text.as_bytes()).expect("a result");
    assert_eq!(read.error, None);
    let [first, second] = &read.messages[..] else { panic!("{read:?}") };
    assert_eq!((first.target.as_str(), first.tag("Action")), (ALICE, Some("Registered")));
    assert_eq!(first.data.as_deref(), Some("Agent A \"1\"\n registered in Market"));
    assert_eq!((first.tag("Reference"), first.anchor.len()), (Some("7"), 32));
    assert_eq!((second.tag("Task-Id"), &second.data), (Some(TASK), &None));
    let read = MessageResult::read(result::write_error_result("no").as_bytes()).expect("a result");
    assert_eq!(read, MessageResult { messages: Vec::new(), error: Some("no".to_owned()) });
}

#[test]
fn a_page_has_a_cursor_for_every_result() {
    let none: [&str; 0] = [];
    let node = result::write_result(&none);
    let cursor = ResultCursor { at: Timestamp(5), ordinate: 9 };
    let text = result::write_page(&[(&node, cursor)], true);
    let printed = format!(
        r#"{{"pageInfo":{{"hasNextPage":true}},"edges":[{{"node":{node},"cursor":"{}"}}]}}"#,
        cursor.write()
    );
    assert_eq!(text, printed);
    let read = ResultPage::read(text.as_bytes()).expect("a page");
    assert!(read.page_info.has_next_page);
    assert_eq!(read.edges[0].node, MessageResult::default());
    assert_eq!(ResultCursor::read(&read.edges[0].cursor), Some(cursor));
    let empty: [(&str, ResultCursor); 0] = [];
    assert_eq!(
        result::write_page(&empty, false),
        r#"{"pageInfo":{"hasNextPage":false},"edges":[]}"#
    );
}
