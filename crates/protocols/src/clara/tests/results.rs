//! Tests of writing and reading results and pages.

use super::*;
use crate::clara::outgoing::Outgoing;
use crate::clara::paging::Cursor;
use crate::clara::result::{self, Evaluated, Page};
use rialto_core::time::Timestamp;

#[test]
fn a_result_is_written_as_printed() {
    let message = Outgoing::registered(ALICE, "A1").write(7);
    let printed = format!(
        r#"{{"Messages":[{message}],"Assignments":[],"Spawns":[],"Output":{{"data":"","prompt":"","print":false}},"GasUsed":0}}"#
    );
    assert_eq!(result::sent(&[&message]), printed);
    let none: [&str; 0] = [];
    assert!(result::sent(&none).starts_with(r#"{"Messages":[],"#));
    let text = Fault::NoAgents.to_string();
    assert_eq!(
        result::error(&text),
        r#"{"Error":"No agents to choose from","Messages":[],"Assignments":[],"Spawns":[],"GasUsed":0}"#
    );
}

#[test]
fn a_client_reads_what_was_sent() {
    let messages = [
        Outgoing::registered(ALICE, "A \"1\"\n").write(7),
        Outgoing::task_declined(BOB, TASK, "A1").write(8),
    ];
    let text = result::sent(&messages);
    let read = Evaluated::read(text.as_bytes()).expect("a result");
    assert_eq!(read.error, None);
    let [first, second] = &read.messages[..] else { panic!("{read:?}") };
    assert_eq!((first.target.as_str(), first.tag("Action")), (ALICE, Some("Registered")));
    assert_eq!(first.data.as_deref(), Some("Agent A \"1\"\n registered in Market"));
    assert_eq!((first.tag("Reference"), first.anchor.len()), (Some("7"), 32));
    assert_eq!((second.tag("Task-Id"), &second.data), (Some(TASK), &None));
    let read = Evaluated::read(result::error("no").as_bytes()).expect("a result");
    assert_eq!(read, Evaluated { messages: Vec::new(), error: Some("no".to_owned()) });
}

#[test]
fn a_page_has_a_cursor_for_every_result() {
    let none: [&str; 0] = [];
    let node = result::sent(&none);
    let cursor = Cursor { at: Timestamp(5), place: 9 };
    let text = result::page(&[(&node, cursor)], true);
    let printed = format!(
        r#"{{"pageInfo":{{"hasNextPage":true}},"edges":[{{"node":{node},"cursor":"{}"}}]}}"#,
        cursor.write()
    );
    assert_eq!(text, printed);
    let read = Page::read(text.as_bytes()).expect("a page");
    assert!(read.page_info.has_next_page);
    assert_eq!(read.edges[0].node, Evaluated::default());
    assert_eq!(Cursor::read(&read.edges[0].cursor), Some(cursor));
    let empty: [(&str, Cursor); 0] = [];
    assert_eq!(result::page(&empty, false), r#"{"pageInfo":{"hasNextPage":false},"edges":[]}"#);
}
