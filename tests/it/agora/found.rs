//! Regression tests for faults that were found by attacking a running hub.

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;
use uuid::Uuid;

use super::kit::{Hub, Key, Said, assert_error};
use super::scene::{Pair, SEARCH};
use crate::relay::kit::message;

/// The namespace of aliases (docs/requirements.md, section 4).
const ALIASES: Uuid = Uuid::from_u128(0xb26b_c05a_86f5_5456_bb53_ffeb_a844_57cc);

fn spoiled(said: &Said) -> Said {
    let mut json = said.json();
    json["x"] = 1.into();
    Said { id: said.id.clone(), text: json.to_string() }
}

fn as_said(envelope: &Value) -> Said {
    let id = envelope["id"].as_str().expect("an id").to_owned();
    Said { id, text: envelope.to_string() }
}

/// R24, R70, T1, T20: an envelope that the hub signed must not be accepted when it is posted back
/// as if the hub were an agent.
#[tokio::test]
async fn the_hubs_own_words_posted_back_are_nobodys() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let did = hub.hub_key().await.did();
    let refusal =
        hub.tell(&spoiled(&alice.sign(MessageType::Status, &json!({})))).await.expect(401);
    let error = as_said(&refusal.json());
    let reply = hub.tell_to(bob.did(), &error).await;
    assert!(hub.letters(&pair.bob_reads).await.is_empty(), "the hub wrote to Bob: {}", reply.text);
    assert_error(&reply, 401);
    hub.get(&format!("/agora/agents/{did}"), None).await.expect(404);
}

/// X12, B2, T2: the alias of a key that has not registered yet cannot be taken in another protocol.
#[tokio::test]
async fn an_alias_taken_first_by_another_agent_locks_no_agent_out() {
    let hub = Hub::serve(&[]).await;
    let victim = Key::of(7);
    let alias = Uuid::new_v5(&ALIASES, victim.owner().as_bytes());
    let body =
        json!({"agent_id": alias, "agent_name": "squatter", "owner_id": "mallory", "skills": []});
    hub.post("/registry/register", None, &body).await;
    hub.hello(&victim, json!({})).await;
}

/// G20: the size of an inbox page is bounded for every input.
#[tokio::test]
async fn a_page_of_large_envelopes_is_cut_short() {
    let pair = Pair::meet().await;
    let blob = "x".repeat(1_000_000);
    for _ in 0..24 {
        let said =
            pair.alice.sign_for(MessageType::Status, &json!({"b": blob}), Some(pair.bob.public()));
        pair.hub.tell(&said).await.expect(202);
    }
    let page = pair.hub.get("/agora/messages?after=0&limit=200", Some(&pair.bob_reads.0)).await;
    assert!(page.text.len() < 8 << 20, "{} bytes in one answer", page.text.len());
}

/// G20: so is the size of a directory page, which is public.
#[tokio::test]
async fn a_page_of_talkative_agents_is_cut_short() {
    let hub = Hub::serve(&[]).await;
    let about = "\u{1f600}".repeat(140);
    let item = |n: u8| json!({"resource": format!("agora:{n}:v1"), "description": about});
    let capabilities: Vec<Value> = (0..100).map(item).collect();
    for n in 1..=120 {
        hub.hello(&Key::of(n), json!({"capabilities": capabilities})).await;
    }
    let page = hub.get("/agora/agents?limit=200", None).await.expect(200);
    assert!(page.text.len() < 4 << 20, "{} bytes in a public page", page.text.len());
}

/// C11, T50: the first envelope of an unknown key counts as a registration.
#[tokio::test]
async fn newcomers_of_one_address_are_counted() {
    let hub = Hub::serve(&[("limits.registrations_per_minute", "10")]).await;
    let mut refused = 0;
    for n in 1..=40 {
        let reply = hub.tell(&Key::of(n).sign(MessageType::Hello, &json!({}))).await;
        refused += u32::from(reply.status == 429);
    }
    assert!(refused >= 29, "only {refused} of 40 new keys were refused");
}

