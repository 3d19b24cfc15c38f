//! An agent that is killed and restarted with the same state directory.

use std::sync::Arc;
use std::time::Duration;

use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Reply, Stand, Works, shouting};
use crate::agent::program::Exec;
use crate::agent::{AgentError, Handlers, Skill, StateDir};
use crate::agora::{Identity, MessageType, Seed};
use crate::clock;

const ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// Opens the state directory once it is free. A program that another test is just starting holds a
/// copy of every open file, including the lock, until its exec.
async fn state_dir(dir: &TempDir) -> StateDir {
    for _ in 0..500 {
        match StateDir::open(dir.path()) {
            Err(AgentError::AlreadyRunning { .. }) => {
                tokio::time::sleep(Duration::from_millis(10)).await
            }
            taken => return taken.expect("a seat"),
        }
    }
    panic!("the state directory stays locked");
}

async fn stand(dir: &TempDir, works: &Works) -> Stand {
    Stand::in_seat(state_dir(dir).await, works, works.all()).await
}

/// The same request in every protocol, as sent over the wire.
struct Orders {
    registry: String,
    relay: String,
    openclaw: String,
    agora: String,
}

fn me() -> Identity {
    Identity::new(&Seed::from_bytes([1; 32]))
}

fn signed(kind: MessageType, payload: &Value) -> String {
    me().sign(kind, &payload.to_string(), None).expect("sealed").as_str().to_owned()
}

impl Orders {
    fn new(skill: &str) -> Self {
        let input = json!({"text": "hi"});
        let envelope = json!({"chorus_version": "0.4", "sender_id": "a@home.example",
            "original_text": "hi", "sender_culture": "en", "skill": skill, "input": input});
        Self {
            registry: json!({"job_id": ID, "orchestrator_id": "a", "skill_name": skill,
                "input_data": input, "budget": 0})
            .to_string(),
            relay: json!({"envelope": envelope}).to_string(),
            openclaw: json!({"request_id": ID, "requester_agent_id": ID, "idempotency_key": "k",
                "capability_id": skill, "input_data": input, "correlation_id": ID,
                "timestamp": rfc3339::format_millis(clock::now())})
            .to_string(),
            agora: signed(MessageType::Request, &json!({"resource": skill, "params": input})),
        }
    }
}

async fn deliver(stand: &Stand, body: &str) -> Reply {
    let delivery = [("webhook-id", ID)];
    stand.send(reqwest::Method::POST, "/receive", body.to_owned(), &delivery).await
}

