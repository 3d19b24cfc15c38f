use serde_json::{Value, json};

use super::hub::{Ask, Hub, ME, good, hub, with_common};
use crate::call::CallError;
use crate::key::Key;
use crate::openclaw::{
    AgentFilter, Category, CollaborationFilter, Identity, Profile, ReportedStatus, Role, Server,
    Skill, State, Status, StatusDetails, Timestamp,
};
use crate::testing::answer;

fn identity() -> Identity {
    let skill = Skill::new("echo", Category::TrendAnalysis, "Says it again");
    Profile::new("chimera-echo").id(ME).skill(skill).build().expect("a good profile")
}

fn published(ask: &Ask, more: Value) -> Option<Vec<u8>> {
    if ask.path != "/identity" {
        return None;
    }
    let mut body = json!({"status": "published", "agent_id": ME,
        "published_at": "2026-02-06T16:00:00Z"});
    body.as_object_mut().expect("an object").extend(more.as_object().expect("one").clone());
    let status = if ask.key.is_none() { 201 } else { 200 };
    Some(answer(status, "", &with_common(&body).to_string()))
}

#[tokio::test]
async fn a_new_identity_gets_a_key_and_a_secret_and_is_changed_with_the_key() {
    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let (hub, stage, _) = hub(|_: &Hub, ask: &Ask| {
        let more = json!({"api_key": "rk_new", "webhook_secret": SECRET});
        published(ask, if ask.key.is_none() { more } else { json!({}) })
    })
    .await;
    let new = Server::new(&stage.url).expect("a URL").publish(&identity()).await.expect("taken");
    assert!(new.is_new);
    assert_eq!(new.key, Some(Key::new("rk_new")));
    assert_eq!(new.webhook_secret.map(|secret| secret.reveal()).as_deref(), Some(SECRET));
    let again = new.agent.publish(&identity()).await.expect("taken");
    assert!(!again.is_new && again.key.is_none());
    let asks = hub.asks();
    assert_eq!(asks[1].key.as_deref(), Some("Bearer rk_new"));
    assert_eq!(asks[0].body["agent_name"], "chimera-echo");
    for name in ["correlation_id", "timestamp", "protocol_version"] {
        assert!(asks[0].body[name].is_string(), "{name}");
    }
}

#[tokio::test]
async fn an_agent_publishes_no_identity_but_its_own() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let mut other = identity();
    other.agent_id = super::hub::YOU;
    let refused = agent.publish(&other).await;
    assert!(matches!(refused, Err(CallError::Refused { status: 400, .. })));
    assert!(hub.asks().is_empty());
}

#[tokio::test]
async fn leaving_twice_is_no_error() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        let gone = ask.method == "DELETE" && ask.number == 0;
        gone.then(|| good(&json!({"status": "unregistered", "agent_id": ME})))
    })
    .await;
    assert_eq!(agent.unregister().await.ok(), Some(true));
    assert_eq!(agent.unregister().await.ok(), Some(false));
    assert_eq!(hub.asks()[0].path, format!("/agents/{ME}"));
}

#[tokio::test]
async fn the_directory_is_read_to_its_last_page() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        let entry = json!({"agent_id": ME, "agent_name": "chimera-echo", "stale": false,
            "effective_status": "idle", "active_collaborations": 0,
            "capabilities": {"advertised_capabilities": []},
            "trust_signals": {"total_collaborations": 0}});
        let next = if ask.path.contains("cursor=c1") { json!(null) } else { json!("c1") };
        Some(good(&json!({"agents": [entry], "next_cursor": next})))
    })
    .await;
    let filter = AgentFilter { capability: Some("a b".to_owned()), ..AgentFilter::default() };
    let found = agent.server().agents(&filter).await.expect("two pages");
    assert_eq!(found.len(), 2);
    assert_eq!(found[0].entry.effective_status, Status::Idle);
    assert!(found[0].raw().contains("\"stale\":false"));
    let paths: Vec<_> = hub.asks().into_iter().map(|ask| ask.path).collect();
    assert_eq!(paths, ["/agents?capability=a+b", "/agents?capability=a+b&cursor=c1"]);
}

#[tokio::test]
async fn own_collaborations_are_listed_and_called_off() {
    let (hub, _stage, agent) = hub(|_: &Hub, ask: &Ask| {
        let cancelled = json!({"collaboration_id": ME, "request_id": ME, "responder_agent_id": ME,
            "result_status": "cancelled", "reason": "enough"});
        ask.path.ends_with("cancel").then(|| good(&cancelled))
    })
    .await;
    let listed = json!({"collaboration_id": ME, "state": "running",
        "request": super::hub::request(5, "echo"), "response": null, "result": null});
    hub.running.lock().expect("sound").push(listed);
    let running = CollaborationFilter {
        role: Some(Role::Responder),
        state: Some(State::Running),
        limit: Some(2),
    };
    let page = agent.collaborations(&running, Some("x")).await.expect("a page");
    assert_eq!(page.collaborations[0].collaboration_id, Some(ME));
    assert_eq!(&*page.collaborations[0].request.input_data, r#"{"n":1.5}"#);
    agent.cancel(ME, Some("enough")).await.expect("called off");
    let asks = hub.asks();
    assert_eq!(asks[0].path, "/collaborations?role=responder&state=running&limit=2&after=x");
    assert_eq!(asks[1].body["reason"], "enough");
}

#[tokio::test]
async fn an_operator_approves_with_its_own_key() {
    let (hub, stage, _) = hub(|_: &Hub, _: &Ask| None).await;
    let operator = Server::new(&stage.url).expect("a URL").with_key(Key::new("rk_operator"));
    operator.approve(ME, false).await.expect("taken");
    let ask = &hub.asks()[0];
    assert_eq!(ask.path, format!("/collaborations/{ME}/approve"));
    assert_eq!(ask.body["approved"], false);
    assert_eq!(ask.key.as_deref(), Some("Bearer rk_operator"));
}

#[tokio::test]
async fn a_status_that_lacks_something_is_not_sent() {
    let (hub, _stage, agent) = hub(|_: &Hub, _: &Ask| None).await;
    let report =
        |status| ReportedStatus { status, at: Timestamp(0), details: StatusDetails::default() };
    assert!(agent.send_status(report(Status::Busy), None).await.is_err());
    assert!(hub.asks().is_empty());
    agent.send_status(report(Status::Idle), Some(Status::Busy)).await.expect("taken");
    assert_eq!(hub.posted("/status")[0]["status_update"]["previous_status"], "busy");
}
