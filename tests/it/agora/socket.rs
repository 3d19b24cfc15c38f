//! WebSocket: a HELLO opens it, a receipt precedes each envelope, and it shares its state with the
//! other transports (R61, R69, R72, 2.5).

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use super::kit::{Hub, Key, Said, assert_error, assert_signed, assert_vouched};
use super::scene::{Pair, SEARCH};
use crate::kit::{Behaviour, Worker, eventually};

type Stream =
    tokio_tungstenite::WebSocketStream<tokio_tungstenite::MaybeTlsStream<tokio::net::TcpStream>>;

/// One end of a WebSocket.
pub struct Socket(Stream);

impl Socket {
    pub async fn open(hub: &Hub) -> Self {
        let url = format!("{}/agora/ws", hub.url.replace("http://", "ws://"));
        Self(tokio_tungstenite::connect_async(url).await.expect("a socket").0)
    }

    /// Opens a socket, sends HELLO, and reads the WELCOME.
    async fn of(hub: &Hub, key: &Key) -> Self {
        let mut socket = Self::open(hub).await;
        let hello =
            key.sign_for(MessageType::Hello, &json!({"nonce": "n-1"}), Some(hub.hub_key().await));
        socket.say(&hello).await;
        let text = socket.text().await;
        let welcome: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(assert_signed(&text), hub.hub_key().await);
        assert_eq!(welcome["type"], "WELCOME");
        assert_eq!(welcome["payload"]["nonce"], "n-1");
        assert_eq!(welcome["payload"]["hello_id"], hello.id);
        assert_eq!(welcome["payload"]["hello_sender"], key.did());
        socket
    }

    pub async fn say(&mut self, said: &Said) {
        self.0.send(Message::text(said.text.clone())).await.expect("it is taken");
    }

    /// The next text frame; `None` when the hub has closed.
    pub async fn next(&mut self) -> Option<String> {
        let read = async {
            loop {
                match self.0.next().await {
                    Some(Ok(Message::Text(text))) => return Some(text.to_string()),
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return None,
                    Some(Ok(other)) => panic!("{other:?}"),
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(60), read).await.expect("a frame, or an end")
    }

    async fn text(&mut self) -> String {
        self.next().await.expect("the socket is open")
    }

    /// The next frame, which is the hub's answer to the last envelope.
    async fn answer(&mut self) -> Value {
        let text = self.text().await;
        assert_signed(&text);
        serde_json::from_str(&text).expect("JSON")
    }

    /// Sends an envelope and returns the hub's answer.
    async fn ask(&mut self, said: &Said) -> Value {
        self.say(said).await;
        let answer = self.answer().await;
        assert_eq!(answer["payload"]["message_id"], said.id, "{answer}");
        answer
    }

    /// The next two frames: the receipt, and its envelope.
    async fn letter(&mut self, hub: &Hub) -> Value {
        let (receipt, envelope) = (self.text().await, self.text().await);
        let json = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
        let letter = json!({"receipt": json(&receipt), "envelope": json(&envelope)});
        assert_vouched(hub.hub_key().await, &letter);
        letter["envelope"].clone()
    }

    async fn assert_refused(mut self, code: u16) {
        let answer = self.answer().await;
        assert_eq!((&answer["type"], &answer["payload"]["code"]), (&json!("ERROR"), &json!(code)));
        assert_eq!(self.next().await, None, "and closed");
    }
}

#[tokio::test]
async fn a_whole_negotiation_goes_over_two_sockets() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let (mut hers, mut his) = (Socket::of(hub, alice).await, Socket::of(hub, bob).await);
    let request = alice.request(SEARCH, json!({"budget": {"max": 6}}));
    let taken = hers.ask(&request).await;
    assert_eq!(taken["payload"]["status"], "accepted");
    assert_eq!(taken["payload"]["state"], "PENDING");
    assert_eq!(his.letter(hub).await, request.json());
    let offer = bob.offer(&request.id, json!(5.25));
    assert_eq!(his.ask(&offer).await["payload"]["state"], "NEGOTIATING");
    assert_eq!(hers.letter(hub).await, offer.json());
    let accept = alice.accept(&offer);
    assert_eq!(hers.ask(&accept).await["payload"]["state"], "PROCESSING");
    assert_eq!(his.letter(hub).await, accept.json());
    let result = bob.result(&request.id);
    assert_eq!(his.ask(&result).await["payload"]["state"], "COMPLETED");
    assert_eq!(hers.letter(hub).await, result.json());
    assert_eq!(pair.earned().await, "5.25");
}

#[tokio::test]
async fn the_ways_in_may_be_mixed_within_one_request() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, alice_reads, bob_reads } = &pair;
    // REQUEST over a socket, read as a stream.
    let mut events = hub.agora_inbox(bob_reads, None).await;
    let mut hers = Socket::of(hub, alice).await;
    let request = alice.request(SEARCH, json!({"budget": {"max": 6}}));
    hers.ask(&request).await;
    assert_eq!(*super::kit::envelope_of(&events.next().await), request.json());
    // OFFER by POST, read on the socket.
    let offer = pair.offer(&request, json!(2)).await;
    assert_eq!(hers.letter(hub).await, offer.json());
    // ACCEPT by POST, read on a page.
    let accept = alice.accept(&offer);
    hub.told(&accept).await;
    assert_eq!(hub.newest(bob_reads).await, accept.json());
    // RESULT over a socket, read everywhere.
    let mut his = Socket::of(hub, bob).await;
    assert_eq!(his.letter(hub).await, request.json());
    assert_eq!(his.letter(hub).await, accept.json());
    let result = bob.result(&request.id);
    his.ask(&result).await;
    assert_eq!(hers.letter(hub).await, result.json());
    assert_eq!(hub.newest(alice_reads).await, result.json());
    // An envelope sent over one transport is a repeat on every other.
    assert_eq!(hub.told(&request).await, "PENDING");
    assert_eq!(hub.told(&result).await, "COMPLETED");
    assert_eq!(pair.earned().await, "2");
}

