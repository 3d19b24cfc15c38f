//! Signed messages are stored with the job, byte for byte (B3).

use rialto_protocols::agora::wire::envelope::{self, Envelope};
use rialto_protocols::agora::wire::signature;
use rialto_protocols::kit::ans104::Item;
use rialto_protocols::kit::base64url;
use serde_json::{Value, json};

use super::kit::{Hub, opened};
use crate::agora::kit::{Key, Said};
use crate::clara::kit::Wallet;

#[tokio::test(flavor = "multi_thread")]
async fn an_envelope_can_be_proven_again_from_the_trace() {
    let hub = Hub::serve().await;
    let (alice, token) = hub.alice().await;
    let worker = hub.agent("acme", "summarize", "0", None).await;
    let alias = hub.alias("/agora/agents", &worker.id).await;
    let request = alice.request("agora:summarize:v1", json!({"odd": 1e2}));
    // Unusual spaces are part of what was sent.
    let spaced = Said { text: request.text.replace(":{", " :\t{ "), ..request.clone() };
    let reply = hub.tell_to(&alias, &spaced).await.expect(202);
    let uuid = opened(&reply);
    for credential in [&token.0, &worker.key] {
        let trace = hub.trace(&uuid, credential).await;
        let evidence = &trace["evidence"][0];
        assert_eq!((&evidence["protocol"], &evidence["of"]), (&json!("agora"), &json!("request")));
        assert_eq!(evidence["text"].as_str(), Some(spaced.text.as_str()));
        let text = evidence["text"].as_str().expect("text");
        let json = envelope::read_json(text.as_bytes()).expect("JSON");
        let envelope = Envelope::read(&json).expect("an envelope");
        let window = rialto_protocols::agora::WINDOW;
        let proof = signature::prove(&envelope, envelope.timestamp, window).expect("a signature");
        assert_eq!(proof.key, alice.public());
    }
    // Within its own protocol it is forwarded unchanged, and nothing is lost.
    let bob = Key::of(2);
    let bob_reads = hub.provider(&bob, "agora:own:v1", Some(json!(0))).await;
    let request = alice.request("agora:own:v1", json!({}));
    let uuid = opened(&hub.tell(&request).await.expect(202));
    hub.tell(&bob.result(&request.id)).await.expect(202);
    let trace = hub.trace(&uuid, &bob_reads.0).await;
    let hop = &trace["hops"][0];
    assert_eq!((&hop["asked"], &hop["given"]), (&json!(request.text), &json!(request.text)));
    let all_kept = |note: &Value| note["fate"] == "kept";
    assert!(hop["notes"].as_array().expect("notes").iter().all(all_kept), "{hop}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_item_is_kept_while_another_agent_may_get_the_task() {
    let hub = Hub::serve().await;
    let wallet = Wallet::of(9);
    hub.grant(&format!("clara:{}", wallet.address()), "100").await;
    let worker = hub.agent("acme", "tweet", "2.00", None).await;
    let tags = [
        ("Action", "Register-Task"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
    ];
    let item = wallet.item(&tags, b" {\"say\":\"hello\"}\n");
    let request = hub.http.post(format!("{}/clara/mu", hub.url)).body(item.clone());
    let reply = crate::kit::Reply::to(request).await.expect(202);
    let trace = hub.trace(&opened(&reply), &worker.key).await;
    let kept = trace["evidence"][0]["text"].as_str().expect("an item");
    let kept = base64url::decode(kept).expect("bytes");
    assert_eq!(kept, item);
    Item::read(&kept).expect("an item").verify().expect("its owner signed it");
}
