//! Recipients that stream their reply, forwarded event by event (R81, R82).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};

use super::kit::{Event, Peer, assert_error, assert_rejected, events, message, turn, with};
use super::looks::trace;
use crate::kit::{Behaviour, Reply, TestHub, Worker, eventually};

const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
                      connection: close\r\n\r\n";
const DEADLINE: Duration = Duration::from_secs(60);

/// A recipient that sends prepared chunks, and closes after the last.
struct Speaker {
    url: String,
    pieces: Option<mpsc::UnboundedSender<String>>,
    requests: Arc<Mutex<Vec<String>>>,
    /// Whether the hub has closed the connection.
    left: watch::Receiver<bool>,
    task: tokio::task::JoinHandle<()>,
}

impl Speaker {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let (pieces, mut given) = mpsc::unbounded_channel::<String>();
        let (hung_up, left) = watch::channel(false);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = requests.clone();
        let task = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.expect("a connection");
            let request = request(&mut socket).await;
            seen.lock().expect("no panic").push(request);
            let (mut hear, mut say) = socket.split();
            let mut byte = [0];
            loop {
                tokio::select! {
                    piece = given.recv() => match piece {
                        Some(piece) => if say.write_all(piece.as_bytes()).await.is_err() { break },
                        None => break,
                    },
                    heard = hear.read(&mut byte) => if !matches!(heard, Ok(1)) {
                        hung_up.send_replace(true);
                        break;
                    },
                }
            }
        });
        Self { url, pieces: Some(pieces), requests, left, task }
    }

    fn say(&self, piece: &str) {
        let pieces = self.pieces.as_ref().expect("it has not ended");
        pieces.send(piece.to_owned()).expect("it is there");
    }

    /// Sends no more, and closes.
    fn end(&mut self) {
        self.pieces = None;
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A complete request with its body.
async fn request(socket: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.to_ascii_lowercase();
            let length = length.split("content-length: ").nth(1).expect("a length");
            let length: usize = length.lines().next().unwrap_or("").parse().expect("a length");
            if body.len() >= length {
                return text;
            }
        }
        let mut more = [0; 4_096];
        let count = socket.read(&mut more).await.expect("bytes");
        assert!(count > 0, "a whole request");
        bytes.extend_from_slice(&more[..count]);
    }
}

/// What the sender receives.
struct Heard {
    answer: reqwest::Response,
    bytes: Vec<u8>,
    events: VecDeque<Event>,
}

impl Heard {
    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                assert_eq!(event.id, None, "only inbox events have ids");
                return Some(event);
            }
            let more = tokio::time::timeout(DEADLINE, self.answer.chunk()).await;
            let more = more.expect("bytes, or an end").expect("a whole stream")?;
            self.bytes.extend_from_slice(&more);
            self.events.extend(events(&mut self.bytes));
        }
    }

    async fn expect(&mut self, name: &str, data: Value) {
        let event = self.next().await.expect("another event");
        assert_eq!((event.event.as_str(), &event.data), (name, &data));
    }

    /// The last event, which nothing follows. Returns its data.
    async fn delivery(mut self) -> Value {
        let event = self.next().await.expect("another event");
        assert_eq!(event.event, "delivery", "{event:?}");
        assert_eq!(self.next().await, None);
        event.data
    }
}

/// Sends with `stream: true`.
async fn ask(hub: &TestHub, from: &Peer, to: &Peer, text: &str) -> reqwest::Response {
    let body = with(&message(&from.id, &to.id, text), "/stream", Some(true.into()));
    let request = hub.http.post(format!("{}/messages", hub.url)).bearer_auth(&from.key);
    request.body(body.to_string()).send().await.expect("an answer")
}

async fn hear(hub: &TestHub, from: &Peer, to: &Peer, text: &str) -> Heard {
    let answer = ask(hub, from, to, text).await;
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    Heard { answer, bytes: Vec::new(), events: VecDeque::new() }
}

async fn pair(hub: &TestHub, endpoint: &str) -> (Peer, Peer) {
    (hub.join("alice@chorus").await, hub.join_at("bob@chorus", endpoint).await)
}

