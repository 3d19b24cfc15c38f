//! Errors of tools: in the words of the captures, and never with more than the caller may know.

use serde_json::{Value, json};

use crate::client::{Era, McpClient, catalog};
use crate::kit::{Behaviour, Worker};
use crate::market::Market;

/// The text of a result that is an error.
fn text_of(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("a text")
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_are_those_of_the_captures() {
    let market = Market::open().await;
    // The only job that is opened is one that fails.
    let worker = Worker::start(Behaviour::Fail(None)).await;
    market.register("w", "count_words", "0.05", Some(&worker.url)).await;
    let client = market.buyer(Era::Old);
    let file = include_str!("../../../crates/hub/src/mcp/fixtures/errors.json");
    let captures: Vec<Value> = serde_json::from_str(file).expect("JSON");
    let mut replayed = 0;
    for capture in captures {
        let params = &capture["request"]["body"]["params"];
        let expected = &capture["response"]["body"]["result"]["_meta"]["rialto/error"];
        let acts = params["name"].is_string() && expected["code"] != "no_key";
        if !acts || !expected.is_object() {
            continue;
        }
        let (tool, name) = (params["name"].as_str().unwrap(), &capture["name"]);
        let result = client.call(tool, params["arguments"].clone()).await;
        assert_eq!(result["_meta"]["rialto/error"], *expected, "{name}");
        let captured = &capture["response"]["body"]["result"];
        match expected["code"].as_str().unwrap() {
            // Which arguments a tool takes is said in more words.
            "malformed" => {
                let field = expected["field"].as_str().unwrap();
                assert!(text_of(&result).starts_with(&format!("malformed: {field} ")), "{result}");
                let example = catalog()["examples"][tool].clone();
                let shown = text_of(&result).rsplit("Example: ").next().unwrap();
                assert_eq!(serde_json::from_str::<Value>(shown).unwrap(), example, "{name}");
            }
            "budget_too_low" => assert_eq!(text_of(&result), text_of(captured)),
            code => assert!(text_of(&result).starts_with(&format!("{code}: ")), "{result}"),
        }
        replayed += 1;
    }
    assert!(replayed >= 5, "{replayed}");
    assert_eq!((market.jobs().await.len(), market.left().await), (1, "10.00".to_owned()));
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_tools_and_tools_of_other_groups_are_protocol_errors() {
    let market = Market::open().await;
    let talk =
        McpClient::new(&market.hub, "/mcp?tools=talk,money", Some(&market.buyer.key), Era::New);
    let listed = talk.result("tools/list", Value::Null).await;
    let names: Vec<&str> = listed["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["send_message", "read_inbox", "whoami", "send_credits"]);
    for (client, tool) in [(&talk, "hire"), (&market.buyer(Era::New), "nope")] {
        let answer = client.respond("tools/call", json!({"name": tool, "arguments": {}})).await;
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
        assert_eq!(answer["error"]["message"], format!("Unknown tool: {tool}"));
    }
    // A name is not repeated at any length.
    let long = "n".repeat(100_000);
    let old = market.buyer(Era::Old);
    for method in ["tools/call", "prompts/get"] {
        let answer = old.respond(method, json!({"name": long, "arguments": {}})).await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("Unknown ") && message.len() < 300, "{method}: {message}");
    }
    let unknown = McpClient::new(&market.hub, "/mcp?tools=buy,x", None, Era::New);
    let reply = unknown.send("tools/list", Value::Null).await;
    assert_eq!((reply.status, reply.at("/error/code")), (400, json!(-32602)));
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn things_of_others_are_like_things_that_do_not_exist() {
    let market = Market::open().await;
    market.slow_worker("slow", "slow", "0.05").await;
    let arguments = json!({"skill": "slow", "input": {}, "budget": "0.10", "wait_seconds": 0});
    let job = market.buyer(Era::New).ok("hire", arguments).await["job_id"].clone();
    let stranger = market.hub.orchestrator("eve").await;
    let stranger = market.client_of(&stranger);
    let nobodys = json!("00000000-0000-4000-8000-000000000000");
    let accept = |job: &Value| json!({"job_id": job, "agent": "slow", "price": "0.05"});
    for id in [&job, &nobodys] {
        let get = stranger.fail("get_job", json!({"job_id": id}), "not_found").await;
        let cancel = stranger.fail("cancel_job", json!({"job_id": id}), "not_found").await;
        let accept = stranger.fail("accept_offer", accept(id), "not_found").await;
        assert_eq!((&get, &get), (&cancel, &accept));
    }
    // The worker may not act for the requester.
    let malformed_id = stranger.fail("get_job", json!({"job_id": "x"}), "not_found").await;
    assert!(
        malformed_id.starts_with("not_found: no such thing, or it is not yours"),
        "{malformed_id}"
    );
    assert_eq!(stranger.ok("list_jobs", json!({"state": "all"})).await["jobs"], json!([]));
    let anonymous = McpClient::new(&market.hub, "/mcp", None, Era::New);
    for (tool, arguments) in [
        ("hire", json!({"skill": "slow", "input": {}, "budget": "1"})),
        ("get_job", json!({"job_id": job})),
        ("list_jobs", json!({})),
        ("cancel_job", json!({"job_id": job})),
        ("accept_offer", accept(&job)),
        ("explain_reputation", json!({})),
    ] {
        let text = anonymous.fail(tool, arguments, "no_key").await;
        assert!(text.contains("rialto connect"), "{text}");
    }
    assert_eq!(
        market.buyer(Era::New).ok("get_job", json!({"job_id": job})).await["state"],
        "assigned"
    );
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_is_not_there_and_budgets_that_are_too_fine_are_refused() {
    let market = Market::open_with(&[("mcp.per_job", "0"), ("mcp.per_day", "0")]).await;
    let (_, worker) = market.worker("w", "dear", "50", json!({})).await;
    let client = market.buyer(Era::New);
    let hire = |budget: &str| json!({"skill": "dear", "input": {}, "budget": budget});
    let text = client.fail("hire", hire("50"), "too_few_credits").await;
    assert!(text.contains("whoami"), "{text}");
    client.fail("hire", hire("0.005"), "malformed").await;
    let mut both = hire("1");
    both["agent"] = json!("w");
    both["select"] = json!("cheapest");
    client.fail("hire", both, "malformed").await;
    assert_eq!((worker.got().len(), market.jobs().await.len()), (0, 0));
    market.hub.stop().await;
}
