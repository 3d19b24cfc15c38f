//! What each era's clients see, and what the hub gets from them.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fake_hub::{Answer, FakeHub, discovered, result};
use super::process::Bridge;
use crate::client::{Era, McpClient};
use crate::kit::{Behaviour, TestHub, Worker};

const META: &str = "io.modelcontextprotocol";

/// `_meta` of a client of the new era.
fn meta() -> Value {
    json!({(format!("{META}/protocolVersion")): "2026-07-28",
        (format!("{META}/clientCapabilities")): {},
        (format!("{META}/clientInfo")): {"name": "new", "version": "2"}})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_old_client_gets_old_results() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let me = hub.orchestrator("ann").await;
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
    let opened = bridge.open("2025-06-18", json!({}));
    assert_eq!(opened["protocolVersion"], "2025-06-18");
    let capabilities = &opened["capabilities"];
    assert_eq!(capabilities["resources"]["subscribe"], true, "{opened}");
    assert!(capabilities.get("extensions").is_none(), "{opened}");
    assert_ne!(capabilities["tools"]["listChanged"], true, "{opened}");
    assert_eq!(opened["serverInfo"]["name"], "rialto");
    for name in ["resultType", "ttlMs", "cacheScope", "_meta"] {
        assert!(opened.get(name).is_none(), "{name}: {opened}");
    }
    assert_eq!(bridge.result("ping", json!({})), json!({}));
    // Lists and results are what an old client gets from the hub itself.
    let direct = McpClient::new(&hub, "/mcp", Some(&me.key), Era::Old);
    let opened_there = direct.result("initialize", json!({"protocolVersion": "2025-06-18"})).await;
    assert_eq!(opened["instructions"], opened_there["instructions"]);
    for method in ["tools/list", "resources/list", "resources/templates/list", "prompts/list"] {
        let there = direct.result(method, json!({})).await;
        assert_eq!(bridge.result(method, json!({})), there, "{method}");
    }
    let there = direct.call("whoami", json!({})).await;
    assert_eq!(bridge.call("whoami", json!({})), there);
    for method in ["logging/setLevel", "server/discover", "tasks/get", "subscriptions/listen", "no"]
    {
        assert_eq!(bridge.error(method, json!({})).0, -32601, "{method}");
    }
    let (code, error) = bridge.error("resources/read", json!({"uri": "rialto://nowhere"}));
    assert_eq!((code, &error["data"]["uri"]), (-32002, &json!("rialto://nowhere")));
    assert_eq!(bridge.error("tools/call", json!({"name": "nope"})).0, -32602);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_asked_version_that_is_not_offered_becomes_the_newest_old_one() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let me = hub.orchestrator("ann").await;
    for (asked, got) in [
        ("2025-11-25", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2025-11-25"),
        ("2026-07-28", "2025-11-25"),
    ] {
        let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
        assert_eq!(bridge.open(asked, json!({}))["protocolVersion"], got, "{asked}");
    }
    // No request needs an opening before it.
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
    assert_eq!(bridge.result("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(17));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_client_gets_what_the_hub_says() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let me = hub.orchestrator("ann").await;
    let direct = McpClient::new(&hub, "/mcp", Some(&me.key), Era::New);
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
    for method in ["server/discover", "tools/list", "prompts/list"] {
        let there = direct.result(method, json!({})).await;
        assert_eq!(bridge.result(method, json!({"_meta": meta()})), there, "{method}");
    }
    let there = direct.call("whoami", json!({})).await;
    let called =
        bridge.result("tools/call", json!({"name": "whoami", "arguments": {}, "_meta": meta()}));
    assert_eq!(called, there);
    // The first message decides: what is left of the old era is unknown now.
    for method in ["ping", "initialize", "resources/subscribe"] {
        assert_eq!(bridge.error(method, json!({"_meta": meta()})).0, -32601, "{method}");
    }
    let (code, error) = bridge.error("tools/list", json!({"_meta": {
        (format!("{META}/protocolVersion")): "2027-01-01", (format!("{META}/clientCapabilities")): {}}}));
    assert_eq!((code, &error["data"]["requested"]), (-32022, &json!("2027-01-01")));
    assert_eq!(bridge.error("tools/list", json!({})).0, -32602);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn new_messages_pass_as_they_stand_with_headers_that_repeat_them() {
    let hub = FakeHub::start(|heard| {
        let id = heard.json["id"].to_string();
        Answer::Text(format!("{{\"jsonrpc\":\"2.0\",\n\"id\":{id},\"result\":{{\"n\":1.50e0}}}}"))
    })
    .await;
    let home = TempDir::new().expect("a directory");
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    let line = format!(
        r#"{{"jsonrpc":"2.0","id":"a\u0062","method":"tools/call","params":{{"name":"na\u00efve","arguments":{{"n":0.10}},"_meta":{}}}}}"#,
        meta()
    );
    bridge.write(&line);
    // One line, with the id and the digits as they were.
    assert_eq!(bridge.line(), r#"{"jsonrpc":"2.0", "id":"ab","result":{"n":1.50e0}}"#);
    let heard = hub.heard().pop().expect("a request");
    assert_eq!(heard.text, line);
    assert_eq!(heard.path, "/mcp");
    assert_eq!(heard.header("mcp-protocol-version"), "2026-07-28");
    assert_eq!(heard.header("mcp-method"), "tools/call");
    assert_eq!(heard.header("mcp-name"), "=?base64?bmHDr3Zl?=");
    assert_eq!(heard.header("authorization"), "Bearer rk_test");
}

#[tokio::test(flavor = "multi_thread")]
async fn old_messages_become_new_ones_and_keep_their_digits() {
    let hub = FakeHub::start(|heard| match heard.json["method"].as_str() {
        Some("server/discover") => discovered(heard),
        _ => {
            let id = heard.json["id"].to_string();
            Answer::Text(format!(
                r#"{{"jsonrpc":"2.0","id":{id},"result":{{"resultType":"complete","structuredContent":{{"big":12345678901234567890.10,"e":1E+2}},"_meta":{{"io.modelcontextprotocol/serverInfo":{{}},"rialto/job":{{"paid":"0.10"}}}}}}}}"#
            ))
        }
    })
    .await;
    let home = TempDir::new().expect("a directory");
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    bridge.write(r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"hire","arguments":{"budget":0.10,"input":{"n":1.0e-7}},"_meta":{"progressToken":"p"}}}"#);
    assert_eq!(
        bridge.line(),
        r#"{"jsonrpc":"2.0","id":"x","result":{"structuredContent":{"big":12345678901234567890.10,"e":1E+2},"_meta":{"rialto/job":{"paid":"0.10"}}}}"#
    );
    let heard = hub.heard().pop().expect("a request");
    assert!(
        heard.text.contains(r#""arguments":{"budget":0.10,"input":{"n":1.0e-7}}"#),
        "{}",
        heard.text
    );
    let meta = &heard.json["params"]["_meta"];
    assert_eq!(meta["progressToken"], "p");
    assert_eq!(meta[format!("{META}/protocolVersion")], "2026-07-28");
    assert_eq!(meta[format!("{META}/clientInfo")]["name"], "test");
    assert_eq!(meta[format!("{META}/clientCapabilities")], json!({}));
    assert_eq!((heard.header("mcp-method"), heard.header("mcp-name")), ("tools/call", "hire"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_flags_choose_the_endpoint() {
    let hub = FakeHub::start(|heard| match heard.json["method"].as_str() {
        Some("server/discover") => discovered(heard),
        _ => result(heard, json!({"tools": []})),
    })
    .await;
    let home = TempDir::new().expect("a directory");
    for (arguments, path) in [
        (&["--tools", "buy,talk"][..], "/mcp?tools=buy,talk"),
        (&["--agent", "echo,a b", "--max-price", "0.10"], "/mcp/agents/echo,a%20b?max_price=0.10"),
        (
            &["--agent", "echo", "--pin", "0123456789abcdef"],
            "/mcp/agents/echo?pin=0123456789abcdef",
        ),
    ] {
        let key = [("RIALTO_KEY", "rk_test")];
        let mut bridge = Bridge::start(&hub.url, home.path(), arguments, &key);
        bridge.result("tools/list", json!({}));
        assert_eq!(hub.heard().pop().expect("a request").path, path);
    }
    let mut bridge = Bridge::start(&hub.url, home.path(), &["--tools", "sell"], &[]);
    let (status, _) = bridge.ended();
    assert_eq!(status.code(), Some(2));
    assert!(bridge.all_errors().contains("buy, money, talk, work"));
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_reaches_the_client_before_the_result_and_calls_wait() {
    let hub = TestHub::open(&[]).await;
    let home = TempDir::new().expect("a directory");
    let worker = Worker::start(Behaviour::Succeed(json!({"words": 2}), "0.05")).await;
    let _agent = hub.agent("worker", "count_words", "0.05", Some(&worker.url)).await;
    let me = hub.orchestrator("ann").await;
    hub.grant("ann", "10.00").await;
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &me.key);
    bridge.open("2025-11-25", json!({}));
    let id = bridge.request(
        "tools/call",
        json!({"name": "hire", "_meta": {"progressToken": 7},
            "arguments": {"skill": "count_words", "input": {"text": "a b"}, "budget": "0.10"}}),
    );
    let mut messages = bridge.messages(id);
    let response = messages.pop().expect("the response");
    assert_eq!(response["result"]["structuredContent"]["state"], "completed", "{response}");
    assert!(response["result"].get("resultType").is_none());
    assert!(messages.len() >= 3, "{messages:?}");
    for (at, message) in messages.iter().enumerate() {
        assert_eq!(message["method"], "notifications/progress");
        assert_eq!(message["params"]["progressToken"], 7);
        assert_eq!(message["params"]["progress"], at + 1);
    }
    hub.stop().await;
}
