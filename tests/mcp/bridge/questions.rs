//! Questions to the user: `input_required` of the hub, `elicitation/create` of an old client.

use serde_json::{Value, json};
use tempfile::TempDir;

use super::fake_hub::{Answer, FakeHub, discovered, result};
use super::process::Bridge;
use crate::kit::TestHub;

const META: &str = "io.modelcontextprotocol";

/// A hub that wants to know something before it moves credits.
async fn asking_hub() -> FakeHub {
    FakeHub::start(|heard| {
        let params = &heard.json["params"];
        if heard.json["method"] == "server/discover" {
            discovered(heard)
        } else if params["inputResponses"]["confirm"]["action"] == "accept" {
            result(heard, json!({"content": [], "structuredContent": {"moved": true}}))
        } else if params.get("inputResponses").is_some() {
            result(heard, json!({"content": [], "isError": true}))
        } else {
            let question = json!({"mode": "form", "message": "Send 0.25?", "requestedSchema":
                {"type": "object", "properties": {"send": {"type": "boolean"}}}});
            let requests = json!({"confirm": {"method": "elicitation/create", "params": question}});
            Answer::Text(
                json!({"jsonrpc": "2.0", "id": heard.json["id"], "result":
                    {"resultType": "input_required", "inputRequests": requests, "requestState": "s"}})
                .to_string(),
            )
        }
    })
    .await
}

fn send_credits(bridge: &mut Bridge) -> u64 {
    let arguments = json!({"to": "bob", "amount": 0.25});
    bridge.request("tools/call", json!({"name": "send_credits", "arguments": arguments}))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hubs_question_is_asked_by_the_old_client_and_its_answer_sent_back() {
    let (hub, home) = (asking_hub().await, TempDir::new().expect("a directory"));
    for (capabilities, answer, moved) in [
        (json!({"elicitation": {}}), json!({"action": "accept", "content": {"send": true}}), true),
        (json!({"elicitation": {"form": {}, "url": {}}}), json!({"action": "decline"}), false),
    ] {
        let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
        bridge.open("2025-06-18", capabilities);
        let id = send_credits(&mut bridge);
        let question = bridge.next();
        assert_eq!(question["method"], "elicitation/create");
        assert_eq!(question["params"]["message"], "Send 0.25?");
        assert!(question["params"].get("mode").is_none(), "{question}");
        // Other calls go on meanwhile.
        assert_eq!(bridge.result("ping", json!({})), json!({}));
        bridge.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
        let response = bridge.response(id);
        assert_eq!(response["result"]["structuredContent"]["moved"] == true, moved, "{response}");
        let heard = hub.heard().pop().expect("a request");
        let params = &heard.json["params"];
        assert_eq!(params["requestState"], "s");
        assert_eq!(params["inputResponses"], json!({"confirm": answer}));
        assert_eq!(params["arguments"], json!({"to": "bob", "amount": 0.25}));
        let stated = &params["_meta"][format!("{META}/clientCapabilities")];
        assert_eq!(*stated, json!({"elicitation": {"form": {}}}));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_cannot_ask_or_fails_to_answers_with_a_cancel() {
    let (hub, home) = (asking_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-06-18", json!({"elicitation": {}}));
    let id = send_credits(&mut bridge);
    let question = bridge.next();
    let error = json!({"code": -32603, "message": "no window"});
    bridge.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}));
    assert_eq!(bridge.response(id)["result"]["isError"], true);
    let heard = hub.heard().pop().expect("a request");
    let answers = &heard.json["params"]["inputResponses"];
    assert_eq!(*answers, json!({"confirm": {"action": "cancel"}}));
    // Without the capability, the hub is not told that there is one.
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-06-18", json!({"elicitation": {"url": {}}}));
    bridge.call("whoami", json!({}));
    let calls = hub.heard().into_iter().filter(|heard| heard.json["method"] == "tools/call");
    let first = calls.rev().find(|heard| heard.json["params"]["name"] == "whoami").expect("it");
    let stated = &first.json["params"]["_meta"][format!("{META}/clientCapabilities")];
    assert_eq!(*stated, json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelling_the_call_takes_the_question_back() {
    let (hub, home) = (asking_hub().await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::with_key(&hub.url, home.path(), "rk_test");
    bridge.open("2025-06-18", json!({"elicitation": {}}));
    let id = send_credits(&mut bridge);
    let question = bridge.next();
    bridge.notify("notifications/cancelled", json!({"requestId": id}));
    let told = bridge.next();
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], question["id"]);
    // An answer that comes too late is ignored.
    let answer = json!({"action": "accept", "content": {"send": true}});
    bridge.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    assert_eq!(bridge.result("ping", json!({})), json!({}));
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_move_only_after_the_user_agreed_or_the_code_was_given() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let (ann, bob) = (hub.orchestrator("ann").await, hub.orchestrator("bob").await);
    hub.grant("ann", "1.00").await;
    let arguments = json!({"to": bob.id, "amount": "0.25"});
    let mut bridge = Bridge::with_key(&hub.url, home.path(), &ann.key);
    bridge.open("2025-06-18", json!({"elicitation": {}}));
    let call = json!({"name": "send_credits", "arguments": arguments});
    let id = bridge.request("tools/call", call);
    let question = bridge.next();
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let fields = question["params"]["requestedSchema"]["properties"].as_object().expect("fields");
    let content: Value = fields.keys().map(|name| (name.clone(), json!(true))).collect();
    let before = hub.balance("ann").await.0;
    let answer = json!({"action": "accept", "content": content});
    bridge.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": answer}));
    let moved = bridge.response(id);
    assert_eq!(moved["result"]["structuredContent"]["moved"], true, "{moved}");
    assert_ne!(hub.balance("ann").await.0, before);
    // A client without forms gets a code for its user.
    let mut plain = Bridge::with_key(&hub.url, home.path(), &ann.key);
    plain.open("2025-06-18", json!({}));
    let arguments = json!({"to": bob.id, "amount": "0.10"});
    let asked = plain.ok("send_credits", arguments);
    assert_eq!(asked["moved"], false, "{asked}");
    let confirm = asked["confirm"].as_str().expect("a code");
    let moved =
        plain.ok("send_credits", json!({"to": bob.id, "amount": "0.10", "confirm": confirm}));
    assert_eq!(moved["moved"], true, "{moved}");
    hub.stop().await;
}
