use std::sync::atomic::{AtomicUsize, Ordering};

use rialto_core::time::Timestamp;
use rialto_protocols::agora::MessageType;
use rialto_protocols::agora::wire::hello::Welcome;
use rialto_protocols::agora::wire::status::MessageStatus;
use serde_json::{Value, json};

use super::hub::{hub, identity};
use crate::CallError;
use crate::agora::{
    Agent, AgentStatus, EnvelopeResponse, Profile, RequestSpec, RequestState, RetryPolicy, Server,
    Skill,
};
use crate::clock;
use crate::testing::{TestServer, answer};

/// A test server that describes itself and answers each POST as the test specifies.
async fn stage(
    post: impl Fn(usize, &Value) -> (u16, String) + Send + 'static,
) -> (TestServer, Agent) {
    let about = json!({"protocol": "agora/1.0", "hub": identity(100).did(),
        "window_ms": 60_000, "endpoints": {}});
    let posts = AtomicUsize::new(0);
    let stage = TestServer::new(move |heard, _| match heard.method.as_str() {
        "GET" => answer(200, "", &about.to_string()),
        _ => {
            let posted: Value = serde_json::from_str(&heard.body).expect("JSON");
            let (status, body) = post(posts.fetch_add(1, Ordering::SeqCst), &posted);
            answer(status, "rialto-job: j-1\r\n", &body)
        }
    });
    let stage = stage.await;
    let server = Server::discover(&stage.url).await.expect("a server");
    let quick = RetryPolicy {
        initial_delay: std::time::Duration::from_millis(1),
        ..RetryPolicy::default()
    };
    (stage, Agent::new(identity(1), server).with_retry(quick))
}

fn say(by: u8, kind: MessageType, payload: &str) -> String {
    identity(by).sign(kind, payload, None).expect("signed").as_str().to_owned()
}

fn accepted(posted: &Value) -> (u16, String) {
    let id = posted["id"].as_str().expect("an id");
    let notice = MessageStatus::accepted(id, Some((id, RequestState::Pending)));
    (202, say(100, MessageType::Status, &notice.write()))
}

fn error(code: u16, retryable: bool) -> (u16, String) {
    let payload = json!({"code": code, "message": "no", "retryable": retryable, "hint": "do"});
    (code, say(100, MessageType::Error, &payload.to_string()))
}

#[tokio::test]
async fn the_same_envelope_is_sent_again_after_temporary_errors() {
    let (stage, agent) = stage(|n, posted| match n {
        0 => error(503, true),
        1 => error(500, true),
        _ => accepted(posted),
    })
    .await;
    let (id, answered) = agent
        .send_request(&RequestSpec::new("x", "{}"), std::time::Duration::ZERO)
        .await
        .expect("taken");
    let EnvelopeResponse::Accepted(accepted) = answered else { panic!("{answered:?}") };
    assert_eq!((accepted.request_id, accepted.state), (Some(id), Some(RequestState::Pending)));
    assert_eq!(accepted.job.as_deref(), Some("j-1"));
    let bodies: Vec<_> = stage.heard().into_iter().skip(1).map(|heard| heard.body).collect();
    assert!(bodies.len() == 3 && bodies.iter().all(|body| *body == bodies[0]));
}

#[tokio::test]
async fn an_old_envelope_is_signed_anew_under_its_id() {
    let (stage, agent) = stage(|_, posted| accepted(posted)).await;
    let old = Timestamp(clock::now().0 - 40_000);
    let envelope =
        agent.identity().sign_with_id("m-1", old, MessageType::Status, "{}", None).expect("signed");
    agent.send(envelope.clone()).await.expect("taken");
    let sent: Value = serde_json::from_str(&stage.heard()[1].body).expect("JSON");
    assert_eq!(sent["id"], "m-1");
    assert_ne!(stage.heard()[1].body, envelope.as_str());
}

