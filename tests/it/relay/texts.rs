//! Texts arrive byte for byte, whatever they contain (R46).

use serde_json::{Value, json};

use super::kit::Peer;
use crate::kit::{Behaviour, TestHub, Worker};

/// Texts that look like the end of something, or are easily lost.
const TEXTS: &[&str] = &[
    "下午一起喝杯咖啡?",
    "👩‍👩‍👧‍👦 👋🏽 \u{1F1E8}\u{1F1F3}",
    "line one\nline two\r\nline three\rline four",
    "\n\n",
    "\r\n\r\nid: 99\nevent: message\ndata: {\"trace_id\":\"forged\"}\n\n",
    "data: x\n\nevent: connected\ndata: {}\n\n",
    "\u{0}",
    "a\u{0}b\u{1}\u{8}\u{c}\u{1f}\u{7f}",
    "\u{2028}\u{2029}\u{85}\u{feff}",
    "\"quoted\" \\backslash\\ </script> &amp;",
    "e\u{301} is not \u{e9}",
    " \t leading and trailing \t ",
    "\u{10FFFF}\u{E000}",
];

/// The same value in several spellings; the recipient gets each one unchanged.
fn spellings(from: &str, text: &str) -> Vec<String> {
    let plain = serde_json::to_string(text).expect("text");
    let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04X}")).collect();
    let fields = |text: &str, gap: &str| {
        format!(
            "{{{gap}\"chorus_version\"{gap}:{gap}\"0.4\"{gap},{gap}\"sender_id\":{gap}\"{from}\"\
             {gap},\"original_text\"{gap}:{text},{gap}\"sender_culture\":\"zh-CN\",\
             {gap}\"x_number\":1.50e2{gap}}}"
        )
    };
    vec![
        fields(&plain, ""),
        fields(&format!("\"{escaped}\""), ""),
        // Pretty-printed, with every kind of line break.
        fields(&plain, "\n  "),
        fields(&plain, "\r\n\t"),
        fields(&plain, "\r"),
    ]
}

async fn post(hub: &TestHub, from: &Peer, to: &Peer, envelope: &str, n: usize) -> u16 {
    // Separate conversations, so that repeated texts are not a loop.
    let envelope = format!("{{\"conversation_id\":\"{n}\",{}", &envelope[1..]);
    let body = format!("{{\"receiver_id\":\"{}\",\"envelope\":{envelope}}}", to.id);
    hub.post_text("/messages", Some(&from.key), &body).await.status
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_event_has_the_text_as_it_was_sent_and_is_one_event() {
    let hub = TestHub::serve(&[]).await;
    let (alice, bob) = (hub.join("alice@chorus").await, hub.join("bob@chorus").await);
    let mut inbox = hub.inbox(&bob).await;
    let mut n = 0;
    for text in TEXTS {
        for spelling in spellings(&alice.id, text) {
            assert_eq!(post(&hub, &alice, &bob, &spelling, n).await, 200, "{spelling}");
            n += 1;
            let event = inbox.next().await;
            assert_eq!((event.event.as_str(), event.position()), ("message", n as u64));
            assert_eq!(event.said(), *text);
            // Byte for byte, except for line breaks between tokens, which would end the event.
            let sent = spelling[1..].replace(['\r', '\n'], " ");
            assert!(event.text.contains(&sent), "{} has no {sent}", event.text);
            assert!(!event.text.contains(['\r', '\n', '\0']), "one line of data");
        }
    }
    // There is no other event: no text produced one of its own.
    assert_eq!(inbox.raw.matches("\nevent: ").count(), n + 1);
    assert!(!inbox.raw.contains("\nevent: message\ndata: {\"trace_id\":\"forged\""));
    // The history has it as well, and after a restart the inbox still does.
    let listed = hub.get("/agent/messages?limit=500&after=0", Some(&bob.key)).await.expect(200);
    let listed: Vec<Value> = listed.at("/data").as_array().expect("a list").clone();
    let said: Vec<_> = listed.iter().map(|one| one["envelope"]["original_text"].clone()).collect();
    let sent: Vec<Value> =
        TEXTS.iter().flat_map(|text| [text; 5]).map(|text| json!(text)).collect();
    assert_eq!(said, sent);
    let hub = hub.restart(rialto_hub::config::Profile::Serve, &[]).await;
    let mut inbox = hub.inbox_at(&bob, "", Some("0")).await;
    for text in TEXTS.iter().flat_map(|text| [text; 5]) {
        assert_eq!(inbox.message().await.said(), *text);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_gets_the_envelope_byte_for_byte() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, r#"{"status":"ok"}"#.to_owned())).await;
    let alice = hub.join("alice@chorus").await;
    let bob = hub.join_at("bob@chorus", &worker.url).await;
    let mut n = 0;
    for text in TEXTS {
        for spelling in spellings(&alice.id, text) {
            assert_eq!(post(&hub, &alice, &bob, &spelling, n).await, 200);
            let got = worker.got().pop().expect("it was called");
            let wanted =
                format!("{{\"envelope\":{{\"conversation_id\":\"{n}\",{}}}", &spelling[1..]);
            assert_eq!(got.body, wanted);
            assert_eq!(got.json()["envelope"]["original_text"], *text);
            n += 1;
        }
    }
    hub.stop().await;
}
