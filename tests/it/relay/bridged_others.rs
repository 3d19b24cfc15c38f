//! Relay agents hire agents of openclaw, agora and clara, or just send them messages.

use rialto_protocols::agora::MessageType;
use serde_json::json;

use super::bridge::{account, address, assert_no, bridged, error_of, reader, wish};
use super::kit::state;
use crate::agora::kit as agora;
use crate::clara::kit as clara;
use crate::openclaw::kit as openclaw;

/// The relay address of an openclaw agent.
async fn node_address(hub: &openclaw::Hub, node: &openclaw::Node) -> String {
    address(hub, &node.id).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openclaw_agent_is_hired_and_its_schema_holds() {
    let hub = openclaw::Hub::serve(&[]).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "10").await;
    let node = hub.able_node("worker", json!({"price": 1.5})).await;
    let to = node_address(&hub, &node).await;
    let mut works = hub.stream(&node, "").await;
    let before = state(&hub).await;
    // A text is not a valid input, and neither is a number out of range.
    for more in [json!({"budget": 2}), json!({"budget": 2, "input": {"a": 7}})] {
        let reply = hub.mail_to(&ada, &to, &wish(&ada, "a text", more)).await;
        assert_no(&reply, "the input does not match the agent's input schema");
    }
    assert_eq!(state(&hub).await, before);
    let more = json!({"skill": "sum", "budget": 2, "input": {"a": 0.50}});
    let sent = hub.mail_to(&ada, &to, &wish(&ada, "please", more.clone())).await.expect(200);
    let uuid = sent.header("rialto-job").expect("an id").to_owned();
    let told = works.until("collaboration_request").await.data;
    assert_eq!(told["collaboration_id"], uuid);
    assert_eq!(told["input_data"], json!({"a": 0.5}));
    let work = openclaw::Work { id: uuid, request: told, by: node.clone() };
    hub.result(&work, json!({})).await.expect(200);
    let (conversation, turn, said) = bridged(&inbox.message().await, &to, "openclaw");
    assert_eq!((conversation, turn, said), (work.id, 2, r#"{"r":1}"#.to_owned()));
    assert_eq!(hub.account_of(&ada).await, account("8.50", "0.00"));

    let sent = hub.mail_to(&ada, &to, &wish(&ada, "please", more)).await.expect(200);
    let told = works.until("collaboration_request").await.data;
    let id = sent.header("rialto-job").expect("an id").to_owned();
    let work = openclaw::Work { id, request: told, by: node };
    let failed = json!({"result_status": "failed", "output_data": null,
        "error": {"code": "EXECUTION_ERROR", "message": "out of ink", "error_type": "permanent",
            "retryable": false}});
    hub.result(&work, failed).await.expect(200);
    let (_, _, said) = bridged(&inbox.message().await, &to, "openclaw");
    assert_eq!(error_of(&said).1, "out of ink");
    assert_eq!(hub.account_of(&ada).await, account("8.50", "0.00"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openclaw_agent_that_answers_itself_may_refuse() {
    let hub = openclaw::Hub::serve(&[]).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    let node = hub.node_with("worker", json!({"response_mode": "ask"})).await;
    let to = node_address(&hub, &node).await;
    let mut works = hub.stream(&node, "").await;
    let more = json!({"input": {"a": 0.5}});
    hub.mail_to(&ada, &to, &wish(&ada, "please", more)).await.expect(200);
    let told = works.until("collaboration_request").await.data;
    let no = json!({"response_status": "rejected", "collaboration_id": null,
        "rejection_reason": {"code": "policy_violation", "message": "not for you"}});
    hub.respond(&node, &told, no).await.expect(200);
    let (_, _, said) = bridged(&inbox.message().await, &to, "openclaw");
    assert_eq!(error_of(&said).1, "not for you");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agora_agent_is_hired_at_its_price_and_may_fail() {
    let hub = agora::Hub::serve(&[]).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "10").await;
    let bob = agora::Key::of(2);
    let reads = hub.provider(&bob, "agora:weather:v1", Some(json!(1.5))).await;
    let to = address(&hub, bob.did()).await;
    let reply = hub.mail_to(&ada, &to, &wish(&ada, "Tokyo?", json!({}))).await;
    assert_no(&reply, "costs 1.50 credits: add \"budget\": 1.50");
    let said = wish(&ada, "Tokyo?", json!({"budget": 2}));
    for ok in [true, false] {
        let sent = hub.mail_to(&ada, &to, &said).await.expect(200);
        let uuid = sent.header("rialto-job").expect("an id").to_owned();
        let request = hub.newest_is(&reads, MessageType::Request).await;
        assert_eq!(request["payload"]["params"], json!({"text": "Tokyo?"}));
        assert_eq!(
            (&request["id"], &request["bridge"]["protocol"]),
            (&json!(uuid), &json!("relay"))
        );
        let answer = if ok { bob.result(&uuid) } else { bob.error(&uuid, 500) };
        hub.told(&answer).await;
        let (conversation, _, said) = bridged(&inbox.message().await, &to, "agora");
        assert_eq!(conversation, uuid);
        match ok {
            true => assert_eq!(said, r#"{"n":1}"#),
            false => assert_eq!(error_of(&said).1, "cannot"),
        }
        assert_eq!(hub.account_of(&ada).await, account("8.50", "0.00"));
    }
    assert_eq!(hub.spendable(&bob).await, "1.5");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agora_agent_that_only_listens_reads_a_plain_message() {
    let hub = agora::Hub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let bob = agora::Key::of(2);
    let reads = hub.hello(&bob, json!({"name": "bob"})).await;
    let to = address(&hub, bob.did()).await;
    hub.mail_to(&ada, &to, &wish(&ada, "hello there", json!({}))).await.expect(202);
    let letter = hub.newest(&reads).await;
    assert!(letter.to_string().contains("hello there"), "{letter}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_openclaw_agent_reads_a_plain_message_on_its_stream() {
    let hub = openclaw::Hub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let mut identity = openclaw::identity("worker", hub.now());
    let all = &mut identity["capabilities"]["advertised_capabilities"];
    *all = json!([openclaw::capability("sum", json!({})), openclaw::capability("rest", json!({}))]);
    let node = hub.publish(&identity).await;
    let to = node_address(&hub, &node).await;
    let mut hears = hub.stream(&node, "").await;
    hub.mail_to(&ada, &to, &wish(&ada, "hello there", json!({}))).await.expect(200);
    let told = hears.until("message").await.data;
    assert_eq!(told["protocol"], "relay");
    assert_eq!(told["message"]["original_text"], "hello there");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clara_agent_is_hired_for_its_fee_and_may_decline() {
    let hub = clara::Hub::serve(&[]).await;
    let (ada, mut inbox) = reader(&hub, "ada").await;
    hub.fund_peer(&ada, "100").await;
    let wallet = clara::Wallet::of(1);
    hub.agent(&wallet, "A", "tweet", "20").await;
    let to = address(&hub, "A").await;
    let reply = hub.mail_to(&ada, &to, &wish(&ada, "say it", json!({"budget": 19.99}))).await;
    assert_no(&reply, "costs 20.00 credits");
    let said = wish(&ada, "say it", json!({"skill": "clara.tweet", "budget": 50}));
    for declines in [false, true] {
        let sent = hub.mail_to(&ada, &to, &said).await.expect(200);
        let uuid = sent.header("rialto-job").expect("an id").to_owned();
        let inbox_of = hub.listed("A").await["tasks"]["inbox"].clone();
        let (task, _) = inbox_of.as_object().expect("an object").iter().next().expect("a task");
        assert_eq!(*task, uuid);
        match declines {
            false => assert_eq!(hub.deliver(&wallet, "A", task).await.result.error, None),
            true => assert_eq!(hub.decline(&wallet, "A", task).await.actions(), ["Task-Declined"]),
        }
        let (conversation, turn, said) = bridged(&inbox.message().await, &to, "clara");
        assert_eq!((conversation, turn), (uuid, 2));
        match declines {
            false => assert_eq!(said, r#"{"done":1}"#),
            true => assert_eq!(error_of(&said).1, "the agent declined the job"),
        }
        assert_eq!(hub.account_of(&ada).await, account("80.00", "0.00"));
    }
    assert_eq!(hub.account(&wallet).await, clara::account("20", "0"));
    hub.0.stop().await;
}