async fn collaborate(stand: &Stand, body: &str) -> (String, Value) {
    let id = stand.post("/openclaw", body).await.json()["collaboration_id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    let path = format!("/openclaw/collaborations/{id}?wait=20");
    let seen = stand.get(&path).await.json();
    (id, seen["result"].clone())
}

#[tokio::test]
async fn what_was_answered_is_answered_alike_and_nothing_is_done_twice() {
    let (dir, works, orders) =
        (tempfile::tempdir().expect("a directory"), Works::new(), Orders::new("echo"));
    let mut answers = Vec::new();
    for _ in 0..2 {
        let stand = stand(&dir, &works).await;
        let (collaboration, result) = collaborate(&stand, &orders.openclaw).await;
        assert_eq!(result["output_data"], json!({"text": "hi"}));
        answers.push([
            stand.post("/jobs", &orders.registry).await.text,
            deliver(&stand, &orders.relay).await.text,
            stand.post("/agora", &orders.agora).await.text,
            collaboration,
            result.to_string(),
        ]);
        stand.kill().await;
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(works.begun(), 4);
}

#[tokio::test]
async fn an_id_means_the_same_after_a_restart() {
    let (dir, works, orders) =
        (tempfile::tempdir().expect("a directory"), Works::new(), Orders::new("echo"));
    for (text, statuses) in [("hi", [200, 200, 200]), ("ho", [422, 400, 400])] {
        let stand = stand(&dir, &works).await;
        let other = |body: &str| body.replace(r#""text":"hi""#, &format!(r#""text":"{text}""#));
        let again = me().sign_with_id(
            ID,
            clock::now(),
            MessageType::Request,
            &format!(r#"{{"resource":"echo","params":{{"text":"{text}"}}}}"#),
            None,
        );
        let told = [
            stand.post("/jobs", other(&orders.registry)).await.status,
            deliver(&stand, &other(&orders.relay)).await.status,
            stand.post("/agora", again.expect("sealed").as_str()).await.status,
        ];
        assert_eq!(told, statuses);
        // This protocol returns the first result and says so (openclaw R65).
        let reply = stand.post("/openclaw", other(&orders.openclaw)).await;
        assert_eq!(reply.headers.contains_key("idempotency-mismatch"), text == "ho");
        let id = reply.json()["collaboration_id"].as_str().expect("an id").to_owned();
        stand.get(&format!("/openclaw/collaborations/{id}?wait=20")).await;
        // Another requester's job with that id is a different job.
        let theirs =
            orders.registry.replace(r#""orchestrator_id":"a""#, r#""orchestrator_id":"b""#);
        assert_eq!(stand.post("/jobs", theirs).await.status, 409);
        stand.kill().await;
    }
    assert_eq!(works.begun(), 4);
}

#[tokio::test]
async fn what_was_begun_is_begun_again_under_the_same_id() {
    let (dir, works, orders) =
        (tempfile::tempdir().expect("a directory"), Works::new(), Orders::new("held"));
    let first = stand(&dir, &works).await;
    // There are two permits, so two requests start at the same time.
    tokio::select! {
        _ = stand_two(&first, &orders) => panic!("nothing ends here"),
        () = first.begun(2) => {}
    }
    first.kill().await;
    works.gate.add_permits(8);
    let second = stand(&dir, &works).await;
    assert_eq!(second.get(&format!("/jobs/{ID}")).await.status, 404, "it is not running");
    let other = orders.registry.replace(r#""text":"hi""#, r#""text":"ho""#);
    assert_eq!(second.post("/jobs", other).await.status, 422);
    let (job, message) = stand_two(&second, &orders).await;
    assert_eq!((job.status, message.status), (200, 200));
    let mut ids = works.ids();
    ids.sort();
    assert_eq!((ids.len(), &ids[0], &ids[2]), (4, &ids[1], &ids[3]));
}

async fn stand_two(stand: &Stand, orders: &Orders) -> (Reply, Reply) {
    tokio::join!(stand.post("/jobs", &orders.registry), stand.post("/agora", &orders.agora))
}

#[tokio::test]
async fn what_a_node_accepted_goes_on_by_itself() {
    let (dir, works, orders) =
        (tempfile::tempdir().expect("a directory"), Works::new(), Orders::new("held"));
    let first = stand(&dir, &works).await;
    let id = first.post("/openclaw", &orders.openclaw).await.json()["collaboration_id"].clone();
    let id = id.as_str().expect("an id").to_owned();
    first.begun(1).await;
    first.kill().await;
    works.gate.add_permits(8);
    let second = stand(&dir, &works).await;
    let seen = second.get(&format!("/openclaw/collaborations/{id}?wait=20")).await.json();
    assert_eq!(seen["result"]["output_data"], json!({"text": "hi"}), "{seen}");
    assert_eq!(works.ids(), [id.clone(), id]);
}

#[tokio::test]
async fn an_offer_that_was_made_before_is_taken_after() {
    let (dir, works) = (tempfile::tempdir().expect("a directory"), Works::new());
    let first = stand(&dir, &works).await;
    let request = json!({"resource": "shout", "params": {"text": "hi"}});
    let offer = first.post("/agora", signed(MessageType::Request, &request)).await.json();
    assert_eq!(offer["type"], "OFFER");
    first.kill().await;
    let accept = signed(MessageType::Accept, &json!({"offer_id": offer["id"]}));
    let mut answers = Vec::new();
    for _ in 0..2 {
        let stand = stand(&dir, &works).await;
        let reply = stand.post("/agora", &accept).await;
        assert_eq!(reply.json()["payload"]["data"], json!({"text": "HI"}));
        answers.push(reply.text);
        // An offer can be accepted only once, whatever message accepts it.
        let other = signed(MessageType::Accept, &json!({"offer_id": offer["id"]}));
        assert_eq!(stand.post("/agora", other).await.status, 400);
        stand.kill().await;
    }
    assert_eq!((&answers[0], works.begun()), (&answers[1], 1));
}

#[tokio::test]
async fn the_record_of_a_run_is_closed_when_its_answer_is_kept() {
    let dir = tempfile::tempdir().expect("a directory");
    let (state_dir, works) = (state_dir(&dir).await, Works::new());
    let records = state_dir.records().expect("records");
    let free = |name| Skill::new(name, "0").expect("a skill");
    let exec = |line: &str| Exec::new(line, records.clone(), Arc::new(|_: &str, _: &str| {}));
    let setup = Handlers::builder()
        .skill(shouting(), exec("cat"))
        .skill(free("echo"), exec("echo one >&2; cat"))
        .skill(free("decline"), exec("exit 75"));
    let stand = Stand::in_seat(state_dir, &works, setup).await;
    let orders = Orders::new("echo");
    stand.post("/jobs", &orders.registry).await;
    deliver(&stand, &orders.relay).await;
    stand.post("/agora", &orders.agora).await;
    collaborate(&stand, &orders.openclaw).await;
    deliver(&stand, &Orders::new("decline").relay).await;
    while !records.list_open().expect("records").is_empty() {
        tokio::task::yield_now().await;
    }
    let logs = std::fs::read_dir(dir.path().join("logs")).expect("logs");
    assert_eq!(logs.count(), 4);
}

/// Journal lines as version 0.1.0 wrote them: answered requests of two protocols, and one of a
/// third that was interrupted.
const OLD_JOURNALS: [(&str, &str); 3] = [
    (
        "registry",
        r#"{"scope":"3947a743fb0c1652a027451e44740cf1","content":"0a7ab4c79bc2e687477b268f5c7ec4ae","until":9795028734159,"over":false,"note":"{\"job_id\":\"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\",\"orchestrator\":\"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f\",\"result\":null}"}
{"scope":"3947a743fb0c1652a027451e44740cf1","content":"0a7ab4c79bc2e687477b268f5c7ec4ae","until":9795028734159,"over":true,"note":"{\"job_id\":\"f81d4fae-7dec-11d0-a765-00a0c91e6bf6\",\"orchestrator\":\"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f\",\"result\":\"{\\\"status\\\":\\\"SUCCESS\\\"}\"}"}
"#,
    ),
    (
        "relay",
        r#"{"scope":"3380d43a2bf708b531ae327daa7462ad","content":"2ab24b775ac3e735e8cf00efc01b6060","until":9795028734366,"over":false,"note":null}
{"scope":"3380d43a2bf708b531ae327daa7462ad","content":"2ab24b775ac3e735e8cf00efc01b6060","until":9795028734406,"over":true,"note":"{\"status\":200,\"body\":\"{\\\"status\\\":\\\"ok\\\",\\\"reply\\\":\\\"HELLO\\\"}\"}"}
"#,
    ),
    (
        "openclaw",
        r#"{"scope":"611bed375fcebf9ac4b6b282c89651e9","content":"ca4ad121389138e5c78b3a4695c92ff4","until":9795028734498,"over":false,"note":"{\"id\":\"756b127a-1ad7-4470-ad65-fe9ffe623e51\",\"request\":\"{\\\"request_id\\\":\\\"2e37df36-f698-41e6-8a1c-0d2f6e2c7a10\\\",\\\"requester_agent_id\\\":\\\"a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f\\\",\\\"capability_id\\\":\\\"shout\\\",\\\"input_data\\\":{\\\"text\\\":\\\"slowclaw\\\"},\\\"correlation_id\\\":\\\"1e37df36-f698-41e6-8a1c-0d2f6e2c7a10\\\",\\\"timestamp\\\":\\\"2026-11-17T19:00:00Z\\\",\\\"message_type\\\":\\\"collaboration_request\\\",\\\"protocol_version\\\":\\\"1.0.0\\\"}\",\"accepted_at\":1794942334498,\"over\":null}"}
"#,
    ),
];

#[tokio::test]
async fn journals_of_an_earlier_version_are_read() {
    let (dir, works) = (tempfile::tempdir().expect("a directory"), Works::new());
    std::fs::create_dir(dir.path().join("peers")).expect("a directory");
    for (protocol, lines) in OLD_JOURNALS {
        std::fs::write(dir.path().join("peers").join(protocol), lines).expect("written");
    }
    let stand = stand(&dir, &works).await;
    let job = json!({"job_id": ID, "orchestrator_id": "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f",
        "skill_name": "shout", "input_data": {"text": "hi"}, "budget": 0.15,
        "currency": "chorus_credits_v1"});
    assert_eq!(stand.post("/jobs", job).await.text, r#"{"status":"SUCCESS"}"#);
    let envelope = json!({"envelope": {"chorus_version": "0.4", "sender_id": "alice@home",
        "original_text": "hello", "sender_culture": "en"}});
    let delivery = [("webhook-id", "w1")];
    let reply =
        stand.send(reqwest::Method::POST, "/receive", envelope.to_string(), &delivery).await;
    assert_eq!(reply.text, r#"{"status":"ok","reply":"HELLO"}"#);
    let path = "/openclaw/collaborations/756b127a-1ad7-4470-ad65-fe9ffe623e51?wait=20";
    let continued = stand.get(path).await.json();
    assert_eq!(continued["result"]["output_data"], json!({"text": "SLOWCLAW"}));
    assert_eq!(works.begun(), 1, "only the interrupted request runs");
}
