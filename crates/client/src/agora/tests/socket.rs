use futures_util::{SinkExt, StreamExt};
use rialto_core::time::Timestamp;
use rialto_protocols::agora::wire::hello::Welcome;
use rialto_protocols::agora::wire::status::MessageStatus;
use rialto_protocols::agora::wire::{envelope, signature};
use rialto_protocols::agora::{Envelope, MessageType, Receipt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

use super::hub::identity;
use crate::agora::{Agent, EnvelopePayload, Frame, InboxError, Profile, Server, TrustError};
use crate::clock;

fn say(kind: MessageType, payload: &str) -> String {
    identity(100).sign(kind, payload, None).expect("signed").as_str().to_owned()
}

fn receipt(text: &str, at: Timestamp) -> String {
    let json = envelope::read_json(text.as_bytes()).expect("JSON");
    let read = Envelope::read(&json).expect("an envelope");
    let proof = signature::verify(&read).expect("a proof");
    say(MessageType::Status, &Receipt::of(&read, &proof, at).write())
}

/// A test hub that describes itself, welcomes one socket, sends these frames, and answers one.
async fn hub(frames: Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        let (mut plain, _) = listener.accept().await.expect("a caller");
        let read = plain.read(&mut [0; 4_096]).await.expect("a request");
        assert!(read > 0);
        let about = json!({"protocol": "agora/1.0", "hub": identity(100).did(),
            "window_ms": 60_000, "endpoints": {}});
        let answer = crate::testing::answer(200, "", &about.to_string());
        plain.write_all(&answer).await.expect("written");
        drop(plain);
        let (stream, _) = listener.accept().await.expect("a caller");
        let mut socket = accept_async(stream).await.expect("a WebSocket");
        let mut heard = async || {
            let text = socket.next().await.expect("a frame").expect("a frame");
            let posted: Value = serde_json::from_str(text.to_text().expect("text")).expect("JSON");
            let id = posted["id"].as_str().expect("an id").to_owned();
            let answer = match posted["type"].as_str() {
                Some("HELLO") => {
                    let welcome = Welcome {
                        nonce: posted["payload"]["nonce"].as_str(),
                        hello_id: Some(&id),
                        hello_sender: posted["sender"]["id"].as_str(),
                        ..Welcome::default()
                    };
                    say(MessageType::Welcome, &welcome.write())
                }
                _ => say(MessageType::Status, &MessageStatus::accepted(&id, None).write()),
            };
            socket.send(Message::text(answer)).await.expect("sent");
        };
        heard().await;
        heard().await;
        for frame in frames {
            socket.send(Message::text(frame)).await.expect("sent");
        }
    });
    url
}

#[tokio::test]
async fn envelopes_go_both_ways_and_each_is_trusted_with_its_receipt() {
    let old = Timestamp(clock::now().0 - 3_600_000);
    let envelope =
        identity(2).sign_with_id("m-1", old, MessageType::Status, "{}", None).expect("signed");
    let (text, fresh) =
        (envelope.as_str().to_owned(), identity(2).sign(MessageType::Status, "{}", None));
    let fresh = fresh.expect("signed").as_str().to_owned();
    let frames =
        vec![receipt(&text, old), text.clone(), fresh, receipt(&text, old), "{}".to_owned()];
    let url = hub(frames).await;
    let agent = Agent::new(identity(1), Server::discover(&url).await.expect("a server"));
    let mut socket = agent.socket(&Profile::default()).await.expect("a socket");
    assert_eq!(socket.welcome().expect("welcome").hub, identity(100).did());
    let ours = agent.identity().sign(MessageType::Status, "{}", None).expect("signed");
    socket.send(&ours).await.expect("sent");
    let Some(Ok(Frame::Answer(answer))) = socket.next().await else { panic!("no answer") };
    assert!(
        matches!(answer.payload, EnvelopePayload::MessageStatus { message_id: Some(id), .. } if id == ours.id)
    );
    let Some(Ok(Frame::Envelope(envelope))) = socket.next().await else { panic!("no envelope") };
    assert_eq!((envelope.id.as_str(), envelope.received_at), ("m-1", old));
    let without = socket.next().await.expect("open").expect_err("no receipt");
    assert!(matches!(without, InboxError::NotTrusted(TrustError::NoReceipt)));
    assert!(socket.next().await.expect("open").is_err(), "a receipt is for what follows it");
    assert!(socket.next().await.is_none());
}
