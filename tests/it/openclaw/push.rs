//! Deliveries to endpoints: the same bodies as on the stream, signed, retried, and not sent while a
//! stream is open (section 2.3, R78).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use rialto_core::time::Millis;
use serde_json::{Value, json};
use sha2::Sha256;

use super::kit::{Hub, Node, assert_rejected, identity, with};
use crate::kit::{Behaviour, ClosedPort, Got, Worker, eventually};

fn say(status: u16) -> Behaviour {
    Behaviour::Say(status, String::new())
}

#[track_caller]
fn header<'a>(got: &'a Got, name: &str) -> &'a str {
    got.headers.get(name).unwrap_or_else(|| panic!("no {name}")).to_str().expect("text")
}

/// An agent with an endpoint, and its secret.
async fn at(hub: &Hub, name: &str, url: &str, more: Value) -> (Node, String) {
    let body = with(&with(&identity(name, hub.now()), json!({"endpoint": url})), more);
    let reply = hub.post("/openclaw/identity", None, &body).await.expect(201);
    let node = Node { id: reply.str("/agent_id"), key: reply.str("/api_key"), identity: body };
    (node, reply.str("/webhook_secret"))
}

/// Verifies a delivery as Standard Webhooks describes it, without code of the hub.
fn assert_signed(got: &Got, secret: &str) {
    let key = STANDARD.decode(secret.strip_prefix("whsec_").expect("a secret")).expect("base64");
    let (id, at) = (header(got, "webhook-id"), header(got, "webhook-timestamp"));
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("a key");
    mac.update(format!("{id}.{at}.{}", got.body).as_bytes());
    let expected = format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()));
    assert_eq!(header(got, "webhook-signature"), expected);
}

async fn arrived(hub: &Hub) {
    eventually(async || hub.pushes().is_empty()).await;
}

