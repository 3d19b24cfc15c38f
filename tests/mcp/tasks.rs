//! Long hires as tasks, for clients that understand them.

use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::market::Market;

const NOBODYS: &str = "00000000-0000-4000-8000-000000000000";

fn with_tasks(market: &Market) -> McpClient {
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    market.buyer(Era::New).with(tasks)
}

fn hire(text: &str) -> Value {
    json!({"skill": "slow", "input": {"text": text}, "budget": "0.10"})
}

/// The members of an object, in any order.
fn members(object: &Value) -> Vec<&str> {
    let mut names: Vec<&str> =
        object.as_object().expect("an object").keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

/// The result that a capture shows.
fn captured(name: &str) -> Value {
    let file = include_str!("../../crates/hub/src/mcp/fixtures/tasks.json");
    let captures: Vec<Value> = serde_json::from_str(file).expect("JSON");
    let found = captures.into_iter().find(|capture| capture["name"] == name);
    found.expect(name)["response"]["body"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_hire_becomes_a_task_that_ends_with_its_result() {
    let market = Market::open().await;
    let slow = market.slow_worker("slow", "slow", "0.05").await;
    let (_, _worker) = market.worker("fast", "fast", "0.05", json!({"words": 1})).await;
    let client = with_tasks(&market);
    let task = client.call("hire", hire("a")).await;
    let expected = captured("a long job becomes a task")["result"].clone();
    assert_eq!(members(&task), members(&expected));
    assert_eq!((&task["resultType"], &task["status"]), (&json!("task"), &json!("working")));
    assert_eq!(task["statusMessage"], "slow: assigned");
    assert_eq!((&task["ttlMs"], &task["pollIntervalMs"]), (&Value::Null, &json!(2000)));
    let id = task["taskId"].as_str().unwrap().to_owned();
    // It is the job, so every other way to look at it works, too.
    assert_eq!(client.ok("get_job", json!({"job_id": id})).await["state"], "assigned");
    // The same call is the same task.
    assert_eq!(client.call("hire", hire("a")).await["taskId"], json!(id));

    let get = json!({"taskId": id});
    let working = client.result("tasks/get", get.clone()).await;
    assert_eq!(members(&working), members(&captured("still working")["result"]));
    assert_eq!(
        (&working["resultType"], &working["status"]),
        (&json!("complete"), &json!("working"))
    );
    assert_eq!(working["createdAt"], task["createdAt"]);
    let updated = client.result("tasks/update", json!({"taskId": id, "inputResponses": {}})).await;
    assert_eq!(members(&updated), members(&captured("cancel after the end")["result"]));

    market.hub.report(&slow, &id, "SUCCESS", "0.05").await.expect(200);
    let done = client.result("tasks/get", get.clone()).await;
    assert_eq!(members(&done), members(&captured("done")["result"]));
    assert_eq!(
        (&done["status"], &done["statusMessage"]),
        (&json!("completed"), &json!("slow: completed"))
    );
    let result = &done["result"];
    assert_eq!(result["structuredContent"]["output"], json!({"done": true}));
    assert_eq!(
        (&result["isError"], &result["structuredContent"]["paid"]),
        (&json!(false), &json!("0.05"))
    );
    assert!(result.get("resultType").is_none(), "{result}");
    let cancelled = client.result("tasks/cancel", get.clone()).await;
    assert_eq!(members(&cancelled), members(&captured("cancel after the end")["result"]));
    assert_eq!(client.result("tasks/get", get).await["status"], "completed");

    // What is done at once is no task, nor is what is not waited for.
    let mut fast = hire("a");
    fast["skill"] = json!("fast");
    assert_eq!(client.ok("hire", fast).await["state"], "completed");
    let mut at_once = hire("b");
    at_once["wait_seconds"] = json!(0);
    assert_eq!(client.ok("hire", at_once).await["done"], false);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_fails_has_a_result_and_one_that_is_cancelled_has_none() {
    let market = Market::open().await;
    let slow = market.slow_worker("slow", "slow", "0.05").await;
    let client = with_tasks(&market);
    let failing = client.call("hire", hire("a")).await["taskId"].as_str().unwrap().to_owned();
    market.hub.report(&slow, &failing, "FAILURE", "0").await.expect(200);
    let failed = client.result("tasks/get", json!({"taskId": failing})).await;
    assert_eq!(
        (&failed["status"], &failed["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
    let text = failed["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("job_failed: ") && text.contains("nothing was paid"), "{text}");

    let id = client.call("hire", hire("b")).await["taskId"].clone();
    client.result("tasks/cancel", json!({"taskId": id})).await;
    let cancelled = client.result("tasks/get", json!({"taskId": id})).await;
    assert_eq!(cancelled["status"], "cancelled");
    assert!(cancelled.get("result").is_none(), "{cancelled}");
    assert_eq!(client.ok("get_job", json!({"job_id": id})).await["state"], "cancelled");
    assert_eq!(market.left().await, "10.00");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tasks_are_for_their_requester_and_for_clients_that_declare_them() {
    let market = Market::open().await;
    let slow = market.slow_worker("slow", "slow", "0.05").await;
    let client = with_tasks(&market);
    let id = client.call("hire", hire("a")).await["taskId"].clone();
    let (mut other, mut keyless) = (client.clone(), client.clone());
    other.key = Some(slow.key.clone());
    keyless.key = None;
    for method in ["tasks/get", "tasks/update", "tasks/cancel"] {
        let unknown = client.respond(method, json!({"taskId": NOBODYS})).await;
        assert_eq!(unknown, captured("nobody's task"), "{method}");
        for stranger in [&other, &keyless] {
            let answer = stranger.respond(method, json!({"taskId": id})).await;
            assert_eq!(answer["error"]["code"], -32602, "{method}");
            assert_eq!(answer["error"]["message"], unknown["error"]["message"], "{method}");
        }
        let plain = market.buyer(Era::New).send(method, json!({"taskId": id})).await;
        assert_eq!((plain.status, plain.json()), (400, captured("without the extension")));
    }
    assert_eq!(client.ok("get_job", json!({"job_id": id})).await["state"], "assigned");
    // Without the extension, and in the old era, a hire waits instead.
    for client in [market.buyer(Era::New), market.buyer(Era::Old)] {
        let mut arguments = hire("c");
        arguments["wait_seconds"] = json!(1);
        assert_eq!(client.ok("hire", arguments).await["done"], false);
    }
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_chooses_how_long_a_call_is_waited_for_before_it_is_a_task() {
    let market = Market::open_with(&[("mcp.task_after", "2s")]).await;
    market.slow_worker("slow", "slow", "0.05").await;
    let begun = std::time::Instant::now();
    let task = with_tasks(&market).call("hire", hire("a")).await;
    assert_eq!(task["resultType"], "task");
    assert!(begun.elapsed() >= std::time::Duration::from_secs(2));
    // A shorter wait ends first.
    let mut brief = hire("b");
    brief["wait_seconds"] = json!(1);
    assert_eq!(with_tasks(&market).ok("hire", brief).await["done"], false);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_offer_may_become_a_task() {
    let market = Market::open().await;
    let one = market.slow_worker("one", "paint", "0.50").await;
    let client = with_tasks(&market);
    let ask = json!({"skill": "paint", "input": {}, "budget": "1", "select": "offers"});
    let job = client.ok("hire", ask).await["job_id"].clone();
    let path = format!("/v1/jobs/{}/offers", job.as_str().unwrap());
    market.hub.post(&path, Some(&one.key), &json!({"price": 0.40})).await.expect(201);
    let accept = json!({"job_id": job, "agent": "one", "price": "0.40"});
    let task = client.call("accept_offer", accept).await;
    assert_eq!((&task["resultType"], &task["taskId"]), (&json!("task"), &job));
    market.hub.stop().await;
}
