//! `subscriptions/listen`: what is acknowledged, and what is told.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::client::{Era, McpClient, data_of};
use crate::kit::{Agent, TestHub, eventually, in_time};

const ID: &str = "io.modelcontextprotocol/subscriptionId";
/// News must come within this time.
const SOON: Duration = Duration::from_secs(1);

/// An open stream.
struct Stream {
    response: reqwest::Response,
    text: String,
    taken: usize,
}

impl Stream {
    async fn open(client: &McpClient, notifications: Value) -> Self {
        let params = json!({"notifications": notifications});
        let response = client.request("subscriptions/listen", params).send().await.expect("a head");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Self { response, text: String::new(), taken: 0 }
    }

    /// The next message; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            // Only whole events.
            let end = self.text.rfind("\n\n").unwrap_or(0);
            if let Some(message) = data_of(&self.text[..end]).get(self.taken) {
                self.taken += 1;
                return Some(message.clone());
            }
            let bytes = in_time(self.response.chunk()).await.ok()??;
            self.text += &String::from_utf8_lossy(&bytes);
        }
    }

    /// The notification that comes first, and what it honours.
    async fn acknowledged(&mut self) -> Value {
        let mut first = self.next().await.expect("an acknowledgement");
        assert_eq!(first["method"], "notifications/subscriptions/acknowledged", "{first}");
        assert_eq!(first["params"]["_meta"][ID], 1, "{first}");
        first["params"]["notifications"].take()
    }

    /// The URIs that are told of until nothing comes for a while.
    async fn updates(&mut self, quiet: Duration) -> Vec<String> {
        let mut uris = Vec::new();
        while let Ok(Some(message)) = tokio::time::timeout(quiet, self.next()).await {
            assert_eq!(message["method"], "notifications/resources/updated", "{message}");
            assert_eq!(message["params"]["_meta"][ID], 1, "{message}");
            uris.push(message["params"]["uri"].as_str().expect("a URI").to_owned());
        }
        uris
    }
}

fn client(hub: &TestHub, path: &str, agent: &Agent) -> McpClient {
    McpClient::new(hub, path, Some(&agent.key), Era::New)
}

