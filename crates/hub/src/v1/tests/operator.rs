//! Tests of the operator's operations.

use rialto_core::command::{Command, DeliveryResult};
use rialto_core::event::{Event, HistoryLine};
use rialto_core::id::EventId;
use rialto_engine::store::{PageQuery, Row};

use super::kit::{Agent, Hub, nothing};

async fn scene() -> (Hub, Agent, Agent) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    (hub, client, worker)
}

/// All history lines after a given one.
async fn lines(hub: &Hub, after: u64) -> Vec<HistoryLine> {
    let page = PageQuery::Lines { after: EventId(after), limit: 1_000 };
    let rows = hub.engine.load_page(page).await.expect("history");
    let line = |row| match row {
        Row::Line(line) => line,
        other => panic!("{other:?}"),
    };
    rows.into_iter().map(line).collect()
}

/// All events after a given line.
async fn history(hub: &Hub, after: u64) -> Vec<Event> {
    lines(hub, after).await.into_iter().flat_map(|line| line.events).collect()
}

fn newest(hub: &Hub) -> u64 {
    hub.engine.with_world(|world| world.next.event.0 - 1)
}

#[tokio::test]
async fn grants_and_burns_move_exactly_what_they_say() {
    let (hub, _, _) = scene().await;
    let before = newest(&hub);
    let body = r#"{"owner":"fresh","amount":0.000003}"#;
    let got = hub.post("/v1/operator/grants", &hub.operator, body).await;
    got.is_problem(404, "no_such_owner");
    assert_eq!(newest(&hub), before, "a misspelt name gets no credits");
    let body = r#"{"owner":"fresh","amount":0.000003,"create":true}"#;
    let got = hub.post("/v1/operator/grants", &hub.operator, body).await;
    assert_eq!(got.status, 201);
    assert!(got.text.contains(r#""available":0.000003,"held":0.00"#), "{}", got.text);
    let body = r#"{"owner":"fresh","amount":0.000001}"#;
    let got = hub.post("/v1/operator/burns", &hub.operator, body).await;
    assert!(got.text.contains(r#""available":0.000002"#), "{}", got.text);
    let events = history(&hub, before).await;
    assert!(events.iter().any(|event| matches!(event, Event::Granted { welcome: false, .. })));
    assert!(events.iter().any(|event| matches!(event, Event::Burned { .. })));

    let body = r#"{"owner":"fresh","amount":1}"#;
    hub.post("/v1/operator/burns", &hub.operator, body).await.is_problem(402, "too_few_credits");
    let body = r#"{"owner":"nobody","amount":1}"#;
    hub.post("/v1/operator/burns", &hub.operator, body).await.is_problem(404, "not_found");
    for amount in ["0", "-1", "0.0000001", "\"1\"", "1e10", "null"] {
        let body = format!(r#"{{"owner":"rich","amount":{amount}}}"#);
        for path in ["/v1/operator/grants", "/v1/operator/burns"] {
            let got = hub.post(path, &hub.operator, &body).await;
            got.is_problem(400, "malformed");
            assert_eq!(got.body["field"], "/amount");
        }
    }
    hub.post("/v1/operator/grants", &hub.operator, r#"{"owner":"hub:issuance","amount":1}"#)
        .await
        .is_problem(404, "not_found");
}

#[tokio::test]
async fn jobs_are_called_off_and_handed_on() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "1.00").await;
    let before = newest(&hub);
    let path = format!("/v1/operator/jobs/{}/requeue", job.uuid);
    let got = hub.post(&path, &hub.operator, "").await;
    assert_eq!((got.status, got.body["state"].as_str()), (200, Some("failed")), "{}", got.text);
    assert!(!got.text.contains("s3cret") && got.body.get("input").is_none());
    hub.post(&path, &hub.operator, "").await.is_problem(409, "wrong_state");
    let events = history(&hub, before).await;
    assert!(events.contains(&Event::JobRequeued { job: job.id }));

    let job = hub.open(&client, "sum", "1.00").await;
    let path = format!("/v1/operator/jobs/{}/cancel", job.uuid);
    let got = hub.post(&path, &hub.operator, "").await;
    assert_eq!(got.body["state"], "cancelled");
    assert_eq!(hub.get("/v1/me", &worker.key).await.body["jobs_in_hand"], 0);
    for verb in ["cancel", "requeue"] {
        let path = format!("/v1/operator/jobs/{}/{verb}", nothing());
        hub.post(&path, &hub.operator, "").await.is_problem(404, "not_found");
    }
}

#[tokio::test]
async fn agents_lose_their_keys_and_their_place() {
    let (hub, client, worker) = scene().await;
    let before = newest(&hub);
    let path = format!("/v1/operator/agents/{}/revoke-keys", worker.native);
    let got = hub.post(&path, &hub.operator, "").await;
    assert_eq!(got.text, format!(r#"{{"agent":{}}}"#, worker.id));
    hub.get("/v1/me", &worker.key).await.is_problem(401, "unauthorized");
    let path = format!("/v1/operator/agents/{}", client.id);
    assert_eq!(hub.delete(&path, &hub.operator).await.status, 200);
    hub.delete(&path, &hub.operator).await.is_problem(404, "not_found");
    hub.get("/v1/me", &client.key).await.is_problem(401, "unauthorized");
    hub.get(&format!("/v1/agents/{}", client.id), "").await.is_problem(404, "not_found");
    let events = history(&hub, before).await;
    assert!(events.contains(&Event::KeyRevoked { agent: worker.id }));
    assert!(events.contains(&Event::AgentRemoved { agent: client.id, by_operator: true }));
}

#[tokio::test]
async fn what_the_operator_does_is_written_down_as_the_operators() {
    let (hub, client, worker) = scene().await;
    let asked = hub.open(&client, "sum", "1.00").await;
    let before = newest(&hub);
    let revoke = format!("/v1/operator/agents/{}/revoke-keys", worker.id);
    let requeue = format!("/v1/operator/jobs/{}/requeue", asked.uuid);
    for path in [&revoke, &requeue] {
        assert_eq!(hub.post(path, &hub.operator, "").await.status, 200, "{path}");
    }
    let job = hub.open(&client, "sum", "1.00").await;
    let cancel = format!("/v1/operator/jobs/{}/cancel", job.uuid);
    assert_eq!(hub.post(&cancel, &hub.operator, "").await.status, 200);
    let by_operator = |events: &[HistoryLine], wanted: &dyn Fn(&Event) -> bool| {
        let line = events.iter().find(|line| line.events.iter().any(wanted));
        line.map(|line| line.by_operator)
    };
    let written = lines(&hub, before).await;
    let said = |wanted: &dyn Fn(&Event) -> bool| by_operator(&written, wanted);
    assert_eq!(said(&|event| matches!(event, Event::KeyRevoked { .. })), Some(true));
    assert_eq!(said(&|event| matches!(event, Event::JobRequeued { .. })), Some(true));
    let cancelled =
        |event: &Event| matches!(event, Event::JobEnded { job: id, .. } if *id == job.id);
    assert_eq!(said(&cancelled), Some(true));
    assert_eq!(said(&|event| matches!(event, Event::JobOpened { .. })), Some(false));

    // The same actions by the parties themselves are not recorded as the operator's.
    let job = hub.open(&client, "sum", "1.00").await;
    let before = newest(&hub);
    let cancel = format!("/v1/jobs/{}/cancel", job.uuid);
    assert_eq!(hub.post(&cancel, &client.key, "").await.status, 200);
    assert_eq!(hub.post("/v1/keys/rotate", &client.key, "").await.status, 200);
    assert_eq!(hub.delete("/v1/keys", &client.key).await.status, 200);
    let written = lines(&hub, before).await;
    assert_eq!(written.len(), 3);
    assert!(written.iter().all(|line| !line.by_operator), "{written:?}");
}

#[tokio::test]
async fn pushes_are_listed_and_tried_again() {
    let (hub, client, worker) = scene().await;
    let mut pushes = Vec::new();
    for n in 0..3 {
        let job = hub.open(&client, "sum", "1.00").await;
        hub.engine.run(Command::MarkPending { job: job.id }).await.expect("pending");
        hub.succeed(&job).await;
        let newest =
            hub.engine.with_world(|world| world.deliveries().map(|push| push.notice).max());
        let notice = newest.expect("a callback is due");
        let next_try = (n > 0).then(|| hub.engine.now());
        let ended = DeliveryResult::Failed { why: "answered HTTP 500".to_owned(), next_try };
        hub.engine
            .run(Command::RecordDelivery { notice, result: ended, report: None })
            .await
            .expect("recorded");
        pushes.push((notice, job));
    }
    let _ = worker;
    let all = hub.all("/v1/operator/pushes", &hub.operator, 1).await;
    let ids: Vec<_> = all.iter().filter_map(|push| push["id"].as_u64()).collect();
    assert_eq!(ids, pushes.iter().map(|(notice, _)| notice.0).collect::<Vec<_>>());
    assert_eq!(all[0]["destination"], "https://back.example");
    assert_eq!(all[0]["job"], pushes[0].1.uuid.to_string());
    assert_eq!((&all[0]["state"], &all[1]["state"]), (&"given_up".into(), &"waiting".into()));
    assert_eq!(hub.all("/v1/operator/pushes?state=waiting", &hub.operator, 5).await.len(), 2);
    let path = format!("/v1/operator/pushes/{}/retry", pushes[0].0);
    let got = hub.post(&path, &hub.operator, "").await;
    assert_eq!(got.body["state"], "waiting", "{}", got.text);
    assert_eq!(got.body["trouble"], "answered HTTP 500");
    assert!(!got.text.contains("s3cret"));
    assert_eq!(hub.all("/v1/operator/pushes?state=given_up", &hub.operator, 5).await.len(), 0);
    hub.post("/v1/operator/pushes/999/retry", &hub.operator, "").await.is_problem(404, "not_found");
    hub.post("/v1/operator/pushes/x/retry", &hub.operator, "").await.is_problem(400, "malformed");
}

#[tokio::test]
async fn the_numbers_add_up() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "1.00").await;
    hub.succeed(&job).await;
    hub.open(&client, "sum", "1.00").await;
    hub.engine.run(Command::Remove { agent: worker.id, by_operator: false }).await.expect("gone");
    let got = hub.get("/v1/operator/stats", &hub.operator).await;
    assert_eq!((got.body["agents"].as_u64(), got.body["owners"].as_u64()), (Some(1), Some(2)));
    assert_eq!(got.body["live_jobs"], serde_json::json!({}));
    assert_eq!(
        (got.body["payments"].as_u64(), got.body["jobs_opened"].as_u64()),
        (Some(1), Some(2))
    );
    assert!(got.text.contains(r#""volume":0.05,"issued":10.00"#), "{}", got.text);
}

#[tokio::test]
async fn the_operator_lists_all_jobs_in_pages_and_sees_no_content() {
    let (hub, client, worker) = scene().await;
    let mut opened = Vec::new();
    for _ in 0..3 {
        opened.push(hub.open(&client, "sum", "1.00").await.uuid.to_string());
    }
    let ids = |body: &serde_json::Value| -> Vec<String> {
        let items = body["items"].as_array().expect("a list");
        items.iter().map(|job| job["id"].as_str().expect("an id").to_owned()).collect()
    };
    let first = hub.get("/v1/operator/jobs?limit=2", &hub.operator).await;
    assert_eq!(ids(&first.body), opened[..2]);
    assert!(!first.text.contains("\"input\"") && !first.text.contains("s3cret"), "{}", first.text);
    let cursor = first.body["next_cursor"].as_str().expect("there is more");
    let path = format!("/v1/operator/jobs?limit=2&cursor={cursor}");
    let second = hub.get(&path, &hub.operator).await;
    assert_eq!(ids(&second.body), opened[2..]);
    assert!(second.body["next_cursor"].is_null());
    let path = format!("/v1/operator/jobs/{}/cancel", opened[1]);
    assert_eq!(hub.post(&path, &hub.operator, "").await.status, 200);
    let ended = hub.get("/v1/operator/jobs?state=ended", &hub.operator).await;
    assert_eq!(ids(&ended.body), opened[1..2]);
    for key in [&client.key, &worker.key] {
        hub.get("/v1/operator/jobs", key).await.is_problem(403, "forbidden");
    }
    hub.get("/v1/operator/jobs?state=dead", &hub.operator).await.is_problem(400, "malformed");
}

#[tokio::test]
async fn a_suspended_agents_key_is_refused_with_the_reason_until_it_is_resumed() {
    let (hub, client, worker) = scene().await;
    for (whom, name) in
        [(format!("agents/{}", worker.native), "agent"), ("owners/globex".to_owned(), "owner")]
    {
        let before = newest(&hub);
        let got = hub.post(&format!("/v1/operator/{whom}/suspend"), &hub.operator, "").await;
        assert_eq!((got.status, &got.body["suspended"]), (200, &true.into()), "{}", got.text);
        let refused = hub.get("/v1/me", &worker.key).await;
        refused.is_problem(403, "suspended");
        assert!(refused.body["detail"].as_str().is_some_and(|why| why.contains("operator")));
        let message = format!(r#"{{"to":{},"body":1}}"#, client.id);
        hub.post("/v1/messages", &worker.key, &message).await.is_problem(403, "suspended");
        let ask = r#"{"skill":"sum","budget":1}"#;
        let got = hub.post("/v1/jobs", &client.key, ask).await;
        assert!(got.status >= 400, "no other agent can do it: {}", got.text);
        let listed = hub.get("/v1/operator/agents", &hub.operator).await;
        let row = &listed.body["items"][1];
        let state = if name == "agent" { "suspended" } else { "owner_suspended" };
        assert_eq!((row["id"].as_u64(), row["state"].as_str()), (Some(worker.id.0), Some(state)));
        let only = format!("/v1/operator/agents?state={state}");
        assert_eq!(
            hub.get(&only, &hub.operator).await.body["items"].as_array().map(Vec::len),
            Some(1)
        );
        // Deliveries of others are still waiting.
        let message = format!(r#"{{"to":{},"body":1}}"#, worker.id);
        assert_eq!(hub.post("/v1/messages", &client.key, &message).await.status, 200);
        let got = hub.post(&format!("/v1/operator/{whom}/resume"), &hub.operator, "").await;
        assert_eq!(got.status, 200);
        assert_eq!(hub.get("/v1/me", &worker.key).await.status, 200);
        let events = history(&hub, before).await;
        let wanted = |event: &Event| match name {
            "agent" => matches!(event, Event::AgentSuspended { .. } | Event::AgentResumed { .. }),
            _ => matches!(event, Event::OwnerSuspended { .. } | Event::OwnerResumed { .. }),
        };
        assert_eq!(events.iter().filter(|event| wanted(event)).count(), 2, "{events:?}");
    }
    assert_eq!(hub.get("/v1/me", &worker.key).await.body["inbox"]["head"], 2);
    for path in ["agents/99/suspend", "agents/nobody/resume", "owners/nobody/suspend"] {
        let got = hub.post(&format!("/v1/operator/{path}"), &hub.operator, "").await;
        got.is_problem(404, "not_found");
    }
    let path = format!("/v1/operator/agents/{}/suspend", worker.id);
    hub.post(&path, &client.key, "").await.is_problem(403, "forbidden");
}

#[tokio::test]
async fn a_new_operator_key_works_beside_the_old_one_and_a_rotated_one_instead() {
    let (hub, _, _) = scene().await;
    let issue = |body: &'static str, key: String| {
        let hub = &hub;
        async move {
            let got = hub.post("/v1/operator/keys", &key, body).await;
            assert_eq!(got.status, 201, "{}", got.text);
            got.body["key"].as_str().expect("a key").to_owned()
        }
    };
    let second = issue("{}", hub.operator.clone()).await;
    let works = async |key: &str| hub.get("/v1/operator/stats", key).await.status == 200;
    assert!(works(&hub.operator).await && works(&second).await);
    let third = issue(r#"{"retire_others":true}"#, second.clone()).await;
    assert!(works(&third).await && !works(&second).await && !works(&hub.operator).await);
    let wrong = hub.post("/v1/operator/keys", &third, r#"{"retire_others":1}"#).await;
    wrong.is_problem(400, "malformed");
}

#[tokio::test]
async fn a_hub_of_one_node_is_shown_as_a_writer() {
    let hub = Hub::start().await;
    let got = hub.get("/v1/operator/cluster", &hub.operator).await;
    assert_eq!((got.status, got.body["role"].as_str()), (200, Some("writer")), "{}", got.text);
    assert_eq!(got.body["node"], "0000000000000000");
    let [node] = got.body["nodes"].as_array().expect("a list").as_slice() else {
        panic!("{}", got.text)
    };
    assert_eq!((&node["node"], &node["role"]), (&got.body["node"], &got.body["role"]));
    assert_eq!(node["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(node["seen_at"], "2026-02-11T12:00:00.000Z");
}
