//! Tests of the event stream.

use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use futures_util::StreamExt;
use http::Method;
use rialto_core::alias::Protocol;
use rialto_core::command::{Command, SendMessage};
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::store::memory::MemoryStore;
use serde_json::Value;
use tokio::time::timeout;

use super::kit::{API_DOC, Agent, Hub};

/// Long enough for a lost wake-up on a busy machine.
const SOON: Duration = Duration::from_secs(30);

struct Stream {
    body: BodyDataStream,
    rest: String,
}

/// Id, kind and data of one event.
type Seen = (u64, String, Value);

impl Stream {
    async fn open(hub: &Hub, path: &str, key: &str, last: Option<u64>) -> Self {
        let mut request = Hub::request(Method::GET, path, key, "");
        if let Some(last) = last {
            request.headers_mut().insert("last-event-id", last.into());
        }
        Self::of(hub, request).await
    }

    async fn of(hub: &Hub, request: http::Request<Body>) -> Self {
        let answer = hub.ask(request).await;
        assert_eq!(answer.status(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self { body: answer.into_body().into_data_stream(), rest: String::new() }
    }

    /// The next block of lines; `None` at the end of the stream.
    async fn block(&mut self) -> Option<String> {
        loop {
            if let Some((block, rest)) = self.rest.split_once("\n\n") {
                let (block, rest) = (block.to_owned(), rest.to_owned());
                self.rest = rest;
                return Some(block);
            }
            let bytes = timeout(SOON, self.body.next()).await.expect("an event arrives in time")?;
            self.rest += std::str::from_utf8(&bytes.expect("bytes")).expect("text");
        }
    }

    async fn next(&mut self) -> Option<Seen> {
        loop {
            let block = self.block().await?;
            let lines: Vec<&str> = block.lines().collect();
            if let [id, event, data] = lines[..] {
                let id = id.strip_prefix("id: ").expect("an id").parse().expect("digits");
                let kind = event.strip_prefix("event: ").expect("a kind").to_owned();
                let data = data.strip_prefix("data: ").expect("data");
                API_DOC.check_event("/v1/events", data);
                return Some((id, kind, serde_json::from_str(data).expect("one line of JSON")));
            }
            assert!(block.starts_with(':') || block.starts_with("retry: "), "{block}");
        }
    }

    async fn ids(&mut self, count: usize) -> Vec<u64> {
        let mut ids = Vec::new();
        while ids.len() < count {
            ids.push(self.next().await.expect("more events").0);
        }
        ids
    }

    /// Whether the stream ends in time.
    async fn ends(&mut self) -> bool {
        timeout(SOON, async { while self.body.next().await.is_some() {} }).await.is_ok()
    }
}

async fn say(hub: &Hub, agent: &Agent, count: usize) {
    for n in 0..count {
        hub.say(agent, agent, &format!("{{\n\"n\": {n}\r\n}}")).await;
    }
}

#[tokio::test]
async fn an_inbox_is_streamed_without_gap_and_resumed_anywhere() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    say(&hub, &ada, 150).await;
    let mut stream = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    assert_eq!(stream.ids(150).await, (1..=150).collect::<Vec<_>>());
    say(&hub, &ada, 1).await;
    let (id, kind, data) = stream.next().await.expect("news");
    assert_eq!((id, kind.as_str(), &data["body"]["n"]), (151, "message", &0.into()));
    assert_eq!((data["position"].as_u64(), data["from"].as_u64()), (Some(151), Some(ada.id.0)));
    for (path, last) in [("/v1/events", Some(149)), ("/v1/events?after=149", None)] {
        let mut resumed = Stream::open(&hub, path, &ada.key, last).await;
        assert_eq!(resumed.ids(2).await, [150, 151]);
    }
    hub.engine.run(Command::Ack { agent: ada.id, up_to: 150 }).await.expect("acked");
    let mut fresh = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    assert_eq!(fresh.ids(1).await, [151], "what is acknowledged is not sent again by itself");
}

#[tokio::test]
async fn news_of_jobs_name_the_job() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    let mut works = Stream::open(&hub, "/v1/events", &worker.key, None).await;
    let mut asks = Stream::open(&hub, "/v1/events", &client.key, None).await;
    let job = hub.open(&client, "sum", "1.00").await;
    let (_, kind, data) = works.next().await.expect("work");
    assert_eq!((kind.as_str(), &data["job"]), ("assigned", &job.uuid.to_string().into()));
    assert_eq!(data["epoch"], 1);
    hub.succeed(&job).await;
    let (id, kind, data) = asks.next().await.expect("the end");
    assert_eq!((id, kind.as_str(), &data["job"]), (1, "ended", &job.uuid.to_string().into()));
}