async fn hire(client: &McpClient, input: Value) -> String {
    let call = json!({"skill": "sum", "input": input, "budget": "0", "wait_seconds": 0});
    let job = client.ok("hire", call).await;
    job["job_id"].as_str().expect("an id").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_can_be_followed_is_acknowledged() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("worker", "sum", "0", None).await;
    let ada = hub.orchestrator("ada").await;
    client(&hub, "/mcp", &worker).ok("next_job", json!({})).await;
    let as_ada = client(&hub, "/mcp", &ada);
    let job = hire(&as_ada, json!({"n": 1})).await;
    let own = format!("rialto://jobs/{job}");
    let uris = json!([
        "rialto://inbox",
        "rialto://inbox",
        "rialto://jobs",
        own,
        "rialto://me",
        "rialto://agents/worker",
        "test://x",
        "rialto://jobs/00000000-0000-4000-8000-000000000000"
    ]);
    let all = json!({"toolsListChanged": true, "promptsListChanged": true, "resourceSubscriptions": uris});
    let mut stream = Stream::open(&as_ada, all.clone()).await;
    let honoured = json!(["rialto://inbox", "rialto://jobs", own]);
    assert_eq!(stream.acknowledged().await, json!({"resourceSubscriptions": honoured}));
    // Jobs of others cannot be followed.
    let bob = hub.orchestrator("bob").await;
    let mut stream =
        Stream::open(&client(&hub, "/mcp", &bob), json!({"resourceSubscriptions": [own]})).await;
    assert_eq!(stream.acknowledged().await, json!({}));
    // Tasks are for clients that know them.
    let tasks = json!({"notifications": {"taskIds": [job, "x"]}});
    let refused = as_ada.send("subscriptions/listen", tasks.clone()).await.expect(400);
    assert_eq!(refused.json()["error"]["code"], -32021);
    let knowing = as_ada.clone().with(json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let mut stream = Stream::open(&knowing, tasks["notifications"].clone()).await;
    assert_eq!(stream.acknowledged().await, json!({"taskIds": [job]}));
    let many: Vec<String> = (0..101).map(|n| format!("rialto://jobs/{n}")).collect();
    let refused = as_ada
        .respond("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": many}}))
        .await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn news_comes_within_a_second_and_a_burst_is_told_four_times_a_second_at_most() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("worker", "sum", "0", None).await;
    let ada = hub.orchestrator("ada").await;
    let bob = hub.orchestrator("bob").await;
    let as_worker = client(&hub, "/mcp", &worker);
    as_worker.ok("next_job", json!({})).await;
    let (as_ada, as_bob) = (client(&hub, "/mcp", &ada), client(&hub, "/mcp", &bob));
    let job = hire(&as_ada, json!({"n": 1})).await;
    let own = format!("rialto://jobs/{job}");
    let uris = json!({"resourceSubscriptions": ["rialto://inbox", "rialto://jobs", own]});
    let mut stream = Stream::open(&as_ada, uris).await;
    stream.acknowledged().await;
    assert_eq!(stream.updates(Duration::from_millis(700)).await, Vec::<String>::new());

    let to = as_ada.ok("whoami", json!({})).await["agent"].clone();
    let begun = Instant::now();
    as_bob.ok("send_message", json!({"to": to, "text": "hello"})).await;
    let first = stream.next().await.expect("news");
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(first["params"]["uri"], "rialto://inbox", "{first}");

    // The end of the job is news of the job, of the list and of the inbox.
    let taken = as_worker.ok("next_job", json!({})).await;
    let report = json!({"job_id": job, "epoch": taken["job"]["epoch"], "output": {"n": 2}});
    as_worker.ok("submit_result", report).await;
    let told = stream.updates(SOON).await;
    for uri in [own.as_str(), "rialto://jobs", "rialto://inbox"] {
        assert!(told.iter().any(|told| told == uri), "{uri}: {told:?}");
    }

    let begun = Instant::now();
    for n in 0..20 {
        as_bob.ok("send_message", json!({"to": to, "text": format!("burst {n}")})).await;
    }
    let told = stream.updates(SOON).await.len();
    let seconds = begun.elapsed().as_secs_f64().ceil();
    assert!(told >= 1 && told as f64 <= 4.0 * seconds + 1.0, "{told} in {seconds} s");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_is_told_of_as_it_is_then() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("worker", "sum", "0", None).await;
    let ada = hub.orchestrator("ada").await;
    let as_worker = client(&hub, "/mcp", &worker);
    as_worker.ok("next_job", json!({})).await;
    let extension = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let as_ada = client(&hub, "/mcp", &ada).with(extension);
    let call = json!({"name": "hire", "arguments": {"skill": "sum", "input": {}, "budget": "0"}});
    let task = as_ada.result("tools/call", call).await;
    assert_eq!(task["resultType"], "task", "{task}");
    let id = task["taskId"].as_str().expect("an id");
    let mut stream = Stream::open(&as_ada, json!({"taskIds": [id]})).await;
    assert_eq!(stream.acknowledged().await, json!({"taskIds": [id]}));
    let taken = as_worker.ok("next_job", json!({})).await;
    let report = json!({"job_id": id, "epoch": taken["job"]["epoch"], "output": {"n": 2}});
    as_worker.ok("submit_result", report).await;
    loop {
        let told = stream.next().await.expect("news");
        assert_eq!(told["method"], "notifications/tasks", "{told}");
        let params = &told["params"];
        assert_eq!((&params["taskId"], &params["_meta"][ID]), (&json!(id), &json!(1)));
        if params["status"] == "completed" {
            assert_eq!(params["result"]["structuredContent"]["output"], json!({"n": 2}), "{told}");
            break;
        }
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_tools_of_agents_are_told_of() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("worker", "sum", "0.05", None).await;
    let ada = hub.orchestrator("ada").await;
    let mut stream = Stream::open(
        &client(&hub, "/mcp/agents/worker's%20agent", &ada),
        json!({"toolsListChanged": true}),
    )
    .await;
    assert_eq!(stream.acknowledged().await, json!({"toolsListChanged": true}));
    let begun = Instant::now();
    let skills = json!({"skills": [{"name": "sum", "price": "0.06"}]});
    client(&hub, "/mcp", &worker).ok("update_profile", skills).await;
    let told = stream.next().await.expect("news");
    assert_eq!(told["method"], "notifications/tools/list_changed", "{told}");
    assert_eq!(told["params"]["_meta"][ID], 1);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_closes_its_streams_within_a_second() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada").await;
    let mut stream = Stream::open(
        &client(&hub, "/mcp", &ada),
        json!({"resourceSubscriptions": ["rialto://inbox"]}),
    )
    .await;
    stream.acknowledged().await;
    hub.call("DELETE", "/v1/keys", Some(&ada.key), None).await;
    let begun = Instant::now();
    let last = stream.next().await.expect("a reason");
    assert_eq!(last["error"]["data"]["code"], "unauthorized", "{last}");
    assert_eq!(stream.next().await, None);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_stops_ends_its_streams_with_a_result() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada").await;
    let mut stream = Stream::open(
        &client(&hub, "/mcp", &ada),
        json!({"resourceSubscriptions": ["rialto://jobs"]}),
    )
    .await;
    stream.acknowledged().await;
    let stopping = tokio::spawn(hub.stop());
    let last = stream.next().await.expect("a result");
    assert_eq!((&last["id"], &last["result"]["resultType"]), (&json!(1), &json!("complete")));
    assert_eq!(last["result"]["_meta"][ID], 1, "{last}");
    assert_eq!(stream.next().await, None);
    stopping.await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_eight_streams_and_one_that_is_closed_makes_room() {
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.orchestrator("ada").await, hub.orchestrator("bob").await);
    let as_ada = client(&hub, "/mcp", &ada);
    let listen = json!({"resourceSubscriptions": ["rialto://inbox"]});
    let mut open = Vec::new();
    for _ in 0..8 {
        let mut stream = Stream::open(&as_ada, listen.clone()).await;
        stream.acknowledged().await;
        open.push(stream);
    }
    let params = json!({"notifications": listen});
    let refused = as_ada.respond("subscriptions/listen", params).await;
    assert_eq!(refused["error"]["data"]["code"], "rate_limited", "{refused}");
    Stream::open(&client(&hub, "/mcp", &bob), listen.clone()).await.acknowledged().await;
    open.pop();
    eventually(async || {
        let params = json!({"notifications": listen});
        let again = as_ada.request("subscriptions/listen", params).send().await.expect("a head");
        again.headers()["content-type"] == "text/event-stream"
    })
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_listener_that_takes_no_stream_is_refused() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.orchestrator("ada").await;
    let as_ada = client(&hub, "/mcp", &ada);
    let (message, headers) = as_ada.message("subscriptions/listen", json!({"notifications": {}}));
    let mut request = hub.http.post(&as_ada.url).bearer_auth(&ada.key).body(message.to_string());
    for (name, value) in headers.into_iter().filter(|(name, _)| *name != "accept") {
        request = request.header(name, value);
    }
    let refused = crate::kit::Reply::to(request.header("accept", "application/json")).await;
    refused.expect(406);
    hub.stop().await;
}
