//! A hub that does not answer, or stops to.

use std::time::Duration;

use serde_json::json;
use tempfile::TempDir;

use super::fake_hub::{Answer, FakeHub, discovered};
use super::process::Bridge;
use crate::client::{Era, McpClient};
use crate::kit::{ClosedPort, Process, TestHub};

/// Lists that are answered from the program.
const LISTS: [&str; 4] =
    ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];

#[tokio::test(flavor = "multi_thread")]
async fn without_a_hub_openings_and_lists_are_the_same_and_calls_say_how_to_start_one() {
    let (closed, home) = (ClosedPort::take(), TempDir::new().expect("a directory"));
    let hub = TestHub::serve(&[]).await;
    let me = hub.orchestrator("ann").await;
    let mut old = Bridge::start(&closed.url, home.path(), &[], &[]);
    let mut there = Bridge::with_key(&hub.url, home.path(), &me.key);
    assert_eq!(old.open("2025-06-18", json!({})), there.open("2025-06-18", json!({})));
    for method in LISTS {
        let listed = there.result(method, json!({}));
        assert_eq!(old.result(method, json!({})), listed, "{method}");
    }
    let text = old.fail("whoami", json!({}), "unreachable");
    let address = closed.url.trim_start_matches("http://");
    assert!(text.contains(&format!("rialto dev --listen {address}")), "{text}");
    let (code, error) = old.error("resources/read", json!({"uri": "rialto://me"}));
    assert_eq!((code, &error["data"]["code"]), (-32603, &json!("unreachable")));
    assert_eq!(old.result("ping", json!({})), json!({}));

    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let direct = McpClient::new(&hub, "/mcp", Some(&me.key), Era::New);
    let mut new = Bridge::start(&closed.url, home.path(), &[], &[]);
    for method in LISTS.into_iter().chain(["server/discover"]) {
        let there = direct.result(method, json!({})).await;
        assert_eq!(new.result(method, json!({"_meta": meta})), there, "{method}");
    }
    let call = json!({"name": "whoami", "arguments": {}, "_meta": meta});
    let failed = new.result("tools/call", call);
    assert_eq!(failed["resultType"], "complete");
    assert_eq!(failed["_meta"]["rialto/error"]["code"], "unreachable", "{failed}");
    assert_eq!(failed["_meta"]["rialto/error"]["retryable"], true);
    let mut some = Bridge::start(&closed.url, home.path(), &["--tools", "money"], &[]);
    assert_eq!(some.result("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(2));
    let mut agents = Bridge::start(&closed.url, home.path(), &["--agent", "echo"], &[]);
    let opened = agents.open("2025-11-25", json!({}));
    assert_eq!(opened["capabilities"]["tools"]["listChanged"], true);
    assert_eq!(agents.result("tools/list", json!({}))["tools"][0]["name"], "get_job");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_call_finds_a_hub_that_was_started_meanwhile() {
    let (closed, home) = (ClosedPort::take(), TempDir::new().expect("a directory"));
    let url = closed.url.clone();
    let mut bridge = Bridge::start(&url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    bridge.fail("whoami", json!({}), "unreachable");
    drop(closed);
    let address = url.trim_start_matches("http://");
    let hub = Process::at(address, "dev", &home.path().join("data"), &[], &[]);
    assert!(bridge.ok("whoami", json!({}))["available"].is_string());
    hub.kill();
    bridge.fail("whoami", json!({}), "unreachable");
    assert_eq!(bridge.result("tools/list", json!({}))["tools"].as_array().map(Vec::len), Some(17));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_killed_in_the_middle_of_a_call_is_told_at_once() {
    let home = TempDir::new().expect("a directory");
    let data = home.path().join("data");
    let hub = Process::start("dev", &data, &[]);
    let (url, address) = (hub.url.clone(), hub.url.trim_start_matches("http://").to_owned());
    let mut bridge = Bridge::start(&url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    bridge.ok("whoami", json!({}));
    let id = bridge
        .request("tools/call", json!({"name": "next_job", "arguments": {"wait_seconds": 50}}));
    assert!(bridge.next_within(Duration::from_millis(1_500)).is_none());
    hub.kill();
    let answer = bridge.response(id);
    let error = &answer["result"]["_meta"]["rialto/error"];
    assert_eq!(error["code"], "unreachable", "{answer}");
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains("may have had its effect") && text.contains("rialto dev"), "{text}");
    // The same data under the same address: the key is still good.
    let hub = Process::at(&address, "dev", &data, &[], &[]);
    assert!(bridge.ok("whoami", json!({}))["available"].is_string());
    hub.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_without_a_response_and_another_server_are_told_apart() {
    let hub = FakeHub::start(|heard| match heard.json["params"]["name"].as_str() {
        Some("cut") => Answer::Stream(Vec::new()),
        Some("page") => Answer::Text("{\"hello\":1}".to_owned()),
        _ => discovered(heard),
    })
    .await;
    let home = TempDir::new().expect("a directory");
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-11-25", json!({}));
    let cut = bridge.fail("cut", json!({}), "unreachable");
    assert!(cut.contains("may have had its effect"), "{cut}");
    let page = bridge.fail("page", json!({}), "unreachable");
    assert!(page.contains("no hub with MCP") && page.contains("--hub"), "{page}");
}