#[tokio::test]
async fn the_operator_reads_the_history_without_content() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", Some(("sum", "0.05"))).await;
    let mut live = Stream::open(&hub, "/v1/events", &hub.operator, None).await;
    let head = hub.engine.with_world(|world| world.next.event.0 - 1);
    hub.grant("rich", "0.000001").await;
    let client = hub.enrol("client", "rich", None).await;
    hub.grant("rich", "5").await;
    let job = hub.open(&client, "sum", "1.00").await;
    hub.say(&ada, &client, r#""s3cret""#).await;
    let forged = SendMessage {
        from: Some(ada.id),
        to: client.id,
        protocol: Protocol::new("registry"),
        body: r#""s3cret""#.to_owned(),
        url: None,
        first_try: Millis(0),
        identity: None,
        by_operator: true,
    };
    hub.engine.run(Command::SendMessage(Box::new(forged))).await.expect("sent");
    let first = live.next().await.expect("news");
    assert_eq!((first.0, first.1.as_str()), (head + 1, "line"), "only what is new");
    let mut all = Stream::open(&hub, "/v1/events?after=0", &hub.operator, None).await;
    let newest = hub.engine.with_world(|world| world.next.event.0 - 1);
    let mut facts = Vec::new();
    for line in 1..=newest {
        let (id, _, data) = all.next().await.expect("history");
        assert_eq!((id, data["line"].as_u64()), (line, Some(line)));
        assert!(!data.to_string().contains("s3cret"));
        facts.extend(data["events"].as_array().expect("facts").clone());
    }
    let fact = |name: &str| facts.iter().find(|fact| fact["event"] == name).expect(name);
    assert_eq!(fact("agent_enrolled")["owner"], "acme");
    assert_eq!(fact("granted")["amount"], 0.000001);
    assert_eq!(fact("job_assigned")["job"], job.uuid.to_string());
    // Messages are not in the history, except those the operator sent in another agent's name.
    let sent = fact("sent_by_operator");
    assert_eq!((&sent["from"], &sent["to"]), (&ada.id.0.into(), &client.id.0.into()));
    assert_eq!(facts.iter().filter(|fact| fact.to_string().contains("sent")).count(), 1);
}

#[tokio::test]
async fn a_stream_ends_with_its_key_its_agent_and_the_hub() {
    let hub = Hub::start().await;
    let (ada, bob) = (hub.enrol("ada", "acme", None).await, hub.enrol("bob", "acme", None).await);
    let mut revoked = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    let mut removed = Stream::open(&hub, "/v1/events", &bob.key, None).await;
    let mut operator = Stream::open(&hub, "/v1/events", &hub.operator, None).await;
    hub.engine
        .run(Command::RevokeKeys { agent: ada.id, by_operator: true })
        .await
        .expect("revoked");
    hub.engine.run(Command::Remove { agent: bob.id, by_operator: true }).await.expect("gone");
    assert!(revoked.ends().await && removed.ends().await);
    assert_eq!(operator.next().await.map(|seen| seen.1).as_deref(), Some("line"));
    assert!(timeout(Duration::from_millis(100), operator.ends()).await.is_err(), "goes on");
    hub.stop.send_replace(true);
    assert!(operator.ends().await);
}

#[tokio::test]
async fn a_stream_goes_on_after_a_restart() {
    let store = MemoryStore::default();
    let hub = Hub::over(store.clone(), Rules::default()).await;
    let ada = hub.enrol("ada", "acme", None).await;
    say(&hub, &ada, 3).await;
    let mut stream = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    assert_eq!(stream.ids(2).await, [1, 2]);
    hub.engine.stop().await;
    let hub = Hub::over(store, Rules::default()).await;
    say(&hub, &ada, 1).await;
    let mut stream = Stream::open(&hub, "/v1/events", &ada.key, Some(2)).await;
    assert_eq!(stream.ids(2).await, [3, 4]);
}

#[tokio::test]
async fn large_events_go_out_in_bounded_pieces() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    for _ in 0..12 {
        hub.say(&ada, &ada, &format!("\"{}\"", "x".repeat(60_000))).await;
    }
    let mut stream = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    let mut pieces = Vec::new();
    while pieces.iter().sum::<usize>() < 12 * 60_000 {
        let piece = timeout(SOON, stream.body.next()).await.expect("in time").expect("more");
        pieces.push(piece.expect("bytes").len());
    }
    assert!(pieces.iter().all(|len| *len <= 256 << 10), "{pieces:?}");
    assert!(pieces.len() >= 3, "{pieces:?}");
}

#[tokio::test]
async fn many_events_go_out_a_few_at_a_time() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    for _ in 0..150 {
        hub.say(&ada, &ada, "\"hi\"").await;
    }
    let mut stream = Stream::open(&hub, "/v1/events", &ada.key, None).await;
    let mut pieces = Vec::new();
    while pieces.iter().sum::<usize>() < 150 {
        let piece = timeout(SOON, stream.body.next()).await.expect("in time").expect("more");
        let text = String::from_utf8(piece.expect("bytes").to_vec()).expect("text");
        pieces.push(text.matches("id: ").count());
    }
    assert!(pieces.iter().all(|events| *events <= 64), "{pieces:?}");
    assert!(pieces.iter().filter(|events| **events > 0).count() >= 3, "{pieces:?}");
}

#[tokio::test]
async fn nonsense_to_resume_from_is_refused() {
    let hub = Hub::start().await;
    let ada = hub.enrol("ada", "acme", None).await;
    for last in ["x", "-1", "1", "18446744073709551616", "+0"] {
        let mut request = Hub::request(Method::GET, "/v1/events", &ada.key, "");
        request.headers_mut().insert("last-event-id", last.parse().expect("a header"));
        hub.send(request).await.is_problem(400, "malformed");
    }
    hub.get("/v1/events?after=1", &ada.key).await.is_problem(400, "malformed");
    hub.get("/v1/events?after=9223372036854775807", &hub.operator)
        .await
        .is_problem(400, "malformed");
    let mut request = Hub::request(Method::GET, "/v1/events", &ada.key, "");
    request.headers_mut().insert("last-event-id", "".parse().expect("a header"));
    Stream::of(&hub, request).await;
}
