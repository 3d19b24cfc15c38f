//! Streams that are resumed (R65, R66, R68).

use rialto_hub::config::Profile;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpSocket, TcpStream};

use super::kit::{TaskWorker, first_text, id, send_call, text_message};
use super::streams::{Scene, all_told, positions, told};
use crate::kit::{Process, TestHub, in_time};
use crate::relay::kit::{Event, events};

/// Reads the rest of a task after each of its events.
async fn check_every_resumption(hub: &TestHub, base: &str, key: &str, task: &str, all: &[Event]) {
    for after in 0..=all.len() {
        let mut events = hub.subscribe(base, key, task, Some(&after.to_string())).await;
        let rest = events.rest().await;
        assert_eq!(rest, all[after..], "after {after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_goes_on_exactly_after_the_event_that_the_reader_has() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut events = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let task = events.header("rialto-job").expect("a job").to_owned();
    let job = worker.take().await;
    worker.progress(&job, "reading").await;
    let mut all = vec![events.event().await, events.event().await];
    // A reader that resumes while the task runs gets what comes, too.
    let mut resumed = scene.hub.subscribe(&worker.base, key, &task, Some("2")).await;
    worker
        .succeed(
            &job,
            json!({"artifacts": [
                {"artifactId": "a", "parts": [{"text": "one"}]},
                {"artifactId": "b", "parts": [{"text": "two"}]},
                {"artifactId": "c", "parts": [{"text": "three"}]},
            ]}),
        )
        .await;
    all.extend(events.rest().await);
    assert_eq!(positions(&all), (1..=7).collect::<Vec<_>>());
    assert_eq!(resumed.rest().await, all[2..]);
    check_every_resumption(&scene.hub, &worker.base, key, &task, &all).await;
    // The same after a restart of the hub.
    let (base, key) = (worker.base.clone(), scene.client.key.clone());
    drop(worker);
    let hub = scene.hub.restart(Profile::Serve, &[]).await;
    check_every_resumption(&hub, &base, &key, &task, &all).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bare_message_leaves_no_gap_in_the_positions() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut events = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let task = events.header("rialto-job").expect("a job").to_owned();
    worker.work(json!({"message": {"parts": [{"text": "hello"}]}})).await;
    let all = events.rest().await;
    assert_eq!(all_told(&all), ["task TASK_STATE_SUBMITTED", "COMPLETED"]);
    assert_eq!(positions(&all), [1, 2]);
    check_every_resumption(&scene.hub, &worker.base, key, &task, &all).await;
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_first_piece_never_continues_an_artifact() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut events = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let task = events.header("rialto-job").expect("a job").to_owned();
    let job = worker.take().await;
    let piece = |id: &str| json!({"artifactId": id, "parts": [{"text": id}]});
    // The worker says that both continue something.
    for id in ["a", "b", "a", "b"] {
        worker.part(&job, piece(id), true).await;
    }
    worker.part(&job, piece("a"), false).await;
    worker.succeed(&job, json!({"text": "done"})).await;
    let all = events.rest().await;
    let expected = ["a=a", "b=b", "a+=a", "b+=b", "a=a", "result=done.", "COMPLETED"];
    assert_eq!(all_told(&all)[2..], expected.map(str::to_owned));
    check_every_resumption(&scene.hub, &worker.base, key, &task, &all).await;
    let shown = scene.hub.get_task(&worker.base, key, &task).await;
    let sizes: Vec<usize> = shown["artifacts"]
        .as_array()
        .expect("artifacts")
        .iter()
        .map(|one| one["parts"].as_array().expect("parts").len())
        .collect();
    assert_eq!(sizes, [1, 2, 1], "{shown}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_log_is_streamed_and_resumed_whole() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let task = scene.hub.begin(&worker.base, key, text_message("m-1", "hi")).await;
    let job = worker.take().await;
    for number in 0..300 {
        worker.progress(&job, &number.to_string()).await;
    }
    worker.succeed(&job, json!({"text": "done"})).await;
    let mut events = scene.hub.subscribe(&worker.base, key, &id(&task), Some("0")).await;
    let all = events.rest().await;
    // Opened, working, three hundred reports, the result and the end.
    assert_eq!(positions(&all), (1..=304).collect::<Vec<_>>());
    for (number, event) in all[2..302].iter().enumerate() {
        let message = &event.data["statusUpdate"]["status"]["message"];
        assert_eq!(first_text(message), number.to_string());
    }
    for after in [1, 63, 64, 65, 128, 200, 301, 303] {
        let mut events =
            scene.hub.subscribe(&worker.base, key, &id(&task), Some(&after.to_string())).await;
        assert_eq!(events.rest().await, all[after..], "after {after}");
    }
    scene.hub.stop().await;
}

/// A stream on a raw connection, read only on request.
struct Stalled {
    socket: BufReader<TcpStream>,
    bytes: Vec<u8>,
}

impl Stalled {
    async fn open(hub: &TestHub, path: &str, key: &str) -> Self {
        let address: std::net::SocketAddr =
            hub.url.trim_start_matches("http://").parse().expect("an address");
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a small buffer");
        let mut socket = BufReader::new(socket.connect(address).await.expect("a connection"));
        let request = format!(
            "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\
             last-event-id: 0\r\n\r\n"
        );
        socket.write_all(request.as_bytes()).await.expect("it is sent");
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            assert!(in_time(socket.read_line(&mut head)).await.expect("a head") > 0, "{head}");
        }
        assert!(head.starts_with("HTTP/1.1 200"), "{head}");
        Self { socket, bytes: Vec::new() }
    }

    /// The events of the next chunk of the stream; `None` once it was closed.
    async fn read(&mut self) -> Option<Vec<Event>> {
        let mut size = String::new();
        in_time(self.socket.read_line(&mut size)).await.ok()?;
        let size = usize::from_str_radix(size.trim(), 16).ok().filter(|size| *size > 0)?;
        let mut piece = vec![0; size + 2];
        in_time(self.socket.read_exact(&mut piece)).await.ok()?;
        self.bytes.extend_from_slice(&piece[..size]);
        Some(events(&mut self.bytes))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stalled_reader_slows_no_other_and_resumes_where_it_was() {
    const PARTS: u64 = 100;
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let key = scene.client.key.as_str();
    let mut other = scene.hub.follow(&worker.base, key, text_message("m-1", "hi")).await;
    let task = other.header("rialto-job").expect("a job").to_owned();
    let path = format!("{}/tasks/{task}:subscribe", worker.base);
    let mut stalled = Stalled::open(&scene.hub, &path, key).await;
    let job = worker.take().await;
    other.event().await;
    let text = |number: u64| format!("{number} {}", "x".repeat(60_000));
    for number in 3..PARTS + 3 {
        let artifact = json!({"artifactId": "a", "parts": [{"text": text(number)}]});
        worker.part(&job, artifact, number > 3).await;
        if number == 3 {
            assert_eq!(told(&other.event().await), "WORKING");
        }
        // The other reader has each one before the next is sent.
        let event = other.event().await;
        let update = &event.data["artifactUpdate"];
        assert_eq!(
            (event.position(), first_text(&update["artifact"]) == text(number)),
            (number, true)
        );
    }
    worker.succeed(&job, json!({"text": "done"})).await;
    let mut seen = Vec::new();
    while let Some(events) = stalled.read().await {
        seen.extend(positions(&events));
        if seen.len() > 20 {
            break;
        }
    }
    assert_eq!(seen, (1..=seen.len() as u64).collect::<Vec<_>>());
    drop(stalled);
    // It goes on after what it has seen.
    let last = seen.len().to_string();
    let rest = scene.hub.subscribe(&worker.base, key, &task, Some(&last)).await.rest().await;
    let expected: Vec<u64> = (seen.len() as u64 + 1..=PARTS + 4).collect();
    assert_eq!(positions(&rest), expected);
    scene.hub.stop().await;
}

/// A process that is killed in the middle of a stream.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_hub_loses_no_event_and_repeats_none() {
    let data = TempDir::new().expect("a directory");
    let process = Process::start("serve", data.path(), &[]);
    let http = crate::kit::http();
    let post = async |url: &str, path: &str, key: &str, body: &Value| -> Value {
        let mut request = http.post(format!("{url}{path}")).body(body.to_string());
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        let answer = request.send().await.expect("an answer");
        assert!(answer.status().is_success(), "{path}");
        serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON")
    };
    let agent = json!({"agent_name": "w", "owner_id": "w",
        "skills": [{"skill_name": "echo", "cost_per_call": 0}]});
    let agent = post(&process.url, "/registry/register", "", &agent).await;
    let client = post(&process.url, "/a2a/agents", "", &json!({"name": "client"})).await;
    let key = client["api_key"].as_str().expect("a key").to_owned();
    let worker = agent["api_key"].as_str().expect("a key").to_owned();
    let listed = http.get(format!("{}/a2a/agents?skill=echo", process.url)).send().await;
    let listed: Value =
        serde_json::from_str(&listed.expect("an answer").text().await.expect("a body"))
            .expect("JSON");
    let base = format!("/a2a/agents/{}", listed["agents"][0]["name"].as_str().expect("a name"));
    let mut message = send_call(text_message("m-1", "hi"));
    message["params"]["configuration"] = json!({"returnImmediately": true});
    let opened = post(&process.url, &base, &key, &message).await;
    let task = id(&opened["result"]["task"]);
    let report = async |url: &str, number: u64| {
        let path = format!("/v1/jobs/{task}/progress");
        post(url, &path, &worker, &json!({"text": number.to_string()})).await;
    };
    let follow = async |url: &str, after: u64| {
        let request = http.post(format!("{url}{base}/tasks/{task}:subscribe")).bearer_auth(&key);
        let request = request.header("last-event-id", after.to_string());
        super::kit::TaskEvents::of(request.send().await.expect("an answer")).await
    };
    let mut seen: Vec<Event> = Vec::new();
    let mut process = process;
    for round in 0..5 {
        let mut events = follow(&process.url, seen.len() as u64).await;
        for number in 0..4 {
            report(&process.url, round * 4 + number).await;
        }
        // Some of what was acknowledged is read, some is not.
        let wanted = (round as usize + 1) * 4;
        while seen.len() < wanted {
            seen.push(events.event().await);
        }
        process.kill();
        process = Process::start("serve", data.path(), &[]);
    }
    let path = format!("/v1/jobs/{task}/result");
    let result = json!({"ok": true, "output": {"text": "done"}});
    post(&process.url, &path, &worker, &result).await;
    let mut events = follow(&process.url, seen.len() as u64).await;
    seen.extend(events.rest().await);
    assert_eq!(positions(&seen), (1..=24).collect::<Vec<_>>());
    let texts: Vec<String> = seen[2..22]
        .iter()
        .map(|event| first_text(&event.data["statusUpdate"]["status"]["message"]).to_owned())
        .collect();
    assert_eq!(texts, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    // All of it again, from the store.
    let again = follow(&process.url, 0).await.rest().await;
    assert_eq!(again, seen);
    process.kill();
}
