//! One handler of each kind behind the real binary, called over every protocol by the client
//! library.

use std::time::Duration;

use rialto_client::{CallError, agora, openclaw, registry, relay};
use rialto_core::time::Timestamp;
use rialto_protocols::kit::rfc3339;
use serde_json::{Value, json};
use uuid::Uuid;

use super::running::{Handler, Place, Running};
use crate::kit::eventually;

const SOON: Duration = Duration::from_secs(60);
const ID: &str = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";

/// The result of the same request in each protocol: the text, or the error.
type Told = Result<String, String>;

fn input(text: &str) -> String {
    json!({ "text": text }).to_string()
}

fn made(output: &str) -> String {
    let output: Value = serde_json::from_str(output).expect("JSON");
    output["text"].as_str().expect("a text").to_owned()
}

async fn by_registry(agent: &Running, text: &str) -> Told {
    let job = registry::JobSpec::new("shout", input(text)).build().expect("a job");
    let peer = registry::direct::Peer::new(&agent.url).expect("a peer");
    match peer.hire(&job).await.expect("an answer").outcome {
        registry::JobOutcome::Done(output) => Ok(made(&output)),
        registry::JobOutcome::Failed { message, .. } => Err(message),
        other => panic!("{other:?}"),
    }
}

async fn by_relay(agent: &Running, text: &str) -> Told {
    let letter =
        relay::EnvelopeSpec::new("a@home.example", "en", text).build().expect("an envelope");
    let asking = format!(r#"{{"input":{},"#, input(text));
    let letter = relay::ValidEnvelope::read(&letter.as_str().replacen('{', &asking, 1))
        .expect("an envelope");
    let reply = relay::direct::send(&format!("{}/receive", agent.url), &letter).await;
    let reply: Value = serde_json::from_str(&reply.expect("a reply").raw).expect("JSON");
    let text = |name: &str| reply[name].as_str().map(str::to_owned);
    match text("reply") {
        Some(made) => Ok(made),
        None => Err(text("detail").expect("a reason")),
    }
}

async fn by_openclaw(agent: &Running, text: &str) -> Told {
    let node =
        openclaw::direct::Peer::connect(&agent.url, Uuid::from_u128(1)).await.expect("a node");
    let asked =
        node.request(&openclaw::RequestSpec::new("shout", &input(text))).await.expect("asked");
    let openclaw::RequestEnd::Result(result) = node.result(&asked, SOON).await.expect("an end")
    else {
        panic!("no result")
    };
    match result.body.outcome {
        openclaw::ResultOutcome::Completed { output_data } => Ok(made(&output_data)),
        openclaw::ResultOutcome::Failed(failed) => Err(failed.message.to_string()),
        other => panic!("{other:?}"),
    }
}

async fn by_agora(agent: &Running, text: &str) -> Told {
    let me = agora::Identity::new(&agora::Seed::from_bytes([1; 32]));
    let order = agora::RequestSpec::new("agora:shout:v1", input(text));
    match agora::direct::request(&agent.url, me, &order, |_| true).await {
        Ok(agora::RequestOutcome::Done(work)) => Ok(made(&work.data)),
        Err(CallError::Refused { status: 500, message, .. }) => Err(message),
        other => panic!("{other:?}"),
    }
}

async fn post(agent: &Running, path: &str, body: &str, delivery: Option<&str>) -> (u16, Value) {
    let client = reqwest::Client::builder().no_proxy().build().expect("a client");
    let mut request = client.post(format!("{}{path}", agent.url)).body(body.to_owned());
    if let Some(id) = delivery {
        request = request.header("webhook-id", id);
    }
    let answer = request.send().await.expect("an answer");
    let (status, text) = (answer.status().as_u16(), answer.text().await.expect("text"));
    (status, serde_json::from_str(&text).expect("JSON"))
}

fn now() -> Timestamp {
    Timestamp(jiff::Timestamp::now().as_millisecond())
}

fn signed(by: u8, text: &str) -> String {
    let me = agora::Identity::new(&agora::Seed::from_bytes([by; 32]));
    let payload = json!({"resource": "shout", "params": {"text": text}}).to_string();
    let sealed = me.sign_with_id(ID, now(), agora::MessageType::Request, &payload, None);
    sealed.expect("sealed").as_str().to_owned()
}

fn enveloped(sender: &str, text: &str) -> String {
    let envelope = json!({"chorus_version": "0.4", "sender_id": sender, "original_text": text,
        "sender_culture": "en", "input": {"text": text}});
    json!({ "envelope": envelope }).to_string()
}

/// Every requester gets a result or an error.
async fn all_are_served(place: &Place) {
    let agent = place.start().await;
    for (text, wanted) in [("hi", Ok("HI".to_owned())), ("fail", Err("no paper".to_owned()))] {
        assert_eq!(by_registry(&agent, text).await, wanted);
        assert_eq!(by_relay(&agent, text).await, wanted);
        assert_eq!(by_openclaw(&agent, text).await, wanted);
        assert_eq!(by_agora(&agent, text).await, wanted);
    }
    assert_eq!(place.runs(), ["hi", "hi", "hi", "hi", "fail", "fail", "fail", "fail"]);
}

/// Requesters that choose the same id get separate jobs, also at the same time.
async fn equal_ids_are_told_apart(place: &Place) {
    let agent = place.start().await;
    let (one, two) = (signed(1, "one"), signed(2, "two"));
    let (three, four) = (enveloped("c@home.example", "three"), enveloped("d@home.example", "four"));
    let (one, two, three, four) = tokio::join!(
        post(&agent, "/agora", &one, None),
        post(&agent, "/agora", &two, None),
        post(&agent, "/receive", &three, Some(ID)),
        post(&agent, "/receive", &four, Some(ID)),
    );
    for (answer, wanted) in [(&one, "ONE"), (&two, "TWO")] {
        assert_eq!(answer.1["payload"]["data"]["text"], wanted, "{answer:?}");
        assert_eq!(answer.1["payload"]["request_id"], ID);
    }
    assert_eq!((&three.1["reply"], &four.1["reply"]), (&json!("THREE"), &json!("FOUR")));
}

/// An answer from before SIGKILL is repeated after it, and nothing runs twice.
async fn a_restart_forgets_nothing(place: &Place) {
    let input = json!({"text": "once"});
    let job = json!({"job_id": ID, "orchestrator_id": "a", "skill_name": "shout",
        "input_data": input, "budget": 0})
    .to_string();
    let ask = json!({"request_id": ID, "requester_agent_id": ID, "idempotency_key": "k",
        "capability_id": "shout", "input_data": input, "correlation_id": ID,
        "timestamp": rfc3339::format_millis(now())})
    .to_string();
    let (envelope, letter) = (signed(1, "once"), enveloped("a@home.example", "once"));
    let mut answers = Vec::new();
    for _ in 0..2 {
        let agent = place.start().await;
        let (_, asked) = post(&agent, "/openclaw", &ask, None).await;
        let id = asked["collaboration_id"].as_str().expect("an id").to_owned();
        let url = format!("{}/openclaw/collaborations/{id}?wait=30", agent.url);
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let seen = client.get(url).send().await.expect("an answer").text().await.expect("text");
        let seen: Value = serde_json::from_str(&seen).expect("JSON");
        assert_eq!(seen["result"]["output_data"], json!({"text": "ONCE"}), "{seen}");
        answers.push([
            (200, seen["result"].clone()),
            post(&agent, "/jobs", &job, None).await,
            post(&agent, "/receive", &letter, Some(ID)).await,
            post(&agent, "/agora", &envelope, None).await,
        ]);
        agent.kill();
    }
    assert_eq!(answers[0], answers[1]);
    assert_eq!(place.runs(), ["once"; 4]);
    let agent = place.start().await;
    let other = post(&agent, "/jobs", &job.replace("once", "twice"), None).await;
    assert_eq!((other.0, &other.1["error_code"]), (422, &json!("IDEMPOTENCY_CONFLICT")));
}

async fn stands_up_to_all(handler: Handler) {
    all_are_served(&Place::new(handler).await).await;
    equal_ids_are_told_apart(&Place::new(handler).await).await;
    a_restart_forgets_nothing(&Place::new(handler).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_for_each_job_answers_requesters_of_every_protocol() {
    stands_up_to_all(Handler::Exec).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_stays_answers_requesters_of_every_protocol() {
    stands_up_to_all(Handler::Persistent).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_of_ones_own_answers_requesters_of_every_protocol() {
    stands_up_to_all(Handler::Http).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_told_to_stop_leaves_no_program_behind() {
    // It ignores SIGTERM and closed pipes.
    let stubborn = r#"trap "" TERM; echo $$ >pid.new; mv pid.new pid; while :; do sleep 1; done"#;
    for flags in [&["--exec", stubborn][..], &["--persistent", "--exec", stubborn]] {
        let place = Place::with(flags);
        let agent = place.start().await;
        let url = format!("{}/jobs", agent.url);
        let body = json!({"skill_name": "shout", "input_data": {}, "budget": 0}).to_string();
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let asking = tokio::spawn(client.post(url).body(body).send());
        eventually(async || !place.text("pid").is_empty()).await;
        agent.terminate().await;
        // It never ends by itself. A killed process may take a moment to disappear.
        let pid = place.text("pid");
        eventually(async || is_gone(pid.trim())).await;
        let _ = asking.await;
    }
}

/// Whether no process with that id runs; a zombie does not count.
fn is_gone(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    // The program's name is in parentheses and may contain any character.
    stat.ok().is_none_or(|stat| {
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('Z'))
    })
}