#[tokio::test]
async fn a_refusal_has_a_hint_and_is_not_retried() {
    let (stage, agent) = stage(|_, _| error(401, false)).await;
    let refused = agent.send_status(AgentStatus::Idle, None).await.expect_err("refused");
    let CallError::Refused { status: 401, code, hint, .. } = refused else { panic!("{refused}") };
    assert_eq!((code.as_str(), hint.as_deref()), ("ERROR 401", Some("do")));
    assert_eq!(stage.heard().len(), 2);
}

#[tokio::test]
async fn an_answer_of_another_sender_is_not_the_hubs() {
    let (_stage, agent) = stage(|_, posted| {
        let id = posted["id"].as_str().expect("an id");
        (202, say(7, MessageType::Status, &MessageStatus::accepted(id, None).write()))
    })
    .await;
    let envelope = agent.identity().sign(MessageType::Status, "{}", None).expect("signed");
    let answered = agent.send(envelope).await.expect("an answer");
    assert!(matches!(answered, EnvelopeResponse::Answered(by) if by.sender == identity(7).key()));
}

#[tokio::test]
async fn waiting_gives_the_first_answer_as_its_sender_signed_it() {
    let (stage, agent) = stage(|_, posted| {
        let data = json!({"request_id": posted["id"], "status": "success", "data": {"x": 1}});
        (200, say(2, MessageType::Result, &data.to_string()))
    })
    .await;
    let wait = std::time::Duration::from_secs(60);
    let order = RequestSpec::new("x", "{}").to(identity(2).key());
    let (id, answered) = agent.send_request(&order, wait).await.expect("an answer");
    let EnvelopeResponse::Answered(result) = answered else { panic!("{answered:?}") };
    assert_eq!(
        (result.sender, result.payload.request_id()),
        (identity(2).key(), Some(id.as_str()))
    );
    assert_eq!(stage.heard()[1].target, "/agora/envelopes?wait=30000");
}

#[tokio::test]
async fn a_welcome_must_be_the_hubs_and_about_our_hello() {
    let me = identity(1);
    let did = me.did().to_owned();
    for (what, by, good_nonce, good_id, good_sender) in [
        ("good", 100, true, true, true),
        ("from another agent", 7, true, true, true),
        ("another nonce", 100, false, true, true),
        ("another id", 100, true, false, true),
        ("another sender", 100, true, true, false),
    ] {
        let did = did.clone();
        let (stage, agent) = stage(move |_, posted| {
            let text =
                |path: &str| posted.pointer(path).and_then(Value::as_str).unwrap_or_default();
            let welcome = Welcome {
                nonce: Some(if good_nonce { text("/payload/nonce") } else { "n" }),
                hello_id: Some(if good_id { text("/id") } else { "i" }),
                hello_sender: Some(if good_sender { &did } else { "s" }),
                inbox_token: Some("at_1"),
                ..Welcome::default()
            };
            (200, say(by, MessageType::Welcome, &welcome.write()))
        })
        .await;
        let skills = Some(vec![Skill::new("agora:time:v1")]);
        let profile = Profile { name: Some("me".to_owned()), skills, endpoint: None };
        assert_eq!(agent.hello(&profile, true).await.is_ok(), what == "good", "{what}");
        let sent: Value = serde_json::from_str(&stage.heard()[1].body).expect("JSON");
        assert_eq!(sent["recipient"]["id"], identity(100).did());
        assert_eq!(sent["payload"]["capabilities"][0]["resource"], "agora:time:v1");
    }
}

#[tokio::test]
async fn a_lost_token_is_asked_for_again() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    assert!(
        agent.hello(&Profile::default(), true).await.expect("welcome").inbox_expires_at.is_some()
    );
    assert!(
        agent.hello(&Profile::default(), false).await.expect("welcome").inbox_expires_at.is_none()
    );
    assert_eq!(hub.said("HELLO").len(), 2);
}