/// C11, R57: a frame counts like a POST, so invalid frames on a socket are counted too.
#[tokio::test]
async fn junk_on_a_socket_is_counted() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "10")]).await;
    let url = format!("{}/agora/ws", hub.url.replace("http://", "ws://"));
    let mut socket = tokio_tungstenite::connect_async(url).await.expect("a socket").0;
    let key = Key::of(1);
    let hello = key.sign_for(MessageType::Hello, &json!({}), Some(hub.hub_key().await));
    let junk = spoiled(&key.sign(MessageType::Status, &json!({})));
    socket.send(Message::text(hello.text)).await.expect("taken");
    let mut stopped = false;
    for _ in 0..300 {
        if socket.send(Message::text(junk.text.clone())).await.is_err() {
            stopped = true;
            break;
        }
        match tokio::time::timeout(Duration::from_secs(10), socket.next()).await {
            Ok(Some(Ok(Message::Text(text)))) => stopped |= text.contains("\"code\":429"),
            Ok(Some(Ok(_))) => {}
            _ => stopped = true,
        }
    }
    assert!(stopped, "300 bad signatures were checked and answered where 100 posts may be made");
}

/// G4: a message acknowledged to its sender is presented to its recipient, or refused.
#[tokio::test]
async fn a_message_of_the_relay_does_not_vanish() {
    let pair = Pair::meet().await;
    let rita = pair.hub.join("rita@chorus").await;
    let alias = Uuid::new_v5(&ALIASES, pair.bob.owner().as_bytes()).simple().to_string();
    let body = message("rita@chorus", &format!("key-{}@agora", &alias[..8]), "are you there?");
    let reply = pair.hub.post("/relay/messages", Some(&rita.key), &body).await;
    let letters = pair.hub.letters(&pair.bob_reads).await;
    assert!(
        reply.status >= 400 || !letters.is_empty(),
        "accepted but not delivered: {}",
        reply.text
    );
}

/// T37: an agent does not fail for a request it could not have read, least of all after it reported
/// that it is offline.
#[tokio::test]
async fn who_said_it_is_away_is_not_blamed_for_a_request_of_a_moment() {
    let pair = Pair::meet().await;
    let away = pair.bob.sign(MessageType::Status, &json!({"status": "offline"}));
    pair.hub.tell(&away).await.expect(202);
    let request = pair.ask(json!({"timeout": 20})).await;
    pair.fails(&request).await;
    assert_eq!(pair.hub.standing_of(pair.bob.did()).failures, 0);
}

/// R69, D21: a HELLO that was not signed for this hub yields no secret, since a third party may
/// have brought it.
#[tokio::test]
async fn a_hello_addressed_to_another_hub_gets_no_webhook_secret() {
    let hub = Hub::serve(&[]).await;
    let hello =
        Key::of(1).sign(MessageType::Hello, &json!({"endpoint": "https://agent.example/hook"}));
    let welcome = hub.tell(&hello).await.expect(200);
    assert!(!welcome.text.contains("whsec_"), "the bearer has the agent's secret");
}

/// 2.6, R28, B1: an agent listed with a resource is found by that resource.
#[tokio::test]
async fn a_bridged_agent_is_found_by_the_resource_it_is_listed_with() {
    let hub = Hub::serve(&[]).await;
    let worker = hub.agent("acme", "sum", "0.10", None).await;
    let page = hub.get("/agora/agents?resource=agora:sum:v1", None).await.expect(200);
    assert_eq!(page.str("/agents/0/native_id"), worker.id);
}

/// R43, R51: ids in payloads are envelope ids; the hub's own job id is not one of them.
#[tokio::test]
async fn the_hubs_id_of_a_job_is_no_request_id_between_agents_of_agora() {
    let pair = Pair::meet().await;
    let request = pair.alice.request(SEARCH, json!({}));
    let reply = pair.hub.tell(&request).await.expect(202);
    let job = reply.header("rialto-job").expect("a job").replace('-', "");
    pair.hub.tell(&pair.bob.partial(&request.id, false)).await.expect(202);
    assert_error(&pair.hub.tell(&pair.bob.result(&job)).await, 401);
}

/// R70: only the hub may mark an envelope as bridged.
#[tokio::test(flavor = "multi_thread")]
async fn only_the_hub_can_mark_an_envelope_as_its_own() {
    let hub = Hub::serve(&[]).await;
    let eve = super::pen::Pen::of(6);
    let mut forged = eve.draft("STATUS", json!({"status": "idle"}));
    let did = hub.hub_key().await.did();
    forged["bridge"] = json!({"hub": did, "protocol": "registry", "agent": "victim"});
    let refused = hub.post_envelope(&eve.sign(&forged)).await;
    assert_error(&refused, 400);
    assert!(refused.text.contains("/bridge"), "{}", refused.text);
}
