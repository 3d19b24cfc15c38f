//! Agents of openclaw, agora and clara hire relay agents.

use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::bridge::{account, answer, bridged, error_of, reader};
use super::kit::assert_rejected;
use crate::agora::kit as agora;
use crate::clara::kit as clara;
use crate::kit::eventually;
use crate::openclaw::kit as openclaw;

#[tokio::test(flavor = "multi_thread")]
async fn an_openclaw_agent_hires_one_of_the_relay() {
    let hub = openclaw::Hub::serve(&[]).await;
    let asker = hub.node("asker").await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let here = hub.registry_name(&bob).id;
    let here = openclaw::Node { id: here, key: String::new(), identity: Value::Null };
    let mut hears = hub.stream(&asker, "").await;
    let order = json!({"capability_id": "message", "input_data": {"text": "hello"}});
    for (text, status) in [("gut", "completed"), (r#"{"status":"error","detail":"no"}"#, "failed")]
    {
        let work = hub.accepted(&asker, &here, order.clone()).await;
        let given = inbox.message().await;
        let from = given.data["sender_id"].as_str().expect("an address").to_owned();
        assert_eq!(bridged(&given, &from, "openclaw"), (work.id.clone(), 1, "hello".to_owned()));
        answer(&hub, &bob, &given, text).await.expect(200);
        let told = hears.until("collaboration_result").await.data;
        assert_eq!(told["result_status"], status);
        assert_eq!(told["request_id"], work.request["request_id"]);
        match status {
            "completed" => assert_eq!(told["output_data"], json!({"text": "gut"})),
            _ => assert_eq!(told["error"]["message"], "no"),
        }
        assert!(told.get("chorus_version").is_none(), "{told}");
    }
    // A cancelled job is unassigned.
    let off = hub.accepted(&asker, &here, order).await;
    let given = inbox.message().await;
    hub.cancel(&asker, &off.id, &json!({"reason": "enough"})).await.expect(200);
    let taken = inbox.message().await;
    assert!(
        error_of(taken.said()).1.starts_with("the job was reassigned or cancelled"),
        "{taken:?}"
    );
    assert_rejected(&answer(&hub, &bob, &given, "gut").await, 409, "ERR_WRONG_STATE");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agora_agent_hires_one_of_the_relay() {
    let hub = agora::Hub::serve(&[]).await;
    let alice = agora::Key::of(1);
    let reads = hub.hello(&alice, json!({})).await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let listed = hub.get("/agora/agents", None).await.expect(200).at("/agents");
    let shown = listed.as_array().expect("a list").iter().find(|one| one["native_id"] == bob.id);
    let shown = shown.expect("it is listed");
    assert_eq!(shown["capabilities"][0]["resource"], "agora:message:v1");
    let did = shown["id"].as_str().expect("a key").to_owned();
    for text in ["gut", r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"no"}"#] {
        let request = alice.sign(
            MessageType::Request,
            &json!({"resource": "agora:message:v1", "params": {"text": "hello"}}),
        );
        let taken = hub.tell_to(&did, &request).await.expect(202);
        let given = inbox.message().await;
        let from = given.data["sender_id"].as_str().expect("an address").to_owned();
        let (conversation, _, said) = bridged(&given, &from, "agora");
        assert_eq!((Some(conversation.as_str()), &*said), (taken.header("rialto-job"), "hello"));
        answer(&hub, &bob, &given, text).await.expect(200);
        match text {
            "gut" => {
                let result = hub.newest_is(&reads, MessageType::Result).await;
                assert_eq!(result["payload"]["request_id"], request.id);
                assert_eq!(result["payload"]["data"], json!({"text": "gut"}));
            }
            _ => {
                let error = hub.newest_is(&reads, MessageType::Error).await;
                assert_eq!(error["payload"]["code"], 500);
            }
        }
    }
    assert_eq!(hub.standing_of(&did).failures, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clara_wallet_hires_an_agent_of_the_relay_for_at_least_one_credit() {
    let hub = clara::Hub::serve(&[]).await;
    let requester = clara::Wallet::of(9);
    hub.fund(&requester, "100").await;
    let (bob, mut inbox) = reader(&hub, "bob").await;
    let board = hub.board().await;
    let is_bob = |one: &&Value| one["id"].as_str().is_some_and(|id| id.starts_with("relay/bob-"));
    let shown = board.iter().find(is_bob).expect("it is listed");
    assert_eq!((&shown["topic"], &shown["fee"]), (&json!("none"), &json!("1")));
    let alias = shown["id"].as_str().expect("an id").to_owned();
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "5"),
        ("Target-Agent-Id", alias.as_str()),
    ];
    let task = hub.act(&requester, "Register-Task", &tags, r#"{"text":"hello"}"#).await;
    assert_eq!(task.result.error, None);
    let given = inbox.message().await;
    let from = given.data["sender_id"].as_str().expect("an address").to_owned();
    assert!(from.ends_with("@clara"), "{from}");
    assert_eq!(bridged(&given, &from, "clara").2, "hello");
    assert_eq!(given.data["job"]["price"], json!(1.0));
    answer(&hub, &bob, &given, "gut").await.expect(200);
    let mut result = None;
    eventually(async || {
        let said = hub.act(&requester, "Load-Next-Task-Result", &[], "").await;
        result = said.result.messages.first().map(|_| said.data());
        result.is_some()
    })
    .await;
    assert_eq!(result.expect("a result")["result"], json!({"text": "gut"}));
    assert_eq!(hub.account(&requester).await, clara::account("99", "0"));
    assert_eq!(hub.account_of(&bob).await, account("1.00", "0.00"));
    hub.0.stop().await;
}
