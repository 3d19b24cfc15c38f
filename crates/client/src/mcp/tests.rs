//! Messages, tools and headers, without a server.

use super::message::{self, Incoming, Request, encode_header};
use super::tool::{Tool, ToolResult};

#[test]
fn a_message_is_one_line_and_keeps_digits() {
    let params = "{\"a\":\n1.50,\r\n\"b\":\"x\\ny\"}";
    let line = Request::new("tools/call", params).write(7);
    let expected =
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a": 1.50,  "b":"x\ny"}}"#;
    assert_eq!(line, expected);
    let read = Incoming::read(r#"{"jsonrpc":"2.0","id":7,"result":{"n":1.50, "m":1e400}}"#);
    match read {
        Some(Incoming::Response { id: Some(7), result: Ok(result) }) => {
            assert_eq!(result, r#"{"n":1.50, "m":1e400}"#);
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_a_server_sends_is_told_apart() {
    let read = |text: &str| Incoming::read(text).expect("a message");
    let Incoming::Response { id, result } =
        read(r#"{"id":null,"error":{"code":-32602,"message":"no","data":{"a":1.50}}}"#)
    else {
        panic!("a response")
    };
    let error = result.expect_err("an error");
    assert_eq!((id, error.code, error.message.as_str()), (None, -32602, "no"));
    assert_eq!(error.data.as_deref(), Some(r#"{"a":1.50}"#));
    assert!(matches!(read(r#"{"id":"a","method":"roots/list"}"#),
        Incoming::Request { id, method } if id == r#""a""# && method == "roots/list"));
    assert!(matches!(read(r#"{"method":"notifications/x"}"#),
        Incoming::Notification { params, .. } if params == "{}"));
    for text in ["", "log line", "{}", "[]", r#"{"id":1}"#] {
        assert!(Incoming::read(text).is_none(), "{text}");
    }
}

#[test]
fn a_request_of_the_server_is_refused_except_ping() {
    assert_eq!(message::response_to("1", "ping"), r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
    let refused = message::response_to("\"a\"", "sampling/createMessage");
    assert!(
        refused.starts_with(r#"{"jsonrpc":"2.0","id":"a","error":{"code":-32601,"#),
        "{refused}"
    );
}

#[test]
fn header_values_are_encoded_where_they_are_not_plain_text() {
    for (value, encoded) in [
        ("us-west1", "us-west1"),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ] {
        assert_eq!(encode_header(value), encoded, "{value}");
    }
}

fn tool(properties: &str) -> Result<Tool, String> {
    Tool::read(&format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","properties":{properties}}}}}"#
    ))
}

#[test]
fn annotated_arguments_become_headers() {
    let tool = tool(
        r#"{"region":{"type":"string","x-mcp-header":"Region"},
        "in":{"type":"object","properties":{"n":{"type":"integer","x-mcp-header":"Num"}}},
        "x-mcp-header":{"type":"string"}}"#,
    )
    .expect("a tool");
    let headers = |arguments| tool.headers_for(arguments);
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    assert_eq!(
        headers(r#"{"region":"eu","in":{"n":42}}"#),
        [pair("Mcp-Param-Num", "42"), pair("Mcp-Param-Region", "eu")]
    );
    assert_eq!(headers(r#"{"region":null,"in":{}}"#), []);
    assert_eq!(headers("{}"), []);
}

#[test]
fn a_tool_with_an_invalid_annotation_is_left_out() {
    for properties in [
        r#"{"a":{"type":"number","x-mcp-header":"A"}}"#,
        r#"{"a":{"type":"string","x-mcp-header":""}}"#,
        r#"{"a":{"type":"string","x-mcp-header":"a b"}}"#,
        r#"{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}"#,
        r#"{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}"#,
        r#"{"a":{"anyOf":[{"type":"string","x-mcp-header":"A"}]}}"#,
    ] {
        let why = tool(properties).expect_err(properties);
        assert!(why.contains("tool t has an invalid x-mcp-header"), "{why}");
    }
    assert!(tool(r#"{"a":{"default":{"x-mcp-header":1}}}"#).is_ok());
}

#[test]
fn a_tool_is_read_with_its_hints_and_its_schemas_as_they_are() {
    let tool = Tool::read(
        r#"{"name":"t","inputSchema":{ "type":"object" },"annotations":{"title":"T","readOnlyHint":true}}"#,
    )
    .expect("a tool");
    assert_eq!(
        (tool.input_schema.as_str(), tool.title.as_deref()),
        (r#"{ "type":"object" }"#, Some("T"))
    );
    assert!(tool.hints.is_read_only() && tool.hints.is_repeatable());
    assert_eq!(tool.hints.destructive, None);
    assert!(Tool::read(r#"{"title":"no name"}"#).is_err());
}

#[test]
fn a_result_keeps_its_blocks_and_its_digits() {
    let text = r#"{"content":[{"type":"text","text":"a"}, {"type":"image","data":"","n":1.50}],"structuredContent":{"n":1.50}}"#;
    let result = ToolResult::read(text).expect("a result");
    assert_eq!(result.structured.as_deref(), Some(r#"{"n":1.50}"#));
    assert!(result.content.raw.contains(r#""n":1.50"#) && !result.content.only_text);
    assert_eq!(result.content.text(), "a");
    assert!(ToolResult::read(r#"{"content":5}"#).is_err());
    assert!(ToolResult::read("{}").expect("a result").content.only_text);
}
