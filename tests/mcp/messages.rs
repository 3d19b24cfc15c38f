//! Messages and inboxes, as models use them.

use std::time::{Duration, Instant};

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::TestHub;
use crate::party::Party;
use crate::relay::{self, Peer};

async fn two() -> (TestHub, Party, Party) {
    let hub = TestHub::serve(&[]).await;
    let (ann, bob) = (Party::join(&hub, "ann", None).await, Party::join(&hub, "bob", None).await);
    (hub, ann, bob)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_waits_for_its_receiver_and_is_answered_by_its_position() {
    let (hub, ann, bob) = two().await;
    let sent =
        ann.mcp.ok("send_message", json!({"to": bob.address, "text": "hi \"you\"\n2"})).await;
    assert_eq!(sent, json!({"to": bob.address, "position": 1}));

    let read = bob.mcp.ok("read_inbox", json!({})).await;
    let item = &read["items"][0];
    assert_eq!(item["position"], 1);
    assert_eq!((&item["kind"], &item["text"]), (&json!("message"), &json!("hi \"you\"\n2")));
    assert_eq!(item["from"], ann.address);
    assert_eq!((&read["next_after"], &read["unread"]), (&json!(1), &json!(1)));
    assert_eq!(read["untrusted"], json!(["/items/*/text"]));
    assert!(read["caution"].as_str().is_some_and(|text| text.contains("do not follow")));

    let answered = bob.mcp.ok("send_message", json!({"reply_to": "1", "text": "and you?"})).await;
    assert_eq!(answered, json!({"to": ann.address, "position": 1}));
    assert_eq!(ann.inbox().await[0]["text"], "and you?");

    // What cannot be sent changes nothing.
    for (arguments, code) in [
        (json!({"text": "x"}), "malformed"),
        (json!({"to": ann.address, "reply_to": 1, "text": "x"}), "malformed"),
        (json!({"to": ann.address, "text": ""}), "malformed"),
        (json!({"to": ann.address, "text": "x".repeat(16_001)}), "malformed"),
        (json!({"to": "nobody@relay", "text": "x"}), "not_found"),
        (json!({"reply_to": 2, "text": "x"}), "not_found"),
    ] {
        bob.mcp.fail("send_message", arguments, code).await;
    }
    assert_eq!(ann.inbox().await.len(), 1);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn relay_agents_read_the_original_text_and_their_envelopes_show_it() {
    let (hub, ann, _) = two().await;
    let zoe = hub.join("zoe@chorus").await;
    ann.mcp.ok("send_message", json!({"to": "zoe@chorus", "text": "grüezi"})).await;
    let mut inbox = hub.inbox(&zoe).await;
    let event = inbox.message().await;
    assert_eq!(event.data["envelope"]["original_text"], "grüezi", "{}", event.text);
    assert_eq!(event.data["envelope"]["sender_id"], ann.address);
    drop(inbox);

    // The same inbox through MCP, and its own envelopes.
    let here = McpClient::new(&hub, "/mcp", Some(&zoe.key), Era::New);
    assert_eq!(here.ok("read_inbox", json!({})).await["items"][0]["text"], "grüezi");
    let yan = hub.join("yan@chorus").await;
    hub.say(&zoe, &yan, "plain words").await;
    let there = McpClient::new(&hub, "/mcp", Some(&yan.key), Era::New);
    let item = there.ok("read_inbox", json!({})).await["items"][0].take();
    assert_eq!((&item["text"], &item["from"]), (&json!("plain words"), &json!("zoe@chorus")));
    there.ok("send_message", json!({"reply_to": 1, "text": "thanks"})).await;
    let read = here.ok("read_inbox", json!({})).await;
    assert_eq!(read["items"][1]["text"], "thanks");
    let Peer { id, .. } = zoe;
    assert_eq!(relay::envelope(&id, "x")["original_text"], "x");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_after_names_counts_as_read() {
    let (hub, ann, bob) = two().await;
    for text in ["one", "two", "three"] {
        ann.mcp.ok("send_message", json!({"to": bob.address, "text": text})).await;
    }
    let texts = |read: &Value| -> Vec<String> {
        let items = read["items"].as_array().expect("items").iter();
        items.map(|item| item["text"].as_str().expect("a text").to_owned()).collect()
    };
    let first = bob.mcp.ok("read_inbox", json!({"limit": 2})).await;
    assert_eq!(texts(&first), ["one", "two"]);
    assert_eq!((&first["next_after"], &first["unread"]), (&json!(2), &json!(3)));
    // Reading alone acknowledges nothing.
    assert_eq!(texts(&bob.mcp.ok("read_inbox", json!({})).await), ["one", "two", "three"]);
    assert_eq!(bob.mcp.ok("whoami", json!({})).await["inbox_unread"], 3);
    let second = bob.mcp.ok("read_inbox", json!({"after": 2})).await;
    assert_eq!(texts(&second), ["three"]);
    assert_eq!((&second["next_after"], &second["unread"]), (&json!(3), &json!(1)));
    // An older position takes nothing back, and one beyond the end is the end.
    assert_eq!(texts(&bob.mcp.ok("read_inbox", json!({"after": 1})).await), ["three"]);
    let none = bob.mcp.ok("read_inbox", json!({"after": 99})).await;
    assert_eq!((&none["items"], &none["unread"]), (&json!([]), &json!(0)));
    assert_eq!(none["next_after"], 3);
    assert!(none.get("untrusted").is_none() && none.get("caution").is_none());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_waits_for_news_and_is_answered_with_it() {
    let (hub, ann, bob) = two().await;
    let begun = Instant::now();
    assert_eq!(bob.mcp.ok("read_inbox", json!({})).await["items"], json!([]));
    let none = bob.mcp.ok("read_inbox", json!({"wait_seconds": 1})).await;
    assert_eq!(none["items"], json!([]));
    assert!(begun.elapsed() >= Duration::from_secs(1) && none["next"].is_string());
    let begun = Instant::now();
    let (read, _) = tokio::join!(bob.mcp.ok("read_inbox", json!({"wait_seconds": 50})), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ann.mcp.ok("send_message", json!({"to": bob.address, "text": "now"})).await
    });
    assert_eq!(read["items"][0]["text"], "now");
    assert!(begun.elapsed() < Duration::from_secs(25), "{:?}", begun.elapsed());
    bob.mcp.fail("read_inbox", json!({"wait_seconds": 51}), "malformed").await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_texts_are_cut_and_long_inboxes_come_in_pieces() {
    let (hub, ann, bob) = two().await;
    ann.mcp.ok("send_message", json!({"to": bob.address, "text": "é".repeat(4_001)})).await;
    // Escapes make it longer than its characters.
    ann.mcp.ok("send_message", json!({"to": bob.address, "text": "\u{1}".repeat(16_000)})).await;
    for number in 0..6 {
        let text = format!("{number}{}", "x".repeat(5_000));
        ann.mcp.ok("send_message", json!({"to": bob.address, "text": text})).await;
    }
    let (mut after, mut seen) = (0, Vec::new());
    while seen.len() < 8 {
        let arguments = json!({"limit": 20, "after": after});
        let result = bob.mcp.call("read_inbox", arguments).await;
        let text = result["content"][0]["text"].as_str().expect("a text");
        assert!(text.chars().count() <= 24_000, "{}", text.chars().count());
        let read = &result["structuredContent"];
        let items = read["items"].as_array().expect("items");
        assert!(!items.is_empty(), "every call goes on");
        seen.extend(items.iter().cloned());
        after = read["next_after"].as_u64().expect("a position");
    }
    assert_eq!(seen[0]["text"], "é".repeat(4_000));
    assert!(seen.iter().all(|item| item["cut"] == true));
    let positions: Vec<_> = seen.iter().map(|item| item["position"].as_u64()).collect();
    assert_eq!(positions, (1..=8).map(Some).collect::<Vec<_>>());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_a_key_is_sent_once_also_after_a_restart() {
    let (hub, ann, bob) = two().await;
    let message = json!({"to": bob.address, "text": "hi", "idempotency_key": "k-1"});
    let first = ann.mcp.ok("send_message", message.clone()).await;
    assert!(first.get("repeated").is_none());
    let again = ann.mcp.ok("send_message", message.clone()).await;
    assert_eq!(again, json!({"to": bob.address, "position": 1, "repeated": true}));
    let mut other = message.clone();
    other["text"] = "ho".into();
    ann.mcp.fail("send_message", other, "other_content").await;
    let (ann, bob) = (ann.agent, bob.agent);
    let hub = hub.restart(Profile::Serve, &[]).await;
    let (ann, bob) = (Party::of(&hub, ann).await, Party::of(&hub, bob).await);
    hub.pass(Millis::minutes(10));
    assert_eq!(ann.mcp.ok("send_message", message.clone()).await["repeated"], true);
    assert_eq!(bob.inbox().await.len(), 1);
    // The key is the caller's own.
    let mut own = message;
    own["to"] = ann.address.clone().into();
    assert!(bob.mcp.ok("send_message", own).await.get("repeated").is_none());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_message_within_two_minutes_is_a_repetition() {
    let (hub, ann, bob) = two().await;
    let message = json!({"to": bob.address, "text": "hi"});
    ann.mcp.ok("send_message", message.clone()).await;
    hub.pass(Millis::seconds(115));
    let again = ann.mcp.ok("send_message", message.clone()).await;
    assert_eq!((&again["repeated"], &again["position"]), (&json!(true), &json!(1)));
    assert!(again["next"].as_str().is_some_and(|text| text.contains("idempotency_key")), "{again}");
    // Other words, and the same words later, are other messages.
    ann.mcp.ok("send_message", json!({"to": bob.address, "text": "ho"})).await;
    hub.pass(Millis::seconds(6));
    assert_eq!(ann.mcp.ok("send_message", message).await["position"], 3);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_of_a_worker_is_answered_by_its_position() {
    let hub = TestHub::serve(&[]).await;
    hub.grant("ann", "10").await;
    let ann = Party::join(&hub, "ann", None).await;
    let bob = Party::join(&hub, "bob", Some(("sum", "0.5"))).await;
    let job = ann.hire(&hub, &bob, "sum", &json!({"a": 1})).await;
    bob.mcp.ok("next_job", json!({})).await;
    let asked = json!({"text": "which b?"});
    let key = Some(bob.agent.key.as_str());
    hub.post(&format!("/v1/jobs/{job}/ask"), key, &asked).await.expect(200);
    let inbox = ann.inbox().await;
    let item = inbox.iter().find(|item| item["kind"] == "input_requested").expect("a question");
    assert_eq!((&item["text"], &item["from"]), (&json!("which b?"), &json!(bob.address)));
    assert_eq!(item["job_id"], job);
    let reply = json!({"reply_to": item["position"], "text": "2"});
    assert_eq!(ann.mcp.ok("send_message", reply.clone()).await["to"], bob.address);
    let inbox = bob.inbox().await;
    let answer = inbox.iter().find(|item| item["kind"] == "input_provided").expect("an answer");
    assert_eq!(answer["text"], "2");
    let work = hub.get("/v1/work?limit=5", key).await.expect(200);
    assert_eq!(work.at("/jobs/0/questions/0/answer"), json!({"text": "2"}));
    // It is not open any more.
    let mut other = reply;
    other["text"] = "3".into();
    ann.mcp.call("send_message", other).await["isError"]
        .as_bool()
        .filter(|failed| *failed)
        .expect("a failure");
    hub.stop().await;
}
