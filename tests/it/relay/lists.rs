//! Discovery: the public record of every agent, and nothing private (R25–R28, R91).

use serde_json::{Value, json};

use super::kit::{
    BOTH, assert_bad, assert_error, assert_wrapped, card, escaped, message, registration, with,
};
use crate::kit::TestHub;

fn ids(list: &Value) -> Vec<&str> {
    list.as_array()
        .expect("a list")
        .iter()
        .map(|one| one["agent_id"].as_str().expect("an id"))
        .collect()
}

async fn found(hub: &TestHub, query: &str) -> Vec<String> {
    let reply = hub.get(&format!("/relay/agents{query}"), None).await.expect(200);
    ids(&reply.at("/data")).into_iter().map(str::to_owned).collect()
}

fn speaker(id: &str, culture: &str, languages: &[&str]) -> Value {
    let card =
        json!({"card_version": "0.3", "user_culture": culture, "supported_languages": languages});
    json!({"agent_id": id, "agent_card": card})
}

#[tokio::test(flavor = "multi_thread")]
async fn all_records_are_public() {
    for prefix in BOTH {
        let hub = TestHub::serve(&[]).await;
        let empty = hub.get(&format!("{prefix}/agents"), None).await.expect(200);
        assert_wrapped(&empty, true);
        assert_eq!(empty.at("/data"), json!([]));
        let (ada, bob) = (hub.join("ada").await, hub.join("bob").await);
        let list = hub.get(&format!("{prefix}/agents"), None).await.expect(200);
        assert_wrapped(&list, true);
        assert_eq!(ids(&list.at("/data")), [&ada.id, &bob.id]);
        assert!(list.json().pointer("/metadata/next_cursor").is_none());
        for (n, peer) in [&ada, &bob].into_iter().enumerate() {
            let one =
                hub.get(&format!("{prefix}/agents/{}", escaped(&peer.id)), None).await.expect(200);
            assert_wrapped(&one, true);
            assert_eq!(one.at("/data"), list.at(&format!("/data/{n}")));
            assert_eq!(one.at("/data/agent_card"), card());
        }
        for id in ["carol", "carol@chorus", "ada@elsewhere", "%FF", "a%20b", "@", "a%2Fb"] {
            let reply = hub.get(&format!("{prefix}/agents/{id}"), None).await;
            assert_error(&reply, 404, "ERR_AGENT_NOT_FOUND");
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_can_be_narrowed() {
    let hub = TestHub::serve(&[]).await;
    let ada = hub.join_with(&speaker("Ada", "en-GB", &["en", "fr"])).await;
    hub.join_with(&speaker("bob", "zh-CN", &["zh-CN", "en"])).await;
    hub.join_with(&json!({"agent_id": "carol@elsewhere"})).await;
    let dora = hub.orchestrator("dora").await;
    let _open = hub.inbox(&ada).await;
    let alias = found(&hub, "?protocol=registry").await;
    assert_eq!(alias.len(), 1);
    let alias = alias[0].as_str();
    for (query, wanted) in [
        ("", vec!["Ada@chorus", "bob@chorus", "carol@elsewhere", alias]),
        ("?culture=zh-cn", vec!["bob@chorus"]),
        ("?culture=zh", vec![]),
        ("?language=EN", vec!["Ada@chorus", "bob@chorus", "carol@elsewhere", alias]),
        ("?language=fr&culture=en-GB", vec!["Ada@chorus"]),
        ("?online=true&protocol=relay", vec!["Ada@chorus"]),
        ("?online=false&protocol=relay", vec!["bob@chorus", "carol@elsewhere"]),
        ("?protocol=relay", vec!["Ada@chorus", "bob@chorus", "carol@elsewhere"]),
        ("?protocol=agora", vec![]),
        ("?q=ADA", vec!["Ada@chorus"]),
        ("?q=elsewhere", vec!["carol@elsewhere"]),
        ("?q=%E7%95%8C", vec![]),
        ("?unknown=1&q=bob", vec!["bob@chorus"]),
    ] {
        assert_eq!(found(&hub, query).await, wanted, "{query}");
    }
    assert!(!dora.id.is_empty());
    for (query, field) in [
        ("?online=maybe", "?online"),
        ("?limit=0", "?limit"),
        ("?limit=1001", "?limit"),
        ("?limit=x", "?limit"),
        ("?cursor=x", "?cursor"),
        ("?q=a&q=b", "?q"),
    ] {
        let reply = hub.get(&format!("/relay/agents{query}"), None).await;
        assert_bad(&reply, field);
        assert!(reply.str("/error/example").contains('?'), "{}", reply.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_leads_to_the_rest_and_only_where_there_is_one() {
    let hub = TestHub::serve(&[]).await;
    for n in 0..5 {
        hub.join(&format!("agent{n}x")).await;
    }
    let (mut seen, mut query) = (Vec::new(), "?limit=2".to_owned());
    for page in 0..3 {
        let reply = hub.get(&format!("/relay/agents{query}"), None).await.expect(200);
        seen.extend(ids(&reply.at("/data")).into_iter().map(str::to_owned));
        let next = reply.json().pointer("/metadata/next_cursor").cloned();
        assert_eq!(next.is_some(), page < 2, "{}", reply.text);
        if let Some(next) = next {
            query = format!("?limit=2&cursor={}", escaped(next.as_str().expect("text")));
        }
    }
    assert_eq!(seen, found(&hub, "").await);
    // A full last page has no next cursor.
    for query in ["?limit=5", "?limit=1000", "?limit=1&q=agent4"] {
        let reply = hub.get(&format!("/relay/agents{query}"), None).await.expect(200);
        assert!(reply.json().pointer("/metadata/next_cursor").is_none(), "{query} {}", reply.text);
    }
    // Neither has an unknown cursor.
    for cursor in [u64::MAX, u64::MAX - 1, u64::MAX - 4_096, 1 << 63, 6] {
        let reply = hub.get(&format!("/relay/agents?cursor={cursor}"), None).await.expect(200);
        assert_eq!(reply.at("/data"), json!([]), "{cursor}");
        assert!(reply.json().pointer("/metadata/next_cursor").is_none(), "{cursor} {}", reply.text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn where_an_agent_is_called_is_its_own_business() {
    let url = "https://ada.example/secret-path";
    let hub = TestHub::serve(&[]).await;
    let (ada, bob) = (hub.join_at("ada", url).await, hub.join("bob").await);
    hub.say(&bob, &ada, "a private word").await;
    for (key, sees) in [
        (None, false),
        (Some(&bob.key), false),
        (Some(&ada.key), true),
        (Some(&hub.operator), true),
    ] {
        for path in ["/agents", "/agents/ada"] {
            let reply = hub.get(path, key.map(String::as_str)).await.expect(200);
            assert_eq!(reply.text.contains(url), sees, "{path}");
            for hidden in ["a private word", "ca_", "whsec_", "api_key", "secret\""] {
                assert!(!reply.text.contains(hidden), "{hidden} in {}", reply.text);
            }
        }
    }
    hub.stop().await;
    for hub in [TestHub::open(&[]).await, TestHub::serve(&[("relay.show_endpoints", "true")]).await]
    {
        hub.join_at("ada", url).await;
        for path in ["/agents", "/agents/ada"] {
            assert!(hub.get(path, None).await.expect(200).text.contains(url));
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_of_another_protocol_is_listed_under_its_alias_and_can_be_written_to() {
    let hub = TestHub::serve(&[]).await;
    let native = "a3b8d1b6-0b3b-4b1a-9c1a-1a2b3c4d5e6f";
    let body = json!({"agent_id": native, "agent_name": "Text-Analyst-3000", "owner_id": "acme", "skills": []});
    let worker = hub.enrol(&body, None).await;
    let alias = "text-analyst-3000-20917bb1@registry";
    let record = hub.record(alias).await;
    assert_eq!(
        (&record["agent_id"], &record["protocol"], &record["native_id"]),
        (&json!(alias), &json!("registry"), &json!(native))
    );
    assert_eq!(record["agent_card"]["user_culture"], "en");
    assert_eq!(hub.get("/agents", None).await.at("/data/0/agent_id"), alias);

    let ada = hub.join("ada").await;
    let sent = hub.post("/messages", Some(&ada.key), &message(&ada.id, alias, "hello there")).await;
    assert_eq!(sent.status, 202, "{}", sent.text);
    // It reads the message with its own key in its own protocol.
    let history = hub.get("/relay/agent/messages", Some(&worker.key)).await.expect(200);
    assert_eq!(history.at("/data/0/envelope/original_text"), "hello there");
    assert_eq!(history.at("/data/0/receiver_id"), alias);
    // It answers from there, under its alias.
    let reply =
        hub.post("/messages", Some(&worker.key), &message(alias, "ada", "hello back")).await;
    assert_eq!(reply.status, 202, "{}", reply.text);
    let mut inbox = hub.inbox(&ada).await;
    let event = inbox.message().await;
    assert_eq!((event.said(), &event.data["sender_id"]), ("hello back", &json!(alias)));

    // An alias cannot be registered, and only its home protocol can unregister it.
    let body = with(&registration(alias), "/endpoint", Some(json!("https://x.example")));
    assert_bad(&hub.post("/relay/register", Some(&worker.key), &body).await, "/agent_id");
    let path = format!("/relay/agents/{alias}");
    let gone = hub.call("DELETE", &path, Some(&hub.operator), None).await;
    assert_error(&gone, 404, "ERR_AGENT_NOT_FOUND");
    hub.get(&path, None).await.expect(200);
    hub.stop().await;
}
