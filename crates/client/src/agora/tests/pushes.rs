use http::{HeaderMap, HeaderValue};
use rialto_core::time::Timestamp;
use rialto_protocols::agora::MessageType;
use rialto_protocols::agora::wire::receipt;

use super::hub::{hub, identity};
use crate::agora::webhook::WebhookReceiver;
use crate::agora::{TrustError, WebhookSecret};
use crate::clock;

#[tokio::test]
async fn a_push_is_believed_with_its_receipt_and_handed_out_once() {
    let (hub, _stage, agent) = hub(|_, _| {}).await;
    let yesterday = Timestamp(clock::now().0 - 86_400_000);
    let sealed = identity(2)
        .sign_with_id("m-1", yesterday, MessageType::Status, "{}", None)
        .expect("sealed");
    let text = sealed.as_str();
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
