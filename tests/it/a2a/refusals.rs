//! What the agent, not the hub, refuses before there is a task (R44, R45).

use rialto_core::time::Millis;
use serde_json::{Value, json};

use super::kit::{Client, HIRE, TaskWorker, first_text, hire_message, text_message};
use crate::kit::{TestHub, counted};
use crate::openclaw::kit::Hub;

/// What a refused send is answered with. Nothing is stored.
async fn refused(hub: &TestHub, base: &str, client: &Client, params: Value) -> Value {
    let before = counted(hub);
    let reply = hub.rpc(base, &client.key, "SendMessage", params).await.expect(200);
    assert_eq!(reply.header("rialto-job"), None);
    let message = reply.at("/result/message");
    assert_eq!(message["role"], "ROLE_AGENT");
    assert!(message["messageId"].is_string() && message["contextId"].is_string(), "{message}");
    assert!(message.get("taskId").is_none(), "{message}");
    assert!(!first_text(&message).is_empty());
    assert_eq!(counted(hub), before, "nothing is stored");
    let listed = hub.result(base, &client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 0);
    message
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_says_how_to_do_it_right_in_a_message() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.rich_client("client").await;
    let poor = hub.a2a_client("poor").await;
    let skills = json!([{"skill_name": "one", "cost_per_call": 0.10},
        {"skill_name": "two", "cost_per_call": 0.20}]);
    let several = TaskWorker::with_skills(&hub, "several", skills).await;
    let single = TaskWorker::join(&hub, "analyze_text", "0.10").await;
    let past = "2026-01-01T00:00:00Z";
    for (worker, client, hire, code, skill, price) in [
        (&single, &client, json!({"skill": "dance"}), "NO_SUCH_SKILL", Some("dance"), None),
        (&several, &client, json!({}), "CHOOSE_SKILL", None, None),
        (&single, &client, json!({}), "BUDGET_TOO_LOW", Some("analyze_text"), Some("0.10")),
        (
            &single,
            &client,
            json!({"budget": "0.09"}),
            "BUDGET_TOO_LOW",
            Some("analyze_text"),
            Some("0.10"),
        ),
        (
            &single,
            &poor,
            json!({"budget": "1"}),
            "TOO_FEW_CREDITS",
            Some("analyze_text"),
            Some("0.10"),
        ),
        (
            &single,
            &client,
            json!({"budget": "1", "deadline": past}),
            "DEADLINE_TOO_SOON",
            Some("analyze_text"),
            Some("0.10"),
        ),
        (
            &single,
            &client,
            json!({"budget": "1", "hop": 9}),
            "BRIDGE_LOOP",
            Some("analyze_text"),
            Some("0.10"),
        ),
    ] {
        let params = json!({"message": hire_message("m-0", "hi", hire.clone())});
        let message = refused(&hub, &worker.base, client, params).await;
        let told = &message["metadata"][HIRE];
        assert_eq!(told["refused"], code, "{hire}");
        assert_eq!(told.get("skill").and_then(Value::as_str), skill, "{told}");
        assert_eq!(told.get("price").and_then(Value::as_str), price, "{told}");
        assert!(told["retryable"].is_boolean(), "{told}");
        if code == "TOO_FEW_CREDITS" {
            let text = first_text(&message);
            assert!(
                text.starts_with("analyze_text costs 0.10 credits, and you can spend 0;"),
                "{text}"
            );
            let account = hub.get("/v1/me", Some(&client.key)).await.expect(200);
            assert_eq!(account.at("/account/available"), 0.0);
        }
    }
    // The skills to choose from are listed.
    let params = json!({"message": text_message("m-0", "hi")});
    let message = refused(&hub, &several.base, &client, params).await;
    assert_eq!(message["metadata"][HIRE]["skills"], json!(["one", "two"]));
    assert!(first_text(&message).contains("one, two"), "{message}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_context_of_a_refused_message_is_kept() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let worker = TaskWorker::join(&hub, "analyze_text", "0.10").await;
    let mut message = text_message("m-0", "hi");
    message["contextId"] = "c-1".into();
    let told = refused(&hub, &worker.base, &client, json!({ "message": message })).await;
    assert_eq!(told["contextId"], "c-1");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_try_again_is_told_so_and_when() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    hub.pass(Millis::hours(2));
    let message = hire_message("m-1", "hi", json!({"queue": false}));
    let told = refused(&hub, &worker.base, &client, json!({ "message": message })).await;
    let hire = &told["metadata"][HIRE];
    assert_eq!((&hire["refused"], &hire["retryable"]), (&json!("OFFLINE"), &json!(true)));
    assert!(hire["retryAfterSeconds"].as_u64().is_some_and(|seconds| seconds > 0), "{hire}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_input_that_does_not_fit_is_refused_with_every_violation() {
    let hub = Hub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let node = hub.node("summer").await;
    let base = hub.a2a_path("openclaw", &node.id);
    let misfit = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [{"data": {"a": 7}}]});
    let told = refused(&hub, &base, &client, json!({ "message": misfit })).await;
    let hire = &told["metadata"][HIRE];
    assert_eq!((&hire["refused"], &hire["retryable"]), (&json!("INPUT_MISFIT"), &json!(false)));
    let violations = told["parts"][1]["data"]["violations"].as_array().expect("violations");
    assert_eq!(violations.len(), 1, "{told}");
    assert!(
        violations[0].as_str().is_some_and(|text| text.starts_with("a must be")),
        "{violations:?}"
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_full_or_out_of_order_says_so() {
    let hub = Hub::serve(&[]).await;
    let (client, rich) = (hub.a2a_client("client").await, hub.rich_client("rich").await);
    let mut message = text_message("m-1", "");
    message["parts"] = json!([{"data": {"a": 1}}]);
    let ask = json!({ "message": message });
    let broken = hub.node("broken").await;
    let details = json!({"error_code": "E", "error_message": "e", "error_type": "permanent"});
    hub.report(&broken, "error", details).await.expect(200);
    let base = hub.a2a_path("openclaw", &broken.id);
    let told = refused(&hub, &base, &client, ask.clone()).await;
    assert_eq!(told["metadata"][HIRE]["refused"], "OUT_OF_ORDER", "{told}");
    let full = hub.node_with("full", json!({"resource_limits": {"max_concurrent_tasks": 1}})).await;
    let base = hub.a2a_path("openclaw", &full.id);
    hub.begin(&base, &rich.key, message).await;
    let told = refused(&hub, &base, &client, ask).await;
    let hire = &told["metadata"][HIRE];
    assert_eq!((&hire["refused"], &hire["retryable"]), (&json!("AT_CAPACITY"), &json!(true)));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_in_a_stream_is_one_message() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    let worker = TaskWorker::join(&hub, "analyze_text", "0.10").await;
    let mut events = hub.follow(&worker.base, &client.key, text_message("m-1", "hi")).await;
    let all = events.rest().await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].data["message"]["metadata"][HIRE]["refused"], "BUDGET_TOO_LOW");
    assert!(events.raw.starts_with("retry: 2000\nid: 1\ndata: {"), "{}", events.raw);
    // In 0.3 as well.
    let message = json!({"kind": "message", "messageId": "o-1", "role": "user",
        "parts": [{"kind": "text", "text": "hi"}]});
    let body = super::kit::rpc("r", "message/stream", json!({ "message": message })).to_string();
    let bearer = format!("Bearer {}", client.key);
    let headers = [("authorization", bearer.as_str())];
    let all = hub.a2a_stream("POST", &worker.base, &headers, &body).await.rest().await;
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].data["result"]["kind"], "message");
    assert_eq!(all[0].data["id"], "r");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_cannot_pay_whatever_it_offers() {
    let hub = TestHub::open(&[]).await;
    let worker = TaskWorker::join(&hub, "analyze_text", "0.10").await;
    // Even if somebody gives the guests credits.
    let free = TaskWorker::join(&hub, "echo", "0").await;
    hub.begin(&free.base, "", hire_message("m-0", "hi", json!({"budget": "5"}))).await;
    hub.grant("a2a:guest", "100.00").await;
    for budget in [json!(null), json!("5")] {
        let params = json!({"message": hire_message("m-1", "hi", json!({"budget": budget}))});
        let answer = hub.result(&worker.base, "", "SendMessage", params).await;
        let hire = &answer["message"]["metadata"][HIRE];
        assert_eq!(hire["refused"], "GUEST_CANNOT_PAY", "{answer}");
        let text = first_text(&answer["message"]);
        assert!(text.starts_with("analyze_text costs 0.10 credits"), "{text}");
        assert!(
            text.contains("/a2a/agents {\"name\":\"…\"}, and send it as Authorization: Bearer")
        );
        assert_eq!(hire["price"], "0.10");
    }
    assert_eq!(hub.balance("a2a:guest").await.1, "0.00");
    hub.stop().await;
}
