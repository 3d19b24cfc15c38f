//! Calls that wait: at the limit of waits, when their key is revoked, and when the hub stops.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Era, McpClient, data_of};
use crate::kit::{Agent, Reply};
use crate::market::Market;

/// How many calls of one agent may wait.
const WAITS_MAX: usize = 64;

/// Begins a call that waits, and returns when its stream is open.
async fn begin(client: &McpClient, tool: &str, arguments: Value) -> reqwest::Response {
    let request = client.request("tools/call", json!({"name": tool, "arguments": arguments}));
    request.send().await.expect("a head")
}

/// The result of a call whose stream is open.
async fn end(stream: reqwest::Response) -> Value {
    let text = stream.text().await.expect("a whole answer");
    data_of(&text).pop().unwrap_or_else(|| panic!("no response: {text:?}"))["result"].take()
}

/// Another key of an agent, and its id.
async fn another_key(market: &Market, agent: &Agent) -> (Agent, u64) {
    let made = market.hub.post("/v1/keys", Some(&agent.key), &json!({"label": "other"})).await;
    let made = made.expect(201);
    (Agent { key: made.str("/key"), ..agent.clone() }, made.at("/id").as_u64().expect("an id"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hire_that_may_not_wait_answers_with_the_job_that_it_opened() {
    let market = Market::open().await;
    market.slow_worker("slow", "slow", "0.05").await;
    let client = market.buyer(Era::New);
    let waits: Vec<_> = (0..WAITS_MAX)
        .map(|_| {
            let client = client.clone();
            tokio::spawn(
                async move { begin(&client, "read_inbox", json!({"wait_seconds": 50})).await },
            )
        })
        .collect();
    let mut open = Vec::new();
    for wait in waits {
        open.push(wait.await.expect("no panic"));
    }
    client.fail("read_inbox", json!({"wait_seconds": 1}), "rate_limited").await;
    let hire = json!({"skill": "slow", "input": {}, "budget": "0.10", "wait_seconds": 20});
    let job = client.ok("hire", hire.clone()).await;
    assert_eq!((&job["state"], &job["done"]), (&json!("assigned"), &json!(false)), "{job}");
    assert!(job["next"].as_str().is_some_and(|next| next.contains("get_job")), "{job}");
    // The same call again finds it.
    let again = client.ok("hire", hire).await;
    assert_eq!((&again["job_id"], &again["repeated"]), (&job["job_id"], &json!(true)));
    assert_eq!(market.left().await, "9.90");
    drop(open);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_revoked_while_it_waits_gets_no_job() {
    let market = Market::open().await;
    let slow = market.slow_worker("slow", "slow", "0.05").await;
    let (revoked, id) = another_key(&market, &slow).await;
    let waiter = market.client_of(&revoked);
    let waiting = begin(&waiter, "next_job", json!({"wait_seconds": 20}));
    let polling = market.hub.get("/v1/work?wait=20", Some(&revoked.key));
    let hiring = async {
        tokio::time::sleep(Duration::from_millis(1500)).await;
        let path = format!("/v1/keys/{id}");
        market.hub.call("DELETE", &path, Some(&slow.key), None).await.expect(200);
        let input = json!({"text": "for the worker only"});
        let hire = json!({"skill": "slow", "input": input, "budget": "0.10", "wait_seconds": 0});
        market.buyer(Era::New).ok("hire", hire).await["job_id"].take()
    };
    let ended = async { end(waiting.await).await };
    let (refused, polled, job): (Value, Reply, Value) = tokio::join!(ended, polling, hiring);
    assert_eq!(refused["_meta"]["rialto/error"]["code"], "no_key", "{refused}");
    assert_eq!(polled.status, 401, "{}", polled.text);
    for text in [refused.to_string(), polled.text] {
        assert!(!text.contains("for the worker only"), "{text}");
    }
    // The worker gets it with a key that is valid.
    let taken = market.client_of(&slow).ok("next_job", json!({})).await;
    assert_eq!(taken["job"]["job_id"], job);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_waits_when_the_hub_stops_is_answered_as_it_stands() {
    let market = Market::open().await;
    market.slow_worker("slow", "slow", "0.05").await;
    let idle = market.slow_worker("idle", "idle", "0.05").await;
    let (client, worker) = (market.buyer(Era::New), market.client_of(&idle));
    let hire = |n: u32| json!({"skill": "slow", "input": {"n": n}, "budget": "0.10"});
    let mut first = hire(1);
    first["wait_seconds"] = json!(0);
    let job = client.ok("hire", first).await["job_id"].take();
    let wait = json!({"job_id": job, "wait_seconds": 50});
    let path = format!("/v1/jobs/{}?wait=30", job.as_str().expect("an id"));
    let polling =
        market.hub.http.get(market.hub.url.clone() + &path).bearer_auth(&market.buyer.key);
    let polling = tokio::spawn(polling.send());
    let (hired, got, read, none) = tokio::join!(
        begin(&client, "hire", hire(2)),
        begin(&client, "get_job", wait.clone()),
        begin(&client, "read_inbox", json!({"wait_seconds": 50})),
        begin(&worker, "next_job", json!({"wait_seconds": 50})),
    );
    let begun = Instant::now();
    let stopped = tokio::spawn(market.hub.stop());
    let (hired, got, read, none) = tokio::join!(end(hired), end(got), end(read), end(none));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    for (result, member) in [(hired, "job_id"), (got, "job_id"), (read, "items"), (none, "more")] {
        let object = &result["structuredContent"];
        assert!(object["next"].is_string() && !object[member].is_null(), "{result}");
    }
    let polled = polling.await.expect("no panic").expect("an answer");
    assert_eq!(polled.status(), 200);
    stopped.await.expect("a clean shutdown");
}
