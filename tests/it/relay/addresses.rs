//! Addresses: one agent in every spelling, and no two that are confusable (R20, R29, R30).

use serde_json::json;

use super::kit::{
    BOTH, assert_bad, assert_error, assert_rejected, envelope, escaped, message, registration,
    state, with,
};
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_has_one_inbox_whatever_spelling_is_used() {
    let hub = TestHub::serve(&[]).await;
    let alice = hub.join("Alice@chorus").await;
    let bob = hub.join("bob").await;
    assert_eq!((alice.id.as_str(), bob.id.as_str()), ("Alice@chorus", "bob@chorus"));
    let mut inbox = hub.inbox(&alice).await;
    for id in ["Alice@chorus", "alice@chorus", "ALICE@Chorus", "alice", "ALICE"] {
        assert_error(
            &hub.post("/relay/register", None, &registration(id)).await,
            409,
            "ERR_AGENT_ID_TAKEN",
        );
        hub.post("/relay/register", Some(&alice.key), &registration("Alice@chorus"))
            .await
            .expect(200);
        assert_eq!(hub.record(id).await["agent_id"], "Alice@chorus", "{id}");
        let sent = hub
            .post("/relay/messages", Some(&bob.key), &message(&bob.id, id, id))
            .await
            .expect(200);
        assert_eq!(sent.str("/data/delivery"), "delivered_sse");
        assert_eq!(inbox.message().await.said(), id);
    }
    // As a sender, too: any spelling of the full address is the agent's own (R35).
    for id in ["Alice@chorus", "alice@chorus", "ALICE@Chorus"] {
        let sent = hub
            .post("/relay/messages", Some(&alice.key), &message(id, "bob", "hi"))
            .await
            .expect(202);
        let history = hub.get("/relay/agent/messages", Some(&bob.key)).await.expect(200);
        let all = history.at("/data");
        let last = all
            .as_array()
            .expect("a list")
            .iter()
            .find(|one| one["trace_id"] == sent.at("/data/trace_id"));
        let last = last.expect("the message");
        assert_eq!(last["sender_id"], "Alice@chorus", "the sender's registered spelling");
        assert_eq!(last["envelope"]["sender_id"], id, "the envelope has the sent spelling");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn composed_and_decomposed_letters_are_one_name() {
    let hub = TestHub::serve(&[]).await;
    let composed = hub.join("\u{e9}@chorus").await;
    let apart = hub.post("/relay/register", None, &registration("e\u{301}@chorus")).await;
    assert_error(&apart, 409, "ERR_AGENT_ID_TAKEN");
    assert_eq!(hub.record("e\u{301}@chorus").await["agent_id"], composed.id);
    hub.post("/relay/register", Some(&composed.key), &registration("E\u{301}@chorus"))
        .await
        .expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_name_in_the_specs_own_language_works() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let id = "你的agent名@chorus";
        let reply =
            hub.post(&format!("{prefix}/register"), None, &registration(id)).await.expect(201);
        assert_eq!(reply.str("/data/agent_id"), id);
        let shown = hub.get(&format!("{prefix}/agents/{}", escaped(id)), None).await.expect(200);
        assert_eq!(shown.str("/data/agent_id"), id);
        let short =
            hub.get(&format!("{prefix}/agents/{}", escaped("你的agent名")), None).await.expect(200);
        assert_eq!(short.at("/data"), shown.at("/data"));
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_looks_like_another_is_taken() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("modern@chorus").await;
    hub.join("асе@chorus").await;
    let before = state(&hub).await;
    for id in ["modem@chorus", "MODEM@chorus", "ace@chorus"] {
        for key in [None, Some(ada.key.as_str())] {
            let reply = hub.post("/relay/register", key, &registration(id)).await;
            assert_error(&reply, 409, "ERR_AGENT_ID_TAKEN");
        }
        assert_error(
            &hub.get(&format!("/relay/agents/{id}"), None).await,
            404,
            "ERR_AGENT_NOT_FOUND",
        );
    }
    assert_eq!(state(&hub).await, before);
    // The same name at another host is another address.
    hub.join("modem@elsewhere").await;
    // A capital letter may be confusable where its small form is not, also in a later registration.
    hub.join("alice@chorus").await;
    let taken = hub.post("/relay/register", None, &registration("aIice@chorus")).await;
    assert_error(&taken, 409, "ERR_AGENT_ID_TAKEN");
    let eve = hub.join("aiice@chorus").await;
    for id in ["AIice@chorus", "aIiCE@chorus"] {
        let taken = hub.post("/relay/register", Some(&eve.key), &registration(id)).await;
        assert_error(&taken, 409, "ERR_AGENT_ID_TAKEN");
    }
    assert_eq!(hub.record("aiice@chorus").await["agent_id"], "aiice@chorus");
    hub.post("/relay/register", Some(&eve.key), &registration("Aiice@chorus")).await.expect(200);
    // The first agent is not affected.
    let ian = hub.join("Ian@chorus").await;
    hub.join("lan@chorus").await;
    hub.post("/relay/register", Some(&ian.key), &registration("Ian@chorus")).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_address_is_refused_everywhere() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join("ada").await;
    let before = state(&hub).await;
    let long = format!("{}@chorus", "a".repeat(65));
    let longer = format!("{}@{}", "a".repeat(64), "h".repeat(64));
    for id in [
        "alice@chorus.",
        "al\u{200b}ice@chorus",
        "al\u{202e}ice@chorus",
        "\u{430}lice@chorus",
        "a@b@c",
        "@chorus",
        "alice@",
        "al ice@chorus",
        ".alice@chorus",
        "alice-@chorus",
        "alice@chörus",
        "alice\n@chorus",
        "aλ@chorus",
        "Ａlice@chorus",
        "𝐚lice@chorus",
        &long,
        &longer,
    ] {
        assert_bad(&hub.post("/relay/register", None, &registration(id)).await, "/agent_id");
        let sent = message(&ada.id, id, "hi");
        let reply = hub.post("/relay/messages", Some(&ada.key), &sent).await;
        assert_bad(&reply, "/receiver_id");
        assert_rejected(&reply, 400, "ERR_VALIDATION");
        let sent = message(id, "ada", "hi");
        let reply = hub.post("/relay/messages", Some(&ada.key), &sent).await;
        assert_bad(&reply, "/envelope/sender_id");
        let shown = hub.get(&format!("/relay/agents/{}", escaped(id)), None).await;
        assert_error(&shown, 404, "ERR_AGENT_NOT_FOUND");
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_longest_addresses_and_any_host_are_taken() {
    let hub = TestHub::serve(&[]).await;
    for id in [
        format!("{}@{}", "a".repeat(64), "h".repeat(63)),
        format!("{}@chorus", "界".repeat(64)),
        "alice@chorus.example".to_owned(),
        "alice@10.0.0.1".to_owned(),
        "alice@my_host-1".to_owned(),
        "a.b_c-d@chorus".to_owned(),
        "7@chorus".to_owned(),
        "日本語かな-bot@chorus".to_owned(),
        "한글bot@chorus".to_owned(),
        "алиса@chorus".to_owned(),
        "नमस्ते@chorus".to_owned(),
    ] {
        assert_eq!(hub.join(&id).await.id, id);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hosts_of_the_hub_are_nobodys() {
    let hub = TestHub::serve(&[]).await;
    let before = state(&hub).await;
    for host in ["registry", "openclaw", "clara", "agora", "a2a", "mcp", "bridge", "Registry"] {
        let id = format!("ada@{host}");
        let body = with(&registration(&id), "/endpoint", Some(json!("https://ada.example/in")));
        assert_bad(&hub.post("/relay/register", None, &body).await, "/agent_id");
        assert_bad(&hub.post("/relay/agents", Some(&hub.operator), &body).await, "/agent_id");
    }
    assert_eq!(state(&hub).await, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_name_stands_at_the_hubs_own_host_but_not_in_an_envelope() {
    let hub = TestHub::serve(&[("relay.host", "hub.example")]).await;
    let (ada, bob) = (hub.join("ada").await, hub.join("bob@hub.example").await);
    assert_eq!(ada.id, "ada@hub.example");
    assert_eq!(hub.record("bob").await["agent_id"], bob.id);
    let sent = message(&ada.id, "bob", "hi");
    hub.post("/relay/messages", Some(&ada.key), &sent).await.expect(202);
    let elsewhere = hub.get("/relay/agents/ada@chorus", None).await;
    assert_error(&elsewhere, 404, "ERR_AGENT_NOT_FOUND");
    let before = state(&hub).await;
    let short = json!({"receiver_id": "bob", "envelope": envelope("ada", "hi")});
    let reply = hub.post("/relay/messages", Some(&ada.key), &short).await;
    assert_bad(&reply, "/envelope/sender_id");
    assert_eq!(state(&hub).await, before);
    hub.call("DELETE", "/relay/agents/bob", Some(&bob.key), None).await.expect(200);
    assert_error(&hub.get("/relay/agents/bob", None).await, 404, "ERR_AGENT_NOT_FOUND");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_is_unique_within_its_host() {
    let hub = TestHub::serve(&[]).await;
    let (here, there) = (hub.join("ada@chorus").await, hub.join("ada@chorus.example").await);
    assert_ne!(here.key, there.key);
    hub.say(&here, &there, "same name").await.expect(202);
    let mut inbox = hub.inbox(&there).await;
    let event = inbox.message().await;
    assert_eq!(event.data["sender_id"], "ada@chorus");
    let own = hub.get("/relay/agent/messages", Some(&here.key)).await.at("/data");
    assert_eq!(own.as_array().expect("a list").len(), 1);
    assert_eq!(own[0]["receiver_id"], "ada@chorus.example");
    hub.stop().await;
}
