//! The rules of calls, without a server.

use std::time::Duration;

use rialto_core::money::Credits;

use super::journal::{CallJournal, CallRecord};
use super::outcome;
use super::skill::{TEXTUAL, find_obstacle, tool_skill};
use crate::agent::dialogue::Dialogue;
use crate::agent::job::{Job, Outcome};
use crate::mcp::{ContentBlocks, McpError, ServerError, Tool, ToolHints, ToolResult};

fn job(id: &str, epoch: u32) -> Job {
    Job {
        id: id.to_owned(),
        epoch,
        skill: "t".to_owned(),
        input: "{}".to_owned(),
        requester: "r".to_owned(),
        budget: Credits::ZERO,
        deadline: None,
        time_limit: Duration::MAX,
        meta: None,
        dialogue: Dialogue::default(),
    }
}

fn tool(output: Option<&str>) -> Tool {
    let output = output.map(|schema| format!(r#","outputSchema":{schema}"#)).unwrap_or_default();
    Tool::read(&format!(r#"{{"name":"t","inputSchema":{{"type":"object"}}{output}}}"#))
        .expect("a tool")
}

#[test]
fn a_call_is_known_after_a_restart_whichever_assignment_asks() {
    let dir = tempfile::tempdir().expect("a directory");
    let open = || CallJournal::open_file(dir.path().join("calls")).expect("opened");
    let outcome = Outcome::Done(r#"{"n":1.50}"#.to_owned());
    let journal = open();
    journal.begin(&job("begun", 1), 1).expect("written");
    journal.begin(&job("done", 1), 1).expect("written");
    journal.finish(&job("done", 1), 1, &outcome);
    journal.begin(&job("back", 1), 1).expect("written");
    journal.forget(&job("back", 1));
    drop(journal);
    let journal = open();
    assert_eq!(journal.find(&job("begun", 2)), CallRecord { calls: 1, outcome: None });
    assert_eq!(journal.find(&job("done", 2)), CallRecord { calls: 1, outcome: Some(outcome) });
    assert_eq!(journal.find(&job("back", 2)), CallRecord::default());
    // Peers choose ids, so another peer's job is another one.
    let peer = Job { requester: "other".to_owned(), ..job("begun", 0) };
    assert_eq!(journal.find(&peer), CallRecord::default());
}

#[test]
fn errors_of_a_server_have_their_outcomes() {
    let server =
        |code| McpError::Server(ServerError { code, message: "why".to_owned(), data: None });
    for (error, expected) in [
        (server(-32602), Outcome::InvalidInput("why".to_owned())),
        (server(-32603), Outcome::Failed("why (-32603)".to_owned())),
        (McpError::Lost(String::new()), Outcome::Failed(super::OUTCOME_UNKNOWN.to_owned())),
    ] {
        assert_eq!(outcome::of_error(error), expected);
    }
    for error in
        [McpError::NotSent(String::new()), McpError::Refused(String::new()), McpError::SessionOver]
    {
        assert!(matches!(outcome::of_error(error), Outcome::Declined(_)));
    }
    assert!(matches!(outcome::of_error(McpError::InputRequired), Outcome::Failed(_)));
}

#[test]
fn a_result_is_structured_only_where_the_tool_has_an_output_schema() {
    let result = ToolResult {
        structured: Some(r#"{"n":1.50}"#.to_owned()),
        content: ContentBlocks {
            raw: "[]".to_owned(),
            texts: vec!["a".to_owned(), "b".to_owned()],
            only_text: true,
        },
        ..ToolResult::default()
    };
    let done = |text: &str| Outcome::Done(text.to_owned());
    let schema = r#"{"type":"object"}"#;
    assert_eq!(outcome::of_result(&tool(Some(schema)), result.clone()), done(r#"{"n":1.50}"#));
    assert_eq!(outcome::of_result(&tool(None), result.clone()), done(r#"{"text":"a\nb"}"#));
    let list = ToolResult { structured: Some("[1.50]".to_owned()), ..result.clone() };
    assert_eq!(outcome::of_result(&tool(Some(schema)), list), done(r#"{"result":[1.50]}"#));
    let failed = ToolResult { is_error: true, ..result };
    assert_eq!(outcome::of_result(&tool(None), failed), Outcome::Failed("a\nb".to_owned()));
    let silent = ToolResult { is_error: true, ..ToolResult::default() };
    let Outcome::Failed(why) = outcome::of_result(&tool(None), silent) else { panic!("failed") };
    assert!(!why.is_empty());
}

#[test]
fn a_skill_states_the_schemas_of_its_tool() {
    let skill = |output| tool_skill(&tool(output), "0.05", Duration::MAX).expect("a skill");
    let text = |output| skill(output).output_schema.expect("a schema").text().to_owned();
    assert_eq!(text(None), TEXTUAL);
    assert_eq!(text(Some(r#"{ "type":"object" }"#)), r#"{ "type":"object" }"#);
    let wrapped =
        r#"{"type":"object","properties":{"result":{"type":"array"}},"required":["result"]}"#;
    assert_eq!(text(Some(r#"{"type":"array"}"#)), wrapped);
    assert!(skill(None).shows_schemas);
}

#[test]
fn tools_that_no_hub_takes_are_found() {
    let sellable = tool(None);
    assert_eq!(find_obstacle(&sellable), None);
    for (tool, why) in [
        (Tool { name: "x".repeat(129), ..sellable.clone() }, "1 to 128 characters"),
        (Tool { name: "a\nb".to_owned(), ..sellable.clone() }, "1 to 128 characters"),
        (
            Tool { input_schema: r#"{"type":"nothing"}"#.to_owned(), ..sellable.clone() },
            "its input schema",
        ),
        (
            Tool {
                output_schema: Some(format!(r#"{{"title":"{}"}}"#, "x".repeat(17_000))),
                ..sellable.clone()
            },
            "longer than 16384 bytes",
        ),
    ] {
        let found = find_obstacle(&tool).expect(why);
        assert!(found.contains(why), "{found}");
    }
}

#[test]
fn only_what_changes_nothing_or_can_be_repeated_is_repeated() {
    let hints = |read_only, idempotent| ToolHints { read_only, idempotent, ..ToolHints::default() };
    for (given, expected) in [
        (hints(Some(true), None), true),
        (hints(None, Some(true)), true),
        (hints(Some(false), Some(false)), false),
        (hints(None, None), false),
    ] {
        assert_eq!(given.is_repeatable(), expected, "{given:?}");
    }
}