#[tokio::test]
async fn what_is_refused_is_answered_and_the_connection_stays() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    let mut socket = Socket::of(hub, alice).await;
    let before = hub.held().await;
    let nobody = alice.request("agora:paint:v1", json!({}));
    let refused = socket.ask(&nobody).await;
    assert_eq!((&refused["type"], &refused["payload"]["code"]), (&json!("ERROR"), &json!(404)));
    for (text, code) in [("{", 400), ("[]", 400), ("", 400)] {
        socket.0.send(Message::text(text)).await.expect("it is taken");
        assert_eq!(socket.answer().await["payload"]["code"], code);
    }
    socket.0.send(Message::binary(nobody.text.clone())).await.expect("it is taken");
    assert_eq!(socket.answer().await["payload"]["code"], 400, "text frames only");
    assert_eq!(hub.held().await, before);
    socket.ask(&alice.request(SEARCH, json!({}))).await;
}

#[tokio::test]
async fn a_socket_is_no_way_around_the_rate() {
    let hub = Hub::serve(&[("limits.writes_per_minute", "3")]).await;
    let (alice, bob) = (Key::of(1), Key::of(2));
    hub.provider(&bob, SEARCH, None).await;
    let mut socket = Socket::of(&hub, &alice).await;
    let first = alice.request(SEARCH, json!({}));
    for said in [&first, &alice.request(SEARCH, json!({}))] {
        assert_eq!(socket.ask(said).await["type"], "STATUS");
    }
    let refused = socket.ask(&alice.request(SEARCH, json!({}))).await;
    assert_eq!(refused["payload"]["code"], 429);
    assert!(refused["payload"]["retry_after_seconds"].is_u64(), "{refused}");
    // A POST counts against the same limit, and a repeat is not counted on either.
    assert_error(&hub.tell(&alice.request(SEARCH, json!({}))).await, 429);
    assert_eq!(socket.ask(&first).await["type"], "STATUS");
}

#[tokio::test]
async fn a_connection_is_for_the_key_that_opened_it() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let mut socket = Socket::of(hub, alice).await;
    let request = pair.ask(json!({})).await;
    let before = hub.held().await;
    let refused = socket.ask(&bob.result(&request.id)).await;
    assert_eq!((&refused["type"], &refused["payload"]["code"]), (&json!("ERROR"), &json!(401)));
    assert_eq!(hub.held().await, before);
    assert_eq!(pair.state(&request).await, "PENDING");
}