#[track_caller]
fn assert_failed(data: &Value, why: &str) {
    assert_eq!(data["delivery"], "failed", "{data}");
    assert_eq!(data["error_code"], "ERR_AGENT_UNREACHABLE", "{data}");
    let detail = data["detail"].as_str().expect("a text");
    assert!(detail.contains(why), "{detail}");
    assert!(detail.ends_with("; kept in the receiver's inbox, next try in 5 s"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receivers_chunks_and_its_done_reach_the_sender_as_they_come() {
    let hub = TestHub::serve(&[]).await;
    let mut bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    // One after the other: each is received before the next is sent.
    for piece in ["Good ", "mor\nning", " ☕\u{2028}"] {
        bob_speaks.say(&format!("event: chunk\ndata: {}\n\n", json!({"text": piece})));
        heard.expect("chunk", json!({"text": piece})).await;
    }
    let answer = super::kit::envelope(&bob.id, "Good morning");
    let done = json!({"full_text": "Good morning", "envelope": answer});
    bob_speaks.say(&format!("event: done\ndata: {done}\n\n"));
    heard.expect("done", done).await;
    let data = heard.delivery().await;
    let trace = data["trace_id"].as_str().expect("a trace id").to_owned();
    assert_eq!(data["delivery"], "delivered");
    let standing = hub.standing(&alice, &trace).await.expect(200);
    assert_eq!(
        (standing.str("/data/state"), standing.at("/data/attempts")),
        ("delivered".into(), 1.into())
    );
    let asked = bob_speaks.requests.lock().expect("no panic")[0].to_ascii_lowercase();
    assert!(asked.contains("accept: text/event-stream"), "{asked}");
    assert!(asked.contains(&format!("webhook-id: {trace}")), "{asked}");
    assert!(asked.contains("\r\n\r\n{\"envelope\":{"), "{asked}");
    bob_speaks.end();
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_rebuilt_so_that_a_receiver_can_say_nothing_but_its_three_words() {
    let hub = TestHub::serve(&[]).await;
    let bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    // Other events, ids, retry times and comments are not forwarded; any line break is accepted.
    bob_speaks.say("retry: 1\n\n: ping\n\nevent: delivery\ndata: {\"delivery\":\"delivered\"}\n\n");
    bob_speaks
        .say("event: message\nid: 99\ndata: {\"trace_id\":\"forged\"}\n\nevent: connected\n\n");
    bob_speaks.say(
        "id: 7\r\nevent: chunk\r\ndata: {\"text\":\r\ndata: \"in two lines\",\"more\":1}\r\n\r\n",
    );
    // Split anywhere, also within a character.
    bob_speaks.say("event: chu");
    bob_speaks.say("nk\rdata: plain te");
    bob_speaks.say("xt\r\r");
    bob_speaks.say("event: done\ndata: {}\n\nevent: chunk\ndata: {\"text\":\"too late\"}\n\n");
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    heard.expect("chunk", json!({"text": "in two lines"})).await;
    heard.expect("chunk", json!({"text": "plain text"})).await;
    // A `done` without the full text is completed.
    heard.expect("done", json!({"full_text": "in two linesplain text", "envelope": null})).await;
    assert_eq!(heard.delivery().await["delivery"], "delivered");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_error_is_told_in_the_receivers_words_and_the_delivery_has_failed() {
    let hub = TestHub::serve(&[]).await;
    let bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    bob_speaks.say("event: chunk\ndata: {\"text\":\"well\"}\n\n");
    let said = json!({"code": "ADAPTATION_FAILED", "message": "no words\nfor it"});
    bob_speaks.say(&format!("event: error\ndata: {said}\n\n"));
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    heard.expect("chunk", json!({"text": "well"})).await;
    heard.expect("error", said).await;
    let data = heard.delivery().await;
    assert_failed(&data, "ADAPTATION_FAILED");
    let trace = data["trace_id"].as_str().expect("a trace id");
    assert_eq!(hub.state_of(&alice, trace).await, "failed");
    assert_eq!(hub.inbox(&bob).await.message().await.said(), "hello");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_without_done_has_failed() {
    let hub = TestHub::serve(&[]).await;
    let half = "event: done\ndata: {\"full_text\":\"never finished\"}\n";
    for (n, said) in ["", "event: chunk\ndata: {\"text\":\"a\"}\n\n", half].into_iter().enumerate()
    {
        let mut bob_speaks = Speaker::start().await;
        let bob = hub.join_at(&format!("bob{n}@chorus"), &bob_speaks.url).await;
        let alice = hub.join(&format!("alice{n}@chorus")).await;
        bob_speaks.say(STREAM);
        bob_speaks.say(said);
        bob_speaks.end();
        let mut heard = hear(&hub, &alice, &bob, "hello").await;
        if n == 1 {
            heard.expect("chunk", json!({"text": "a"})).await;
        }
        let error = heard.next().await.expect("an event");
        assert_eq!(error.event, "error");
        assert_eq!(error.data["code"], "ERR_AGENT_UNREACHABLE");
        let data = heard.delivery().await;
        assert_failed(&data, "without a `done` event");
        let trace = data["trace_id"].as_str().expect("a trace id");
        assert_eq!(hub.state_of(&bob, trace).await, "failed");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_that_is_too_large_ends_the_stream_as_failed() {
    let hub = TestHub::serve(&[]).await;
    let mut bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    // One that fits, so that only the size decides.
    let fits = "x".repeat(60_000);
    bob_speaks.say(&format!("event: chunk\ndata: {fits}\n\n"));
    bob_speaks.say(&format!("event: chunk\ndata: {}\n\n", "y".repeat(70_000)));
    bob_speaks.say("event: done\ndata: {}\n\n");
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    heard.expect("chunk", json!({"text": fits})).await;
    assert_eq!(heard.next().await.expect("an event").event, "error");
    assert_failed(&heard.delivery().await, "too large");
    bob_speaks.end();
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_answers_plain_json_says_it_all_in_one_done() {
    let hub = TestHub::serve(&[]).await;
    let own = r#"{"status":"error","error_code":"ADAPTATION_FAILED","detail":"no"}"#;
    let worker = Worker::start(Behaviour::Say(200, own.to_owned())).await;
    let (alice, bob) = pair(&hub, &worker.url).await;
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    heard.expect("done", json!({"full_text": own, "envelope": null})).await;
    let data = heard.delivery().await;
    assert_eq!(data["delivery"], "delivered");
    let said: Value = serde_json::from_str(own).expect("JSON");
    assert_eq!(data["receiver_response"], said, "the receiver's own reply (R40)");
    assert_eq!(worker.got().len(), 1);
    // A reply that fails at once is a failure.
    worker.behave(Behaviour::Say(500, "{}".to_owned()));
    let mut heard = hear(&hub, &alice, &bob, "hello again").await;
    assert_eq!(heard.next().await.expect("an event").event, "error");
    assert_failed(&heard.delivery().await, "HTTP 500");
    worker.behave(Behaviour::Say(410, "{}".to_owned()));
    let mut heard = hear(&hub, &alice, &bob, "hello for the last time").await;
    assert_eq!(heard.next().await.expect("an event").event, "error");
    let data = heard.delivery().await;
    assert!(data["detail"].as_str().expect("a text").ends_with("no further attempt"), "{data}");
    hub.say(&alice, &bob, "switched off").await.expect(202);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sender_that_leaves_ends_the_call_also_while_the_receiver_is_silent() {
    let hub = TestHub::serve(&[]).await;
    let mut bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    bob_speaks.say("event: chunk\ndata: {\"text\":\"let me think\"}\n\n");
    let mut heard = hear(&hub, &alice, &bob, "hello").await;
    heard.expect("chunk", json!({"text": "let me think"})).await;
    drop(heard);
    let gone = tokio::time::timeout(DEADLINE / 3, bob_speaks.left.wait_for(|left| *left)).await;
    gone.expect("the hub closes").expect("the receiver is there");
    // The recipient answered 2xx: it has the message, and is not called again.
    eventually(async || hub.pushes().is_empty()).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_silent_receiver_is_given_up_after_the_timeout() {
    let hub = TestHub::serve(&[("egress.timeout", "300ms")]).await;
    // One sends nothing at all, the other stops in the middle.
    for head in ["", STREAM] {
        let bob_speaks = Speaker::start().await;
        let name = if head.is_empty() { "mute" } else { "slow" };
        let bob = hub.join_at(&format!("{name}@chorus"), &bob_speaks.url).await;
        let alice = hub.join(&format!("to-{name}@chorus")).await;
        bob_speaks.say(head);
        let mut heard = hear(&hub, &alice, &bob, "hello").await;
        assert_eq!(heard.next().await.expect("an event").data["code"], "ERR_TIMEOUT");
        let data = heard.delivery().await;
        assert_eq!(
            (&data["delivery"], &data["error_code"]),
            (&json!("failed"), &json!("ERR_TIMEOUT"))
        );
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_request_to_an_inbox_or_to_an_unknown_receiver_is_answered_like_a_plain_one() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let (alice, bob) = pair(&hub, &worker.url).await;
    let carol = hub.join("carol@chorus").await;
    let mut inbox = hub.inbox(&bob).await;
    for (to, status, word) in [(&bob, 200, "delivered_sse"), (&carol, 202, "queued")] {
        let reply = Reply::of(ask(&hub, &alice, to, "hello").await).await.expect(status);
        super::kit::assert_wrapped(&reply, true);
        let data = json!({"delivery": word, "trace_id": trace(&reply)});
        assert_eq!(reply.at("/data"), data);
    }
    assert_eq!(inbox.message().await.said(), "hello");
    assert!(worker.got().is_empty());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_wrong_with_a_streamed_message_is_told_in_json() {
    let hub = TestHub::serve(&[]).await;
    let worker = Worker::start(Behaviour::Say(200, "{}".to_owned())).await;
    let (alice, bob) = pair(&hub, &worker.url).await;
    let good = with(&message(&alice.id, &bob.id, "hello"), "/stream", Some(true.into()));
    for (pointer, value, status, code) in [
        ("/envelope/sender_culture", json!("english"), 400, "ERR_VALIDATION"),
        ("/envelope/original_text", json!(""), 400, "ERR_VALIDATION"),
        ("/envelope/sender_id", json!("nobody@chorus"), 400, "ERR_SENDER_NOT_REGISTERED"),
        ("/envelope/sender_id", json!("bob@chorus"), 403, "ERR_SENDER_MISMATCH"),
        ("/receiver_id", json!("nobody@chorus"), 404, "ERR_AGENT_NOT_FOUND"),
        ("/stream", json!("yes"), 400, "ERR_VALIDATION"),
    ] {
        let body = with(&good, pointer, Some(value));
        assert_rejected(&hub.post("/messages", Some(&alice.key), &body).await, status, code);
    }
    assert_error(&hub.post("/messages", None, &good).await, 401, "ERR_UNAUTHORIZED");
    assert!(worker.got().is_empty());
    assert_eq!(hub.pushes(), []);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_streamed_turn_that_is_repeated_gets_its_first_outcome() {
    let hub = TestHub::serve(&[]).await;
    let bob_speaks = Speaker::start().await;
    let (alice, bob) = pair(&hub, &bob_speaks.url).await;
    bob_speaks.say(STREAM);
    bob_speaks.say("event: done\ndata: {\"full_text\":\"hi\"}\n\n");
    let body = json!({"receiver_id": bob.id, "stream": true,
        "envelope": turn(&alice.id, "hello", "c", 1)});
    let first = hub.post("/messages", Some(&alice.key), &body).await.expect(200);
    assert_eq!(first.header("content-type"), Some("text/event-stream"));
    let mut bytes = first.text.into_bytes();
    let last = events(&mut bytes).pop().expect("an event");
    assert_eq!(last.event, "delivery");
    let again = hub.post("/messages", Some(&alice.key), &body).await.expect(200);
    assert_eq!(again.at("/data"), last.data, "the same answer and trace id");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(bob_speaks.requests.lock().expect("no panic").len(), 1);
    hub.stop().await;
}
