use http::HeaderValue;

use super::*;

fn read_with(headers: &[(&'static str, &str)], body: &str) -> Result<Message, MessageError> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.insert(*name, HeaderValue::from_str(value).unwrap());
    }
    Message::read(body.as_bytes(), &map, Outgoing::new().0)
}

fn request(headers: &[(&'static str, &str)], body: &str) -> ClientRequest {
    match read_with(headers, body) {
        Ok(Message::Request(request)) => *request,
        other => panic!("{body}: {other:?}"),
    }
}

fn refused(headers: &[(&'static str, &str)], body: &str) -> (u16, i64, String) {
    let refused = read_with(headers, body).expect_err(body);
    (refused.status.as_u16(), refused.error.code, refused.error.message)
}

const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

fn new_era(method: &str, params: &str) -> String {
    let params = if params.is_empty() { META.to_owned() } else { format!("{params},{META}") };
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{{params}}}}}"#)
}

#[test]
fn a_body_is_one_message() {
    for (body, code) in [
        ("{nope", PARSE_ERROR),
        ("", PARSE_ERROR),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"ping"}"#, PARSE_ERROR),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, INVALID_REQUEST),
        (r#"{"id":1,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, INVALID_REQUEST),
        (r#"{"jsonrpc":"2.0","id":1}"#, INVALID_REQUEST),
    ] {
        let refused = read_with(&[], body).expect_err(body);
        assert_eq!((refused.error.code, refused.id), (code, None), "{body}");
        assert_eq!(refused.status, 400, "{body}");
    }
    let note = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert!(matches!(read_with(&[], note), Ok(Message::Notification)));
}

#[test]
fn an_id_is_kept_digit_by_digit() {
    for id in ["1", "-7", "12345678901234567890123", r#""a\u0062""#] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
        assert_eq!(request(&[], &body).id, id);
    }
}

#[test]
fn the_version_in_meta_a_new_version_in_the_header_or_discover_mean_the_new_era() {
    let old = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#;
    assert_eq!(request(&[], old).era, Era::Old);
    assert_eq!(request(&[(VERSION_HEADER, "2025-11-25")], old).era, Era::Old);
    let headers = [(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "tools/list")];
    assert_eq!(request(&headers, &new_era("tools/list", "")).era, Era::New);
    // Each of the three alone is enough, and then the rest of the new era is missing.
    assert_eq!(refused(&headers, old).1, -32602);
    assert_eq!(refused(&[], &new_era("tools/list", "")).1, HEADER_MISMATCH);
    let discover = r#"{"jsonrpc":"2.0","id":1,"method":"server/discover"}"#;
    let (status, code, message) = refused(&[], discover);
    assert_eq!((status, code), (400, -32602));
    assert!(message.contains("_meta lacks io.modelcontextprotocol/protocolVersion"), "{message}");
}

#[test]
fn a_version_that_is_not_offered_is_refused_in_the_form_of_its_era() {
    let old = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for version in ["2024-11-05", "draft", "2025-11-25x"] {
        let (status, code, _) = refused(&[(VERSION_HEADER, version)], old);
        assert_eq!((status, code), (400, INVALID_REQUEST), "{version}");
    }
    let body = new_era("tools/list", "").replace("2026-07-28", "2027-01-01");
    let headers = [(VERSION_HEADER, "2027-01-01"), (METHOD_HEADER, "tools/list")];
    let refusal = read_with(&headers, &body).expect_err("2027");
    assert_eq!((refusal.status.as_u16(), refusal.error.code), (400, -32022));
    let data = refusal.error.data.unwrap();
    assert_eq!(
        data,
        r#"{"requested":"2027-01-01","supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26"]}"#
    );
    // A version of the old era cannot be stated in `_meta`.
    let body = new_era("tools/list", "").replace("2026-07-28", "2025-11-25");
    let headers = [(VERSION_HEADER, "2025-11-25"), (METHOD_HEADER, "tools/list")];
    assert_eq!(refused(&headers, &body).1, -32022);
}

#[test]
fn headers_repeat_the_body() {
    let body = new_era("tools/call", r#""name":"whoami","arguments":{}"#);
    let headers = |version, method, name| {
        [(VERSION_HEADER, version), (METHOD_HEADER, method), (NAME_HEADER, name)]
    };
    let good = headers("2026-07-28", "tools/call", "whoami");
    assert_eq!(request(&good, &body).method, Method::CallTool);
    let spaced = headers(" 2026-07-28 ", "tools/call", "=?base64?d2hvYW1p?=");
    assert_eq!(request(&spaced, &body).method, Method::CallTool);
    for (bad, message) in [
        (
            headers("2025-11-25", "tools/call", "whoami"),
            "MCP-Protocol-Version is '2025-11-25', the body says '2026-07-28'",
        ),
        (
            headers("2026-07-28", "tools/list", "whoami"),
            "Mcp-Method is 'tools/list', the body says 'tools/call'",
        ),
        (headers("2026-07-28", "tools/call", "hire"), "Mcp-Name is 'hire', the body says 'whoami'"),
        (
            headers("2026-07-28", "tools/call", "WHOAMI"),
            "Mcp-Name is 'WHOAMI', the body says 'whoami'",
        ),
        (headers("2026-07-28", "tools/call", "=?base64?!?="), "Mcp-Name is missing or unreadable"),
    ] {
        let (status, code, text) = refused(&bad, &body);
        assert_eq!((status, code), (400, HEADER_MISMATCH));
        assert!(text.contains(message), "{text}");
    }
    assert_eq!(refused(&good[..2], &body).1, HEADER_MISMATCH);
    assert_eq!(refused(&good[..1], &body).1, HEADER_MISMATCH);
}

#[test]
fn methods_exist_in_their_era() {
    for (method, headers) in [
        ("initialize", [(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "initialize")]),
        ("ping", [(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "ping")]),
        ("nope", [(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "nope")]),
    ] {
        let (status, code, text) = refused(&headers, &new_era(method, ""));
        assert_eq!((status, code, text), (404, -32601, format!("Method not found: {method}")));
    }
    for method in ["nope", "tasks/get", "subscriptions/listen", "resources/subscribe"] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}"}}"#);
        assert_eq!(refused(&[], &body).0, 200, "{method}");
        assert_eq!(refused(&[], &body).1, -32601, "{method}");
    }
}

#[test]
fn capabilities_are_those_of_this_request() {
    let with = |capabilities: &str| {
        let body = new_era("tools/list", "")
            .replace("Capabilities\":{}", &format!("Capabilities\":{capabilities}"));
        request(&[(VERSION_HEADER, "2026-07-28"), (METHOD_HEADER, "tools/list")], &body).client
    };
    let none = ClientCapabilities::default();
    assert_eq!(with("{}"), none);
    assert_eq!(with(r#"{"elicitation":{"url":{}}}"#), none);
    for form in [r#"{"elicitation":{}}"#, r#"{"elicitation":{"form":{},"url":{}}}"#] {
        assert_eq!(with(form), ClientCapabilities { elicitation: true, tasks: false });
    }
    let tasks = r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#;
    assert_eq!(with(tasks), ClientCapabilities { elicitation: false, tasks: true });
    // The old era has neither over HTTP.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{"progressToken":"t"}}}"#;
    let request = request(&[], body);
    assert_eq!(request.client, none);
    assert!(request.progress.is_wanted());
}