#[tokio::test]
async fn only_a_new_hello_signed_for_this_hub_opens_one() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, bob, .. } = &pair;
    let hub_key = hub.hub_key().await;
    let open = async |said: &Said| {
        let mut socket = Socket::open(hub).await;
        socket.say(said).await;
        socket
    };
    // No recipient, another recipient, or not a HELLO.
    open(&alice.sign(MessageType::Hello, &json!({}))).await.assert_refused(401).await;
    let to_bob = alice.sign_for(MessageType::Hello, &json!({}), Some(bob.public()));
    open(&to_bob).await.assert_refused(401).await;
    let status = alice.sign_for(MessageType::Status, &json!({"status": "idle"}), Some(hub_key));
    open(&status).await.assert_refused(401).await;
    // Signed by another key than its sender's.
    let mut forged = alice.sign_for(MessageType::Hello, &json!({}), Some(hub_key)).json();
    forged["sender"]["id"] = bob.did().into();
    let forged = Said { id: String::new(), text: forged.to_string() };
    open(&forged).await.assert_refused(401).await;
    // Used before, over a socket or by POST.
    let hello = alice.sign_for(MessageType::Hello, &json!({}), Some(hub_key));
    let mut first = open(&hello).await;
    assert_eq!(first.answer().await["type"], "WELCOME");
    open(&hello).await.assert_refused(401).await;
    let posted = alice.sign_for(MessageType::Hello, &json!({"inbox": true}), Some(hub_key));
    hub.tell(&posted).await.expect(200);
    open(&posted).await.assert_refused(401).await;
    // In a binary frame, or not an envelope.
    let mut socket = Socket::open(hub).await;
    let hello = alice.sign_for(MessageType::Hello, &json!({}), Some(hub_key));
    socket.0.send(Message::binary(hello.text.clone())).await.expect("it is taken");
    socket.assert_refused(400).await;
    let mut socket = Socket::open(hub).await;
    socket.0.send(Message::text("hello")).await.expect("it is taken");
    socket.assert_refused(400).await;
    // An envelope refused in a binary frame was not recorded.
    assert_eq!(open(&hello).await.answer().await["type"], "WELCOME");
}

#[tokio::test]
async fn two_sockets_of_one_key_both_get_everything() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let mut both = [Socket::of(hub, bob).await, Socket::of(hub, bob).await];
    let request = pair.ask(json!({})).await;
    for socket in &mut both {
        assert_eq!(socket.letter(hub).await, request.json());
    }
    let result = bob.result(&request.id);
    for socket in &mut both {
        // The second answer is that of a repeat.
        assert_eq!(socket.ask(&result).await["payload"]["state"], "COMPLETED");
    }
    assert_eq!(hub.letters(&pair.alice_reads).await.len(), 1);
}

#[tokio::test]
async fn what_waited_comes_when_a_socket_opens_until_it_is_acknowledged() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, bob_reads, .. } = &pair;
    let first = pair.ask(json!({})).await;
    let second = pair.ask(json!({})).await;
    for _ in 0..2 {
        let mut socket = Socket::of(hub, bob).await;
        assert_eq!(socket.letter(hub).await, first.json());
        assert_eq!(socket.letter(hub).await, second.json());
    }
    hub.post("/agora/inbox/ack", Some(&bob_reads.0), &json!({"up_to": 1})).await.expect(200);
    assert_eq!(Socket::of(hub, bob).await.letter(hub).await, second.json());
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_socket_is_open_nothing_is_pushed_besides() {
    let pair = Pair::meet().await;
    let Pair { hub, bob, .. } = &pair;
    let worker = Worker::start(Behaviour::Say(200, String::new())).await;
    hub.hello(bob, json!({"endpoint": worker.url})).await;
    let mut socket = Socket::of(hub, bob).await;
    let first = pair.ask(json!({})).await;
    assert_eq!(socket.letter(hub).await, first.json());
    eventually(async || hub.pushes().is_empty()).await;
    assert_eq!(worker.got().len(), 0);
    drop(socket);
    hub.heard_by(0).await;
    let second = pair.ask(json!({})).await;
    assert_eq!(worker.heard(1).await[0].body, second.text);
}

