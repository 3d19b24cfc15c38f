use http::{HeaderMap, HeaderValue};
use rialto_core::time::Timestamp;
use rialto_protocols::agora::MessageType;
use rialto_protocols::agora::wire::receipt;
use serde_json::json;

use super::hub::{hub, identity};
use crate::agora::webhook::WebhookReceiver;
use crate::agora::{
    EnvelopePayload, Inbox, InboxError, InboxOptions, IncomingEnvelope, TrustError, WebhookSecret,
};
use crate::clock;
use crate::testing::in_time;

async fn next(inbox: &mut Inbox) -> IncomingEnvelope {
    in_time(inbox.next()).await.expect("open").expect("an envelope")
}

#[tokio::test]
async fn every_envelope_comes_once_and_in_order_across_reconnects() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    let you = identity(2);
    let yesterday = Timestamp(clock::now().0 - 86_400_000);
    hub.put_at(&you, MessageType::Status, &json!({"status": "idle"}), yesterday);
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    let first = next(&mut inbox).await;
    assert_eq!((first.position, first.sender, first.received_at), (Some(1), you.key(), yesterday));
    assert!(inbox.is_backlog(1) && !inbox.is_backlog(2));
    for n in 2..=4 {
        hub.put(&you, MessageType::Status, &json!({"status": "busy", "n": n}));
        let item = next(&mut inbox).await;
        assert_eq!(item.position, Some(n));
        assert!(item.raw().contains(&format!("\"n\":{n}")));
    }
    assert_eq!(inbox.ack(4).await.expect("acked").acked_to, 7);
    assert_eq!(hub.said("HELLO").len(), 1, "one token does for all of it");
}

#[tokio::test]
async fn an_envelope_that_cannot_be_trusted_is_an_error_and_the_next_ones_follow() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    let (me, you, now) = (identity(1), identity(2), clock::now());
    let sign = |to| you.sign(MessageType::Status, "{}", to).expect("signed").as_str().to_owned();
    let good = sign(Some(me.key()));
    let receipt = hub.receipt(&good, now);
    let (other, elsewhere) = (sign(None), sign(Some(identity(3).key())));
    let old = Timestamp(now.0 - 61_000);
    hub.put_raw(&good, None);
    hub.put_raw(&other, Some(&receipt));
    hub.put_raw(&good.replace("STATUS", "HELLO"), Some(&receipt));
    hub.put_raw(&elsewhere, Some(&hub.receipt(&elsewhere, now)));
    hub.put_raw(&good, Some(&hub.receipt(&good, old)));
    hub.put_raw("7", Some("{}"));
    hub.put_raw(&good, Some(&receipt));
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    for n in 1..=6 {
        let error = inbox.next().await.expect("open").expect_err("not trusted");
        let InboxError::NotTrusted(why) = error else { panic!("{n}: {error}") };
        assert_eq!(matches!(why, TrustError::NoReceipt), n == 1, "{n}: {why}");
        assert_eq!(matches!(why, TrustError::WrongRecipient), n == 4, "{n}: {why}");
    }
    assert_eq!(next(&mut inbox).await.position, Some(7));
    let page = agent.messages(None, 50).await.expect("a page");
    assert_eq!((page.items.len(), page.next_after), (7, 7));
    assert_eq!(page.items.iter().filter(|item| item.is_ok()).count(), 1);
}

#[tokio::test]
async fn a_token_that_is_refused_is_replaced() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    let mut inbox = agent.inbox(InboxOptions::default()).await.expect("an inbox");
    hub.revoke();
    hub.put(&identity(2), MessageType::Hello, &json!({"name": "you"}));
    let item = next(&mut inbox).await;
    assert_eq!(item.payload, EnvelopePayload::Hello { nonce: None, name: Some("you".to_owned()) });
    hub.revoke();
    assert!(agent.messages(Some(0), 1).await.is_ok());
    assert_eq!(hub.said("HELLO").len(), 3);
}

#[tokio::test]
async fn a_webhook_is_trusted_with_its_receipt_and_returned_once() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    let yesterday = Timestamp(clock::now().0 - 86_400_000);
    let envelope = identity(2)
        .sign_with_id("m-1", yesterday, MessageType::Status, "{}", None)
        .expect("signed");
    let text = envelope.as_str();
    let header = receipt::to_header(&hub.receipt(text, yesterday));
    let mut headers = HeaderMap::new();
    let receiver = WebhookReceiver::new(&agent, None);
    let receive = |headers: &HeaderMap| receiver.receive(headers, text.as_bytes(), clock::now());
    assert_eq!(receive(&headers).expect_err("no receipt"), TrustError::NoReceipt);
    headers.insert("agora-receipt", HeaderValue::from_str(&header).expect("text"));
    let incoming = receive(&headers).expect("good").expect("new");
    assert_eq!((incoming.id.as_str(), incoming.sender), ("m-1", identity(2).key()));
    assert!(receive(&headers).expect("good").is_none(), "the hub tries again until it is answered");
    let secret = WebhookSecret::read("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    let strict = WebhookReceiver::new(&agent, secret);
    let unsigned = strict.receive(&headers, text.as_bytes(), clock::now());
    assert!(matches!(unsigned, Err(TrustError::Delivery(_))));
}