async fn retry(hub: &Hub) {
    for push in hub.pushes() {
        let path = format!("/v1/operator/pushes/{}/retry", push.notice.0);
        let reply = hub.call("POST", &path, Some(&hub.operator), None).await;
        assert!(reply.status < 300, "{}", reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn both_parties_are_posted_what_concerns_them_signed_and_named() {
    let hub = Hub::serve(&[]).await;
    let (hers, his) = (Worker::start(say(204)).await, Worker::start(say(200)).await);
    let (asker, her_secret) = at(&hub, "asker", &format!("{}/a", hers.url), json!({})).await;
    let (worker, his_secret) = at(&hub, "worker", &format!("{}/w", his.url), json!({})).await;
    let work = hub.accepted(&asker, &worker, json!({"priority": 2})).await;
    let got = his.heard(1).await;
    assert_eq!(got[0].path, "/w");
    assert_eq!(header(&got[0], "rialto-event"), "collaboration_request");
    assert_signed(&got[0], &his_secret);
    let told = got[0].json();
    assert_eq!(told["collaboration_id"], work.id);
    assert_eq!((&told["accepted"], &told["priority"]), (&json!(true), &json!(2)));
    assert_eq!(told["input_data"], work.request["input_data"]);
    hub.result(&work, json!({})).await.expect(200);
    let got = hers.heard(1).await;
    assert_eq!(got[0].path, "/a");
    assert_eq!(header(&got[0], "rialto-event"), "collaboration_result");
    assert_signed(&got[0], &her_secret);
    // The same body as on the stream.
    let mut hears = hub.resume(&asker, "", Some("0-0")).await;
    assert_eq!(hears.until("collaboration_result").await.text, got[0].body);
    drop(hears);
    hub.heard_by(0).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    hub.cancel(&asker, &work.id, &json!({"reason": "rain"})).await.expect(200);
    eventually(async || {
        his.got().iter().any(|got| header(got, "rialto-event") == "collaboration_cancelled")
    })
    .await;
    arrived(&hub).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_response_and_a_question_come_to_the_endpoint() {
    let hub = Hub::serve(&[]).await;
    let (hers, his) = (Worker::start(say(200)).await, Worker::start(say(200)).await);
    let (asker, _) = at(&hub, "asker", &hers.url, json!({})).await;
    let (worker, secret) = at(&hub, "worker", &his.url, json!({"response_mode": "ask"})).await;
    let request = hub.request(&asker, json!({"responder_agent_id": worker.id}));
    let reply = hub.meanwhile(&asker, &request, async || {
        let got = his.heard(1).await;
        assert_eq!(header(&got[0], "rialto-event"), "collaboration_request");
        assert_eq!(got[0].json()["accepted"], false);
        assert_signed(&got[0], &secret);
        hub.respond(&worker, &request, json!({})).await.expect(200);
    });
    assert_eq!(reply.await.str("/response_status"), "accepted");
    let until = json!({"maintenance_until": hub.time(60_000)});
    hub.report(&worker, "maintenance", until).await.expect(200);
    let later = hub.hire(&asker, &worker, json!({})).await;
    assert_eq!(later.str("/response_status"), "deferred");
    hub.pass(Millis::minutes(1));
    eventually(async || {
        hers.got().iter().any(|got| {
            header(got, "rialto-event") == "collaboration_response"
                && got.json()["response_status"] == "rejected"
        })
    })
    .await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_posted_while_a_stream_is_open_and_everything_after_it() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let endpoint = Worker::start(say(200)).await;
    let (worker, _) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let mut works = hub.stream(&worker, "").await;
    for _ in 0..3 {
        let work = hub.accepted(&asker, &worker, json!({})).await;
        let told = works.until("collaboration_request").await;
        assert_eq!(told.data["collaboration_id"], work.id);
    }
    // A notice that was read needs no delivery.
    arrived(&hub).await;
    assert_eq!(endpoint.got().len(), 0);
    drop(works);
    hub.heard_by(0).await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let got = endpoint.heard(1).await;
    assert_eq!(got[0].json()["collaboration_id"], work.id);
    arrived(&hub).await;
    assert_eq!(endpoint.got().len(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_post_that_failed_is_made_again_under_the_same_id_and_changes_nothing_meanwhile() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let endpoint = Worker::start(say(500)).await;
    let (worker, secret) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let mut hears = hub.stream(&asker, "").await;
    let work = hub.accepted(&asker, &worker, json!({})).await;
    endpoint.heard(1).await;
    eventually(async || hub.pushes().first().is_some_and(|push| push.attempts == 1)).await;
    assert!(hub.pushes()[0].next_try.is_some(), "a retry is scheduled");
    assert_eq!(hub.state(&asker, &work.id).await, "running");
    endpoint.behave(say(200));
    retry(&hub).await;
    let got = endpoint.heard(2).await;
    assert_eq!(got[0].body, got[1].body);
    assert_eq!(header(&got[0], "webhook-id"), header(&got[1], "webhook-id"));
    got.iter().for_each(|one| assert_signed(one, &secret));
    arrived(&hub).await;
    hub.result(&work, json!({})).await.expect(200);
    // The failed delivery produced no notice: the first event is the result.
    let first = hears.next().await;
    assert_eq!(
        (first.event.as_str(), &first.data["result_status"]),
        ("collaboration_result", &json!("completed"))
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_gone_is_not_called_again_and_the_stream_has_it_all() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let endpoint = Worker::start(say(410)).await;
    let (worker, _) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let first = hub.accepted(&asker, &worker, json!({})).await;
    endpoint.heard(1).await;
    eventually(async || hub.pushes().iter().all(|push| push.next_try.is_none())).await;
    let second = hub.accepted(&asker, &worker, json!({})).await;
    let mut works = hub.stream(&worker, "").await;
    for work in [first, second] {
        let told = works.until("collaboration_request").await;
        assert_eq!(told.data["collaboration_id"], work.id);
    }
    assert_eq!(endpoint.got().len(), 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_endpoint_costs_others_nothing_and_creates_no_message() {
    let hub = Hub::serve(&[]).await;
    let (asker, quick) = (hub.node("asker").await, hub.node("quick").await);
    let port = ClosedPort::take();
    let (dead, _) = at(&hub, "dead", &port.url, json!({})).await;
    let mut hears = hub.stream(&asker, "").await;
    let mut lost = Vec::new();
    for _ in 0..5 {
        let reply = hub.hire(&asker, &dead, json!({"deadline": hub.time(600_000)})).await;
        match reply.str("/response_status").as_str() {
            "accepted" => lost.push(reply.str("/collaboration_id")),
            // Once the agent is known to be unreachable.
            _ => assert_rejected(&reply, "resource_exhausted"),
        }
    }
    assert!(!lost.is_empty());
    eventually(async || hub.pushes().iter().all(|push| push.attempts >= 1)).await;
    let work = hub.accepted(&asker, &quick, json!({})).await;
    hub.result(&work, json!({})).await.expect(200);
    let first = hears.next().await;
    assert_eq!(
        (first.event.as_str(), &first.data["collaboration_id"]),
        ("collaboration_result", &json!(work.id)),
        "a failed delivery is not a notice"
    );
    for id in &lost {
        assert_eq!(hub.state(&asker, id).await, "running");
    }
    hub.pass(Millis::minutes(10));
    for id in &lost {
        hub.becomes(&asker, id, "failed").await;
        assert_eq!(hub.view(&asker, id).await["result"]["error"]["code"], "DEADLINE_EXCEEDED");
    }
    hub.0.stop().await;
}

/// The status in an update.
fn status(got: &Got) -> Value {
    got.json()["status_update"]["current_status"].clone()
}

/// How many notices were ever put into an agent's inbox.
fn told(hub: &Hub, node: &Node) -> u64 {
    hub.engine.with_world(|world| {
        let id = world.agent_by_alias(rialto_protocols::openclaw::ID, &node.id).expect("an agent");
        world.inbox(id).head
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_at_an_endpoint_is_posted_how_it_is_and_how_well_it_does() {
    let hub = Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let endpoint = Worker::start(say(200)).await;
    let (worker, secret) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let mut watches = hub.stream(&asker, &format!("?watch={}", worker.id)).await;
    assert_eq!(endpoint.updates().len(), 0, "registering causes no call");
    let work = hub.accepted(&asker, &worker, json!({})).await;
    let busy = endpoint.updated(|got| status(got) == "busy").await;
    assert_eq!(header(&busy, "rialto-event"), "status_update");
    assert_eq!(busy.json()["agent_id"], worker.id);
    assert_signed(&busy, &secret);
    hub.result(&work, json!({})).await.expect(200);
    endpoint.updated(|got| status(got) == "idle").await;
    let judged = endpoint.updated(|got| header(got, "rialto-event") == "reputation_update").await;
    assert_signed(&judged, &secret);
    // The same body as on a stream.
    assert_eq!(watches.until("reputation_update").await.text, judged.body);
    // Its own status reports, and its reputation at that time.
    hub.report(&worker, "busy", json!({"active_tasks": 7})).await.expect(200);
    endpoint
        .updated(|got| got.json()["status_update"]["status_details"]["active_tasks"] == 7)
        .await;
    hub.pass(Millis::hours(24));
    hub.report(&worker, "idle", json!({})).await.expect(200);
    let daily = |got: &Got| got.json()["reputation_update"]["update_type"] == "periodic_update";
    endpoint.updated(daily).await;
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_wait_nowhere_and_only_the_newest_is_told() {
    let hub = Hub::serve(&[]).await;
    let endpoint = Worker::start(say(500)).await;
    let (worker, _) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let before = told(&hub, &worker);
    for tasks in 1..=20 {
        hub.report(&worker, "busy", json!({"active_tasks": tasks})).await.expect(200);
    }
    endpoint.updated(|_| true).await;
    // Nothing is stored for them: no delivery, and nothing in the inbox.
    assert_eq!((hub.pushes().len(), told(&hub, &worker)), (0, before));
    endpoint.behave(say(200));
    let tasks = |got: &Got| got.json()["status_update"]["status_details"]["active_tasks"].clone();
    endpoint.updated(|got| tasks(got) == 20).await;
    let all: Vec<Value> = endpoint.updates().iter().map(tasks).collect();
    assert!(all.len() <= 3, "{all:?}");
    // Nothing else is pending: the next update is the next change.
    hub.report(&worker, "busy", json!({"active_tasks": 21})).await.expect(200);
    endpoint.updated(|got| tasks(got) == 21).await;
    assert_eq!(endpoint.updates().len(), all.len() + 1);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn updates_are_not_posted_while_a_stream_is_open() {
    let hub = Hub::serve(&[]).await;
    let endpoint = Worker::start(say(200)).await;
    let (worker, _) = at(&hub, "worker", &endpoint.url, json!({})).await;
    let mut stream = hub.stream(&worker, "").await;
    let tasks = |told: &Value| told["status_update"]["status_details"]["active_tasks"].clone();
    hub.report(&worker, "busy", json!({"active_tasks": 1})).await.expect(200);
    while tasks(&stream.until("status_update").await.data) != 1 {}
    drop(stream);
    hub.heard_by(0).await;
    hub.report(&worker, "busy", json!({"active_tasks": 2})).await.expect(200);
    endpoint.updated(|got| tasks(&got.json()) == 2).await;
    assert_eq!(endpoint.updates().len(), 1);
    hub.0.stop().await;
}