#[tokio::test]
async fn frames_above_a_mebibyte_end_the_connection_and_are_not_taken() {
    let pair = Pair::meet().await;
    let Pair { hub, alice, .. } = &pair;
    let mut socket = Socket::of(hub, alice).await;
    let before = hub.held().await;
    let large = alice.request(SEARCH, json!({"x": "y".repeat(1_048_576)}));
    let _ = socket.0.send(Message::text(large.text)).await;
    assert_eq!(socket.next().await, None);
    assert_eq!(hub.held().await, before);
    // A large envelope below the limit is accepted.
    let mut socket = Socket::of(hub, alice).await;
    socket.ask(&alice.request(SEARCH, json!({"x": "y".repeat(1_000_000)}))).await;
}

#[tokio::test]
async fn a_hub_that_stops_closes_its_sockets_and_another_goes_on() {
    let pair = Pair::meet().await;
    let mut socket = Socket::of(&pair.hub, &pair.bob).await;
    let Pair { hub, alice, bob, .. } = pair;
    let (hub, ended) = tokio::join!(hub.restart(&[]), socket.next());
    assert_eq!(ended, None);
    let mut socket = Socket::of(&hub, &bob).await;
    let request = alice.request(SEARCH, json!({}));
    hub.told(&request).await;
    assert_eq!(socket.letter(&hub).await, request.json());
}

/// The HELLO is the only envelope it has to send before it resumes.
#[tokio::test]
async fn after_a_restart_a_socket_brings_what_is_not_acknowledged() {
    let pair = Pair::meet().await;
    let mut asked = Vec::new();
    for _ in 0..3 {
        asked.push(pair.ask(json!({})).await);
    }
    let mut socket = Socket::of(&pair.hub, &pair.bob).await;
    for request in &asked {
        assert_eq!(socket.letter(&pair.hub).await, request.json());
    }
    drop(socket);
    let Pair { hub, bob, bob_reads, .. } = pair;
    hub.post("/agora/inbox/ack", Some(&bob_reads.0), &json!({"up_to": 1})).await.expect(200);
    let hub = hub.restart(&[]).await;
    let mut socket = Socket::of(&hub, &bob).await;
    for request in &asked[1..] {
        assert_eq!(socket.letter(&hub).await, request.json());
    }
}

#[tokio::test]
async fn the_path_speaks_nothing_but_websocket() {
    let pair = Pair::meet().await;
    let reply = pair.hub.get("/agora/ws", None).await.expect(426);
    assert_eq!((reply.str("/type"), reply.at("/payload/code")), ("ERROR".into(), json!(400)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_frame_that_is_refused_has_no_effect() {
    let pair = Pair::priced(json!(2)).await;
    let Pair { hub, alice, bob, .. } = &pair;
    let known = hub.hub_key().await;
    let (to_bob, budget) = (Some(bob.public()), json!({"budget": {"max": 5}}));
    let hello = alice.sign_for(MessageType::Hello, &json!({"name": "said before"}), Some(known));
    hub.tell(&hello).await.expect(200);
    let newcomer = Key::of(8);
    let frames = [
        alice.request_for(SEARCH, budget.clone(), to_bob),
        alice.request_for(SEARCH, budget.clone(), Some(known)),
        alice.request(SEARCH, budget.clone()),
        alice.sign(MessageType::Hello, &json!({"name": "for any hub", "capabilities": [SEARCH]})),
        alice.sign_for(MessageType::Hello, &json!({"name": "for Bob"}), to_bob),
        alice.sign(MessageType::Status, &json!({"status": "busy"})),
        alice.sign_for(MessageType::Status, &json!({}), to_bob),
        newcomer.sign(MessageType::Hello, &json!({})),
        newcomer.request_for(SEARCH, budget, to_bob),
        hello,
    ];
    let before = super::pen::state(hub).await;
    for frame in &frames {
        let mut socket = Socket::open(hub).await;
        socket.say(frame).await;
        let answer = socket.answer().await;
        assert_eq!((&answer["type"], &answer["payload"]["code"]), (&json!("ERROR"), &json!(401)));
        assert_eq!(socket.next().await, None, "and it is closed");
    }
    assert_eq!(super::pen::state(hub).await, before);
    // A refused envelope is not recorded: the same ones are valid on the right connection.
    hub.tell(&frames[0]).await.expect(202);
}
