//! Required and optional members of an envelope (R1–R10, R19, R20, section 7).

use rialto_protocols::agora::SignatureForm;
use serde_json::{Value, json};

use super::kit::{Hub, Key, assert_error, assert_signed};
use super::pen::{Pen, canonical, state};
use crate::kit::Reply;
use crate::relay::kit::with;

/// A 400 from the hub that names the field and shows a valid value.
#[track_caller]
fn assert_bad(reply: &Reply, field: &str) {
    assert_error(reply, 400);
    assert_eq!(reply.str("/payload/field"), field, "{}", reply.text);
    let name = field.trim_start_matches('/').replace('/', ".");
    let message = reply.str("/payload/message");
    assert!(message.contains(&name), "{message} does not name {name}");
    assert!(reply.at("/payload/example").is_object(), "{}", reply.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_member_is_needed_and_has_its_type() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let before = state(&hub).await;
    for (member, wrong) in [
        ("/protocol", json!(1)),
        ("/id", json!(7)),
        ("/timestamp", json!(1_774_000_800)),
        ("/type", json!(["STATUS"])),
        ("/sender", json!("did:key:z6Mk")),
        ("/sender/id", json!({})),
        ("/payload", json!([])),
        ("/payload", json!("{}")),
    ] {
        let draft = alice.note(bob.public());
        // Without a sender, there is no signature member to fill.
        let sent = |draft: Value| match draft.pointer("/sender/signature") {
            Some(_) => alice.sign(&draft),
            None => draft.to_string(),
        };
        for value in [None, Some(Value::Null), Some(wrong.clone())] {
            let text = sent(with(&draft, member, value));
            assert_bad(&hub.post_envelope(&text).await, member);
        }
    }
    // A signature that is not a string makes the envelope invalid.
    for (value, code) in [(None, 400), (Some(json!(null)), 400), (Some(json!(5)), 400)] {
        let draft = with(&alice.note(bob.public()), "/sender/signature", value);
        let reply = hub.post_envelope(&draft.to_string()).await;
        assert_error(&reply, code);
        assert_bad(&reply, "/sender/signature");
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn members_have_their_values() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    hub.hello(&bob, json!({})).await;
    let before = state(&hub).await;
    for (member, value) in [
        ("/protocol", json!("agora/1.1")),
        ("/protocol", json!("AGORA/1.0")),
        ("/protocol", json!("agora/1.0 ")),
        ("/id", json!("")),
        ("/id", json!("x".repeat(129))),
        ("/type", json!("")),
        ("/type", json!("status")),
        ("/type", json!("DEBATE")),
        ("/recipient", json!("nobody")),
        ("/recipient", json!(7)),
        ("/recipient/id", json!("did:key:z6Mk")),
    ] {
        let text = alice.sign(&with(&alice.note(bob.public()), member, Some(value)));
        assert_bad(&hub.post_envelope(&text).await, member);
    }
    assert_eq!(state(&hub).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_need_not_be_a_uuid_and_is_its_senders_own() {
    let hub = Hub::serve(&[]).await;
    let reads = hub.hello(&Key::of(3), json!({})).await;
    let ids = ["1".to_owned(), "ä/b c".to_owned(), "x".repeat(128)];
    for number in [1, 2] {
        for id in &ids {
            let pen = Pen::of(number);
            let draft = with(&pen.note(Key::of(3).public()), "/id", Some(json!(id)));
            let taken = hub.post_envelope(&pen.sign(&draft)).await.expect(202);
            assert_eq!(taken.str("/payload/message_id"), *id);
        }
    }
    assert_eq!(hub.ids(&reads).await, [&ids[..], &ids[..]].concat());
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_members_are_signed_kept_and_forwarded_byte_for_byte() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let mut draft = alice.note(bob.public());
    draft["x-trace"] = json!({"__proto__": [1, null, {"": "\u{fb33}\r"}]});
    draft["sender"]["note"] = json!("mine");
    draft["recipient"]["via"] = json!("hub");
    draft["payload"]["price"] = json!("keep");
    // Pretty-printed, with unusual spellings of numbers.
    let text = serde_json::to_string_pretty(&draft).expect("JSON");
    let text = text.replace(r#""signature": """#, r#""signature":"""#);
    let text = text.replace(r#""keep""#, "[5.0, -0, 1E2, 4.50]");
    let signed = alice.sign_text(&text, SignatureForm::Empty);
    hub.post_envelope(&signed).await.expect(202);
    let page = hub.get("/agora/messages", Some(&reads.0)).await.expect(200);
    assert!(page.text.contains(&signed), "{}", page.text);
    // Unknown members are signed too: removing one breaks the signature.
    let less = with(&serde_json::from_str(&signed).expect("JSON"), "/x-trace", None);
    assert_error(&hub.post_envelope(&less.to_string()).await, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_two_readers_could_read_differently_is_refused_before_the_signature() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let draft = alice.note(bob.public());
    let good = alice.sign(&draft);
    let payload = draft["payload"].to_string();
    let again = |other: &str| good.replacen(&payload, &format!("{payload},{other}"), 1);
    let instead = |other: &str| good.replacen(&payload, other, 1);
    let deep = format!("{{\"deep\":{}{}}}", "[".repeat(64), "]".repeat(64));
    let before = state(&hub).await;
    for (text, why) in [
        (again(r#""payload":{"status":"idle"}"#), "payload twice"),
        (again(&format!(r#""payload":{payload}"#)), "payload twice, the same"),
        (again(r#""p\u0061yload":{}"#), "payload twice, once in disguise"),
        (instead(r#"{"status":"busy","status":"idle"}"#), "a payload's member twice"),
        (format!("\u{feff}{good}"), "a BOM"),
        (format!("{good}{good}"), "two envelopes"),
        (format!("{good}\0"), "a byte after the end"),
        (good[..good.len() - 1].to_owned(), "cut short"),
        (format!("[{good}]"), "a list"),
        (String::new(), "nothing"),
        (instead(r#"{"text":"\ud83d"}"#), "half a character"),
        (instead(r#"{"\udc00":1}"#), "half a character in a name"),
        (instead(r#"{"n":1e400}"#), "more than a double holds"),
        (instead(r#"{"n":NaN}"#), "no number"),
        (instead(r#"{"n":9007199254740992}"#), "2^53"),
        (instead(r#"{"n":9007199254740993}"#), "2^53 + 1"),
        (instead(r#"{"n":-9007199254740992}"#), "-2^53"),
        (instead(&deep), "too deep"),
    ] {
        let reply = hub.post_envelope(&text).await;
        assert_eq!(reply.status, 400, "{why}: {}", reply.text);
        assert_error(&reply, 400);
    }
    let broken = [good.as_bytes(), b"\xff"].concat();
    assert_error(&hub.send("POST", "/agora/envelopes", &[], &broken).await, 400);
    assert_eq!(state(&hub).await, before);
    // The largest safe integer passes, and so does the unmodified envelope.
    let largest = with(&draft, "/id", Some(json!("largest")));
    let largest = largest.to_string().replacen(&payload, r#"{"n":9007199254740991}"#, 1);
    hub.post_envelope(&alice.sign_text(&largest, SignatureForm::Empty)).await.expect(202);
    hub.post_envelope(&good).await.expect(202);
    assert_eq!(hub.letters(&reads).await.len(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cost_cannot_be_swapped_for_another_with_the_same_double() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Key::of(1), Pen::of(2));
    let reads = hub.hello(&alice, json!({})).await;
    hub.provider(&Key::of(2), "agora:search:v1", None).await;
    let request = alice.request("agora:search:v1", json!({}));
    hub.tell(&request).await.expect(202);
    let terms = json!({"request_id": request.id, "cost": 777, "ttl": 60_000, "eta": 0});
    let text = bob.draft("OFFER", terms).to_string();
    let costing = |cost: &str| text.replacen("777", cost, 1);
    // Both numbers are the same double, so they have the same canonical text and signature.
    let signed = canonical(&text).replacen("777", "9007199254740992", 1);
    let before = state(&hub).await;
    for cost in ["9007199254740992", "9007199254740993"] {
        let reply = hub.post_envelope(&bob.sign_over(&costing(cost), &signed)).await;
        assert_bad(&reply, "/payload/cost");
        assert!(reply.str("/payload/hint").contains("double"), "{}", reply.text);
    }
    // Amounts that are valid doubles but not exact or not allowed are refused, too.
    for cost in ["9007199254740992.0", "9007199254740993.0", "0.0000001", "-1"] {
        let text = costing(cost);
        let reply = hub.post_envelope(&bob.sign_text(&text, SignatureForm::Empty)).await;
        assert_bad(&reply, "/payload/cost");
    }
    assert_eq!(state(&hub).await, before);
    // The amount is the number that was signed, however it was spelled.
    hub.post_envelope(&bob.sign_text(&costing("525.0e-2"), SignatureForm::Empty)).await.expect(202);
    assert_eq!(hub.standing(&reads, &request.id).await["offers"][0]["cost"], 5.25);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mebibyte_is_taken_and_one_byte_more_is_not() {
    let hub = Hub::serve(&[]).await;
    let (alice, bob) = (Pen::of(1), Key::of(2));
    let reads = hub.hello(&bob, json!({})).await;
    let of_size = |size: usize| {
        let text = alice.sign(&alice.note(bob.public()));
        let room = size - text.len();
        text + &" ".repeat(room)
    };
    hub.post_envelope(&of_size(1 << 20)).await.expect(202);
    let before = state(&hub).await;
    let close = [("connection", "close")];
    let encoded = [("content-encoding", "gzip"), ("connection", "close")];
    for path in ["/agora/envelopes", "/agora", &format!("/agora/agents/{}", bob.did())] {
        let body = of_size((1 << 20) + 1);
        let reply = hub.send("POST", path, &close, body.as_bytes()).await;
        assert_eq!((reply.status, reply.at("/payload/code")), (413, json!(400)), "{}", reply.text);
        assert_signed(&reply.text);
        let reply = hub.send("POST", path, &encoded, of_size(2_000).as_bytes()).await;
        assert_eq!((reply.status, reply.at("/payload/code")), (415, json!(400)), "{}", reply.text);
        assert_signed(&reply.text);
    }
    assert_eq!(state(&hub).await, before);
    assert_eq!(hub.letters(&reads).await.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn envelopes_of_other_protocols_are_told_which_one_is_spoken_here() {
    let hub = Hub::serve(&[]).await;
    let before = state(&hub).await;
    let later = json!({"version": "1.0", "ts": 1_774_000_800, "sig": "x", "type": "REQUEST"});
    let reply = hub.post_envelope(&later.to_string()).await;
    assert_bad(&reply, "/protocol");
    assert!(reply.str("/payload/hint").contains(r#"protocol: "agora/1.0""#), "{}", reply.text);
    let debate = Pen::of(1).sign(&Pen::of(1).draft("DEBATE", json!({})));
    let reply = hub.post_envelope(&debate).await;
    assert_bad(&reply, "/type");
    assert!(reply.str("/payload/hint").contains("DEBATE"), "{}", reply.text);
    // The reference relay's paths do not exist here, and the answer is an ERROR.
    for (method, path) in [("POST", "/agora/events"), ("GET", "/agora/events?since=0")] {
        assert_error(&hub.call(method, path, None, Some("{}")).await, 404);
    }
    assert_eq!(state(&hub).await, before);
}
