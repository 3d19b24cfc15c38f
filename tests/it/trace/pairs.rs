//! Traces of jobs between protocols.

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::kit::{Hub, assert_accounted, assert_fate, assert_hop, assert_renamed, message, opened};
use crate::agora::kit::Key;
use crate::clara::kit::Wallet;
use crate::openclaw::kit::fresh_id;

#[tokio::test(flavor = "multi_thread")]
async fn registry_to_openclaw() {
    let hub = Hub::serve().await;
    let (boss, claw) = (hub.boss().await, hub.claw("worker").await);
    let alias = hub.offering("sum").await;
    let job_id = fresh_id();
    let more = json!({"job_id": job_id, "agent_id": alias, "currency": "chorus_credits_v1",
        "callback_url": "http://127.0.0.1:9/secret", "timestamp_utc": "2026-01-01T00:00:00Z",
        "tone": {"warm": 1.5}, "meta": [1]});
    let mut works = hub.inbox_from("/openclaw/stream", &claw.key, None).await;
    let reply = hub.job(&boss, &alias, more.clone()).await;
    let uuid = opened(&reply);
    let told = works.until("collaboration_request").await.data;
    let trace = hub.trace(&uuid, &boss.key).await;
    let hop = assert_hop(&trace, "request", "registry", "openclaw");
    assert_accounted(&with_orchestrator(more, &boss.id), &hop["notes"], "");
    assert_renamed(hop, "/job_id", "/request_id");
    assert_renamed(hop, "/orchestrator_id", "/requester_agent_id");
    assert_renamed(hop, "/skill_name", "/capability_id");
    assert_fate(hop, "/input_data", "kept");
    assert_fate(hop, "/callback_url", "dropped");
    assert_fate(hop, "/timestamp_utc", "dropped");
    // A member unknown to all protocols is forwarded under one name (B11).
    assert_renamed(hop, "/tone", "/meta/tone");
    assert_renamed(hop, "/meta", "/meta/meta");
    assert_fate(hop, "/correlation_id", "defaulted");
    assert_fate(hop, "/deadline", "defaulted");
    let (asked, given) = (message(hop, "asked"), message(hop, "given"));
    assert_eq!((&asked["job_id"], &given["request_id"]), (&json!(job_id), &json!(uuid)));
    assert_eq!(given, told, "the trace has what the worker fetched");
    assert_eq!(given["meta"], json!({"tone": {"warm": 1.5}, "meta": [1]}));

    let done = json!({"collaboration_id": uuid, "request_id": uuid, "correlation_id": uuid,
        "responder_agent_id": claw.id, "result_status": "completed", "output_data": {"r": 1.0},
        "timestamp": "2026-01-01T00:00:00Z", "mood": "fine"});
    let path = format!("/openclaw/collaborations/{uuid}/result");
    hub.post(&path, Some(&claw.key), &done).await.expect(200);
    let trace = hub.trace(&uuid, &boss.key).await;
    let hop = assert_hop(&trace, "result", "openclaw", "registry");
    assert_accounted(&done, &hop["notes"], "");
    assert_fate(hop, "/output_data", "kept");
    assert_renamed(hop, "/result_status", "/status");
    assert_renamed(hop, "/request_id", "/job_id");
    assert_fate(hop, "/mood", "dropped");
    assert_eq!(message(hop, "given")["job_id"], json!(job_id));
    assert_eq!(trace["state"], "completed");
    assert_eq!(trace["worker"]["id"], json!(claw.id));
    assert_eq!(trace["worker"]["aliases"]["registry"], json!(alias));
    assert_eq!(trace["requester"]["protocol"], "registry");
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_and_digits_cross_as_they_were_written() {
    let hub = Hub::serve().await;
    let (boss, claw) = (hub.boss().await, hub.claw("worker").await);
    let path = format!("/registry/agents/{}/jobs", hub.offering("sum").await);
    let input = r#"{ "a":0.50, "b":1e3,"c":"\u00e9 \/" }"#;
    let tone = r#"{"warm" : 1.50}"#;
    let body = format!(r#"{{"skill_name":"sum","budget":0,"tone":{tone},"input_data":{input}}}"#);
    let reply = hub.call("POST", &path, Some(&boss.key), Some(&body)).await;
    let trace = hub.trace(&opened(&reply), &claw.key).await;
    for side in ["asked", "given"] {
        let text = trace["hops"][0][side].as_str().expect("text");
        assert!(text.contains(input) && text.contains(tone), "{side}: {text}");
    }
}

fn with_orchestrator(mut body: Value, id: &str) -> Value {
    body["orchestrator_id"] = id.into();
    body["skill_name"] = "sum".into();
    body["input_data"] = json!({"a": 0.5});
    body["budget"] = json!(6);
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn openclaw_to_agora() {
    let hub = Hub::serve().await;
    let claw = hub.claw("asker").await;
    let provider = Key::of(2);
    let reads = hub.provider(&provider, "agora:sum:v1", Some(json!(0))).await;
    let alias = hub.alias("/openclaw/agents", provider.did()).await;
    let more = json!({"responder_agent_id": alias, "priority": 3, "budget": 1,
        "idempotency_key": "k-1", "protocol_version": "1.0.0", "shade": "blue"});
    let (request, reply) = hub.collaborate(&claw, more).await;
    let uuid = opened(&reply);
    let trace = hub.trace(&uuid, &claw.key).await;
    let hop = assert_hop(&trace, "request", "openclaw", "agora");
    assert_accounted(&request, &hop["notes"], "");
    assert_renamed(hop, "/request_id", "/id");
    assert_renamed(hop, "/requester_agent_id", "/sender/id");
    assert_renamed(hop, "/capability_id", "/payload/resource");
    assert_renamed(hop, "/input_data", "/payload/params");
    assert_renamed(hop, "/shade", "/payload/meta/shade");
    for gone in ["/priority", "/correlation_id", "/idempotency_key", "/protocol_version"] {
        assert_fate(hop, gone, "dropped");
    }
    assert_fate(hop, "/sender/signature", "defaulted");
    // It is the envelope that the provider got in its inbox.
    assert_eq!(message(hop, "given"), hub.newest(&reads).await);
    assert_eq!(message(hop, "asked")["input_data"], request["input_data"]);

    let result = provider.result(&uuid);
    hub.tell(&result).await.expect(202);
    let trace = hub.trace(&uuid, &claw.key).await;
    let hop = assert_hop(&trace, "result", "agora", "openclaw");
    assert_renamed(hop, "/payload/data", "/output_data");
    assert_renamed(hop, "/payload/request_id", "/collaboration_id");
    assert_eq!(message(hop, "given")["output_data"], json!({"n": 1}));
    assert_fate(hop, "/correlation_id", "defaulted");
}

#[tokio::test(flavor = "multi_thread")]
async fn agora_to_registry() {
    let hub = Hub::serve().await;
    let (alice, token) = hub.alice().await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let alias = hub.alias("/agora/agents", &worker.id).await;
    let payload = json!({"resource": "agora:summarize:v1", "params": {"q": "weather", "n": 1.5},
        "budget": {"max": 2, "currency": "credits"}, "timeout": 60_000, "hint": "short"});
    let request = alice.sign(MessageType::Request, &payload);
    let reply = hub.tell_to(&alias, &request).await.expect(202);
    let uuid = opened(&reply);
    assert_eq!(hub.work(&worker).await["job_id"], json!(uuid));
    // By the hub's id and by her own, with her inbox token.
    let trace = hub.trace(&request.id, &token.0).await;
    assert_eq!(trace, hub.trace(&uuid, &token.0).await);
    let hop = assert_hop(&trace, "request", "agora", "registry");
    assert_accounted(&request.json(), &hop["notes"], "");
    assert_eq!(hop["asked"].as_str(), Some(request.text.as_str()), "verbatim");
    assert_renamed(hop, "/id", "/job_id");
    assert_renamed(hop, "/sender/id", "/orchestrator_id");
    assert_renamed(hop, "/payload/resource", "/skill_name");
    assert_renamed(hop, "/payload/params", "/input_data");
    assert_renamed(hop, "/payload/budget/max", "/budget");
    assert_renamed(hop, "/payload/hint", "/meta/hint");
    assert_fate(hop, "/sender/signature", "dropped");
    assert_fate(hop, "/payload/timeout", "dropped");

    hub.report(&worker, &uuid, "SUCCESS", "0").await.expect(200);
    let trace = hub.trace(&uuid, &token.0).await;
    let hop = assert_hop(&trace, "result", "registry", "agora");
    assert_renamed(hop, "/output_data", "/payload/data");
    assert_renamed(hop, "/job_id", "/payload/request_id");
    assert_renamed(hop, "/status", "/payload/status");
    assert_eq!(
        message(hop, "given"),
        hub.newest(&token).await,
        "the trace has the envelope from her inbox"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn clara_to_registry_and_back_in_failure() {
    let hub = Hub::serve().await;
    let wallet = Wallet::of(9);
    hub.grant(&format!("clara:{}", wallet.address()), "100").await;
    let worker = hub.agent("acme", "tweet", "12.00", None).await;
    let tags = [
        ("Action", "Register-Task"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
        ("Context-Id", "thread-7"),
        ("Shade", "blue"),
    ];
    let (task, reply) = hub.market(&wallet, &tags, r#"{"say":1.50}"#).await;
    let uuid = opened(&reply);
    let trace = hub.trace(&uuid, &worker.key).await;
    let hop = assert_hop(&trace, "request", "clara", "registry");
    for (name, _) in tags {
        let notes = hop["notes"].as_array().expect("notes");
        assert_eq!(notes.iter().filter(|note| note["field"] == name).count(), 1, "{name}");
    }
    assert_renamed(hop, "/Id", "/job_id");
    assert_renamed(hop, "/Owner", "/orchestrator_id");
    assert_renamed(hop, "RedStone-Agent-Topic", "/skill_name");
    assert_renamed(hop, "RedStone-Agent-Reward", "/budget");
    assert_renamed(hop, "/Data", "/input_data");
    assert_renamed(hop, "Shade", "/meta/Shade");
    assert_fate(hop, "Context-Id", "dropped");
    assert_fate(hop, "RedStone-Agent-Matching", "dropped");
    assert_eq!(message(hop, "asked")["Id"], json!(task));
    assert_eq!(hub.work(&worker).await["meta"], json!({"Shade": "blue"}));
    assert_eq!(trace["money"]["price"], json!(12.0));

    hub.report(&worker, &uuid, "SUCCESS", "12.00").await.expect(200);
    let trace = hub.trace(&uuid, &worker.key).await;
    let hop = assert_hop(&trace, "result", "registry", "clara");
    assert_renamed(hop, "/output_data", "/Data/result");
    assert_renamed(hop, "/execution_cost", "Fee");
}

#[tokio::test(flavor = "multi_thread")]
async fn registry_to_clara_and_to_relay() {
    let hub = Hub::serve().await;
    let boss = hub.boss().await;
    let clara = Wallet::of(1);
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "2"),
        ("RedStone-Agent-Id", "A"),
    ];
    hub.market(&clara, &tags, "{}").await;
    let alias = hub.offering("clara.tweet").await;
    let reply = hub.job(&boss, &alias, json!({"skill_name": "clara.tweet", "shade": 1})).await;
    let trace = hub.trace(&opened(&reply), &boss.key).await;
    let hop = assert_hop(&trace, "request", "registry", "clara");
    assert_renamed(hop, "/job_id", "TaskId");
    assert_renamed(hop, "/input_data", "/Data/payload");
    assert_renamed(hop, "/budget", "/Data/reward");
    assert_renamed(hop, "/skill_name", "/Data/topic");
    assert_fate(hop, "/shade", "dropped");
    assert_fate(hop, "/Data/strategy", "defaulted");

    let peer = hub.join("reader@chorus").await;
    let _open = hub.inbox(&peer).await;
    let alias = hub.offering("message").await;
    let more = json!({"skill_name": "message", "input_data": {"text": "hello"}, "shade": 1});
    let reply = hub.job(&boss, &alias, more).await;
    let trace = hub.trace(&opened(&reply), &boss.key).await;
    let hop = assert_hop(&trace, "request", "registry", "relay");
    assert_renamed(hop, "/input_data", "/envelope/original_text");
    assert_renamed(hop, "/job_id", "/envelope/conversation_id");
    assert_renamed(hop, "/shade", "/meta/shade");
    assert_eq!(message(hop, "given")["envelope"]["original_text"], "hello");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_that_is_work_tells_what_became_of_its_text() {
    let hub = Hub::serve().await;
    let worker = hub.agent("acme", "sum", "0", None).await;
    let peer = hub.join("writer@chorus").await;
    let to = hub.alias("/relay/agents", &worker.id).await;
    let envelope = json!({"chorus_version": "0.4", "sender_id": "writer@chorus",
        "original_text": "please add", "sender_culture": "fr", "conversation_id": "c-1",
        "turn_number": 3, "skill": "sum", "input": {"a": 1}, "shade": "blue"});
    let body = json!({"receiver_id": to, "envelope": envelope});
    let reply = hub.post("/relay/messages", Some(&peer.key), &body).await;
    assert!(reply.status < 300, "{}", reply.text);
    let trace = hub.trace(&opened(&reply), &peer.key).await;
    let hop = assert_hop(&trace, "request", "relay", "registry");
    assert_accounted(&envelope, &hop["notes"], "");
    assert_renamed(hop, "/input", "/input_data");
    assert_renamed(hop, "/original_text", "/meta/original_text");
    assert_fate(hop, "/conversation_id", "dropped");
    assert_fate(hop, "/sender_culture", "dropped");
    assert_eq!(
        trace["hops"][0],
        hub.trace("c-1", &peer.key).await["hops"][0],
        "found by the requester's own id"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn inside_a_protocol_everything_is_kept_but_where_to_answer() {
    let hub = Hub::serve().await;
    let (boss, worker) = (hub.boss().await, hub.agent("acme", "sum", "0.50", None).await);
    let more = json!({"job_id": fresh_id(), "tone": "dry", "meta": {"a": 1},
        "callback_url": "http://127.0.0.1:9/secret", "timestamp_utc": "2026-01-01T00:00:00Z"});
    let reply = hub.job(&boss, &worker.id, more).await;
    let uuid = opened(&reply);
    let trace = hub.trace(&uuid, &boss.key).await;
    let hop = assert_hop(&trace, "request", "registry", "registry");
    for note in hop["notes"].as_array().expect("notes") {
        let wanted = match note["field"].as_str().expect("a field") {
            // The recipient does not need its own id.
            "/agent_id" => ["dropped", "dropped"],
            "/callback_url" => ["dropped", "defaulted"],
            _ => ["kept", "kept"],
        };
        assert!(wanted.iter().any(|fate| note["fate"] == *fate), "{note}");
    }
    let mut given = message(hop, "given");
    given["callback_url"] = hub.work(&worker).await["callback_url"].clone();
    assert_eq!(
        given,
        hub.work(&worker).await,
        "the trace has what the worker fetched, except the URL"
    );
}
