//! Work that takes longer than a caller waits.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use serde_json::{Value, json};

use super::identity;
use crate::agent::direct::ProtocolEndpoint;
use crate::agent::{Handlers, Job, Outcome, Skill};
use crate::http_server::PeerIp;
use crate::registry;
use crate::testing::{TestServer, answer};
use crate::worker::journal::Journal;
use crate::worker::pool::WorkerPool;

const JOB_ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// The endpoint of an agent that takes this long for every job.
fn slow(seconds: u64) -> (Arc<WorkerPool>, impl ProtocolEndpoint) {
    let skill = Skill::new("wait", "0.10").expect("a skill").time_limit(Duration::from_secs(600));
    let wait = move |_: Job| async move {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
        Outcome::from_output(&json!({"slept": seconds}))
    };
    let bench = Arc::new(WorkerPool::new(Handlers::builder().skill(skill, wait).build(), None));
    let endpoint =
        registry::direct::endpoint(&identity(), &bench, (Journal::disabled(), Vec::new()));
    (bench, endpoint)
}

async fn post(endpoint: &impl ProtocolEndpoint, callback: &str, from: &str) -> (u16, Value) {
    let body = json!({"job_id": JOB_ID, "skill_name": "wait", "input_data": {}, "budget": 1,
        "callback_url": callback});
    let request = Request::builder().method(Method::POST).uri("/jobs");
    let caller = PeerIp(from.parse().expect("an address"));
    let request = request.extension(caller).body(()).expect("a request");
    let answer = endpoint.handle(&request.into_parts().0, Ok(Bytes::from(body.to_string()))).await;
    (answer.status, serde_json::from_slice(&answer.body).expect("JSON"))
}

/// Waits for the first POST to a test server and returns all its bodies.
async fn posted(stage: &TestServer) -> Vec<Value> {
    while stage.heard().is_empty() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    stage.heard().iter().map(|heard| serde_json::from_str(&heard.body).expect("JSON")).collect()
}

#[tokio::test(start_paused = true)]
async fn a_requester_with_a_callback_gets_pending_and_then_the_result() {
    let stage = TestServer::new(|_, number| match number {
        0 => answer(503, "", "{}"),
        _ => answer(200, "", "{}"),
    })
    .await;
    let (_bench, endpoint) = slow(40);
    let began = tokio::time::Instant::now();
    let (status, body) = post(&endpoint, &format!("{}/results", stage.url), "127.0.0.1").await;
    assert_eq!((status, &body["status"]), (202, &json!("PENDING")));
    assert_eq!((&body["output_data"], &body["execution_cost"]), (&Value::Null, &json!(0.0)));
    assert_eq!(began.elapsed().as_secs(), 25);
    let told = posted(&stage).await;
    assert_eq!(told[0]["status"], "SUCCESS");
    assert_eq!(told[0]["output_data"], json!({"slept": 40}));
    // A repeat gets the result at once, without a callback.
    let (status, body) = post(&endpoint, &format!("{}/results", stage.url), "127.0.0.1").await;
    assert_eq!((status, &body), (200, &told[0]));
    while stage.heard().len() < 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(stage.heard().len(), 2, "retried after a failure, and then not again");
}

#[tokio::test(start_paused = true)]
async fn quick_work_needs_no_callback() {
    let stage = TestServer::new(|_, _| answer(200, "", "{}")).await;
    let (_bench, endpoint) = slow(24);
    let (status, body) = post(&endpoint, &stage.url, "127.0.0.1").await;
    assert_eq!((status, &body["status"]), (200, &json!("SUCCESS")));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(stage.heard().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_third_party_is_never_called_and_the_response_waits() {
    let stage = TestServer::new(|_, _| answer(200, "", "{}")).await;
    let (_bench, endpoint) = slow(40);
    let (status, body) = post(&endpoint, &stage.url, "192.0.2.7").await;
    assert_eq!((status, &body["status"]), (200, &json!("SUCCESS")));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(stage.heard().is_empty());
}
