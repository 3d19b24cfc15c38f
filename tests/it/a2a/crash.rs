//! SIGKILL during streams and pushes: a client that resumes after its last event, and a webhook that
//! drops what it knows, have every event once and in order, and the money is exact (R65, R73, R74).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::sync::watch;

use super::kit::{TaskEvents, hire_message, id, send_call, state};
use crate::crash::{Dice, SEED, assert_audit_is_clean, moved, seed, start, under_load};
use crate::kit::{Behaviour, Got, Worker, digits, eventually, http, in_time, operator_key};
use crate::relay::kit::Event;

const ROUNDS: usize = 25;
/// Duration of the load in one round, in milliseconds: minimum and maximum.
const LOAD_MS: (u64, u64) = (1, 150);
/// Tasks that run at the same time.
const PARTIES: u64 = 3;
/// Most reports of a task before its result.
const REPORTS_MAX: u64 = 12;
const ENDED: [&str; 4] =
    ["TASK_STATE_COMPLETED", "TASK_STATE_FAILED", "TASK_STATE_CANCELED", "TASK_STATE_REJECTED"];

/// A task after its end.
struct Finished {
    task: String,
    /// The events as its follower read them, over all its connections.
    events: Vec<Event>,
    /// The numbers of the reports, and whether the hub acknowledged each.
    reports: Vec<(u64, bool)>,
}

/// What all parties count.
#[derive(Default)]
struct Counts {
    /// Events that were read.
    events: AtomicUsize,
    /// Streams that ended before their task.
    cut: AtomicUsize,
}

/// Calls the hub at its current address.
#[derive(Clone)]
struct Line {
    http: reqwest::Client,
    urls: watch::Receiver<String>,
}

impl Line {
    /// Posts once; `None` without a whole answer.
    async fn once(
        &mut self,
        path: &str,
        key: &str,
        once: &str,
        body: &Value,
    ) -> Option<(u16, Value)> {
        let url = self.urls.borrow_and_update().clone();
        let mut request = self.http.post(format!("{url}{path}")).body(body.to_string());
        request = request.header("a2a-version", "1.0");
        if !key.is_empty() {
            request = request.bearer_auth(key);
        }
        if !once.is_empty() {
            request = request.header("idempotency-key", once);
        }
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        Some((status, serde_json::from_str(&answer.text().await.ok()?).expect("JSON")))
    }

    /// Posts until there is an answer, which is a good one.
    async fn post(&mut self, path: &str, key: &str, once: &str, body: &Value) -> Value {
        loop {
            match self.once(path, key, once, body).await {
                Some((200..=299, told)) => return told,
                Some(other) => panic!("{path}: {other:?}"),
                None => moved(&mut self.urls).await.expect("the hub comes back"),
            }
        }
    }

    async fn get(&self, path: &str, key: &str) -> String {
        let url = self.urls.borrow().clone();
        let answer = self.http.get(format!("{url}{path}")).bearer_auth(key).send().await;
        answer.expect("an answer").text().await.expect("a text")
    }

    /// Reads a task to its end. After a cut it goes on after the last event.
    async fn follow(
        mut self,
        base: String,
        key: String,
        task: String,
        counts: Arc<Counts>,
    ) -> Vec<Event> {
        let mut events: Vec<Event> = Vec::new();
        loop {
            let url = self.urls.borrow_and_update().clone();
            let request = self.http.post(format!("{url}{base}/tasks/{task}:subscribe"));
            let request = request.bearer_auth(&key).header("a2a-version", "1.0");
            let request = request.header("last-event-id", events.len().to_string());
            if let Ok(answer) = request.send().await {
                let mut stream = TaskEvents::of(answer).await;
                while let Some(event) = stream.next().await {
                    counts.events.fetch_add(1, Ordering::SeqCst);
                    events.push(event);
                }
                let last = events.last().map(|event| event.data["statusUpdate"].clone());
                if last.is_some_and(|last| !last.is_null() && ENDED.contains(&state(&last))) {
                    return events;
                }
                counts.cut.fetch_add(1, Ordering::SeqCst);
            }
            moved(&mut self.urls).await.expect("the hub comes back");
        }
    }
}

/// A requester, a worker, and how they reach the hub.
#[derive(Clone)]
struct Party {
    line: Line,
    name: String,
    key: String,
    base: String,
    worker: String,
    hook: String,
    counts: Arc<Counts>,
}

impl Party {
    async fn join(mut line: Line, number: u64, hook: &str, counts: &Arc<Counts>) -> Self {
        let name = format!("client-{number}");
        let client = line.post("/a2a/agents", "", "", &json!({"name": name})).await;
        let grant = json!({"owner_id": format!("a2a:{name}"), "initial_balance": 1000});
        line.post("/registry/accounts", &operator_key(), "", &grant).await;
        let skill = format!("work-{number}");
        let agent = json!({"agent_name": skill, "owner_id": skill,
            "skills": [{"skill_name": skill, "cost_per_call": 0.25}]});
        let agent = line.post("/registry/register", "", "", &agent).await;
        let listed = line.get(&format!("/a2a/agents?skill={skill}"), "").await;
        let listed: Value = serde_json::from_str(&listed).expect("JSON");
        let word = |of: &Value| of.as_str().expect("a text").to_owned();
        Self {
            line,
            name,
            key: word(&client["api_key"]),
            base: format!("/a2a/agents/{}", word(&listed["agents"][0]["name"])),
            worker: word(&agent["api_key"]),
            hook: hook.to_owned(),
            counts: counts.clone(),
        }
    }

    /// Opens tasks and does their work, one after the other.
    async fn run(mut self, mut dice: Dice, stop: Arc<AtomicBool>) -> Vec<Finished> {
        let mut all = Vec::new();
        while !stop.load(Ordering::SeqCst) {
            let once = format!("{}-{}", self.name, all.len());
            all.push(self.one_task(&once, 1 + dice.roll(REPORTS_MAX)).await);
        }
        all
    }

    async fn one_task(&mut self, once: &str, reports: u64) -> Finished {
        let mut call = send_call(hire_message("m-1", "work", json!({"budget": "0.25"})));
        call["params"]["configuration"] = json!({"returnImmediately": true,
            "taskPushNotificationConfig": {"url": self.hook}});
        let opened = self.line.post(&self.base, &self.key, once, &call).await;
        let task = id(&opened["result"]["task"]);
        let (base, key) = (self.base.clone(), self.key.clone());
        let follower = self.line.clone().follow(base, key, task.clone(), self.counts.clone());
        let follower = tokio::spawn(follower);
        let mut acknowledged = Vec::new();
        for number in 0..reports {
            // One that is not acknowledged is not repeated: it is there once or not at all.
            let told = self.report(&task, number).await;
            acknowledged.push((number, told.is_some()));
            match told {
                Some((200, _)) => {}
                Some(other) => panic!("{other:?}"),
                None => moved(&mut self.line.urls).await.expect("the hub comes back"),
            }
        }
        let result = json!({"ok": true, "output": {"text": "done"}});
        self.line.post(&format!("/v1/jobs/{task}/result"), &self.worker, "", &result).await;
        let events = follower.await.expect("the follower reads to the end");
        Finished { task, events, reports: acknowledged }
    }

    async fn report(&mut self, task: &str, number: u64) -> Option<(u16, Value)> {
        let text = number.to_string();
        let (verb, body) = if number.is_multiple_of(2) {
            ("progress", json!({"text": text}))
        } else {
            ("parts", json!({"artifact": {"artifactId": text, "parts": [{"text": text}]}}))
        };
        self.line.once(&format!("/v1/jobs/{task}/{verb}"), &self.worker, "", &body).await
    }
}

/// The number of the report that an event is about.
fn report_of(event: &Event) -> Option<u64> {
    let of = ["/statusUpdate/status/message/parts/0/text", "/artifactUpdate/artifact/parts/0/text"];
    let text = of.iter().find_map(|path| event.data.pointer(path)?.as_str())?;
    text.parse().ok()
}

/// Every acknowledged report is there, none is there twice, and they are in order.
fn assert_whole(finished: &Finished) {
    let Finished { task, events, reports } = finished;
    let positions: Vec<u64> = events.iter().map(Event::position).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>(), "{task}");
    let seen: Vec<u64> = events.iter().filter_map(report_of).collect();
    assert!(seen.is_sorted_by(|before, after| before < after), "{task}: {seen:?}");
    for (number, acknowledged) in reports {
        assert!(!acknowledged || seen.contains(number), "{task}: {number} is lost: {seen:?}");
    }
    let last = &events.last().expect("an end").data["statusUpdate"];
    assert_eq!(state(last), "TASK_STATE_COMPLETED", "{task}");
}

/// The bodies of a task's pushes by position; a repeat is the same body again.
fn pushed(got: &[Got], task: &str) -> BTreeMap<u64, Value> {
    let mut bodies: BTreeMap<u64, Value> = BTreeMap::new();
    for one in got {
        let webhook_id = one.headers["webhook-id"].to_str().expect("a text");
        let Some(position) = webhook_id.strip_prefix(&format!("{task}-")) else { continue };
        let known = bodies.entry(position.parse().expect("digits")).or_insert_with(|| one.json());
        assert_eq!(*known, one.json(), "a webhook-id means one event for ever");
    }
    bodies
}

/// The event in a push, without its position.
fn event_in(mut body: Value) -> Value {
    let update = body.as_object_mut().expect("an object").values_mut().next().expect("one");
    let update = update.as_object_mut().expect("an object");
    let metadata = update["metadata"].as_object_mut().expect("an object");
    metadata.remove("urn:rialto:a2a:resume:v1").expect("a position");
    if metadata.is_empty() {
        update.remove("metadata");
    }
    body
}

#[tokio::test(flavor = "multi_thread")]
async fn kills_during_streams_and_pushes_lose_no_event_double_none_and_cost_nothing() {
    let seed = seed();
    println!("{SEED}={seed}");
    let mut dice = Dice(seed);
    let data = tempfile::TempDir::new().expect("a directory");
    let mut hub = start(data.path());
    let hook = Worker::start(Behaviour::Say(204, String::new())).await;
    let (url, urls) = watch::channel(hub.url.clone());
    let (line, counts) = (Line { http: http(), urls }, Arc::new(Counts::default()));
    let stop = Arc::new(AtomicBool::new(false));
    let (mut names, mut running) = (Vec::new(), Vec::new());
    for number in 0..PARTIES {
        let party = Party::join(line.clone(), number, &hook.url, &counts).await;
        names.push((party.name.clone(), format!("work-{number}")));
        running.push(tokio::spawn(party.run(Dice(dice.roll(u64::MAX)), stop.clone())));
    }
    for _ in 0..ROUNDS {
        under_load(&mut dice, LOAD_MS, async || counts.events.load(Ordering::SeqCst)).await;
        hub.kill();
        hub = start(data.path());
        url.send_replace(hub.url.clone());
    }
    stop.store(true, Ordering::SeqCst);
    let mut tasks_of = Vec::new();
    for one in running {
        tasks_of.push(in_time(one).await.expect("no panic"));
    }
    for ((client, owner), finished) in names.iter().zip(&tasks_of) {
        assert!(!finished.is_empty());
        for one in finished {
            assert_whole(one);
            let last = one.events.len() as u64;
            eventually(async || pushed(&hook.got(), &one.task).contains_key(&last)).await;
            eventually(async || pushed(&hook.got(), &one.task).len() as u64 == last - 1).await;
            for (position, body) in pushed(&hook.got(), &one.task) {
                let streamed = &one.events[position as usize - 1].data;
                assert_eq!(&event_in(body), streamed, "{} {position}", one.task);
            }
        }
        let paid = 25 * finished.len();
        let account = line.get(&format!("/registry/accounts/a2a:{client}"), &operator_key()).await;
        let expected = format!("{}.{:02}", (100_000 - paid) / 100, (100_000 - paid) % 100);
        assert_eq!(digits(&account, "balance"), expected, "{client}");
        assert_eq!(digits(&account, "held"), "0.00", "{client}");
        let account = line.get(&format!("/registry/accounts/{owner}"), &operator_key()).await;
        assert_eq!(digits(&account, "balance"), format!("{}.{:02}", paid / 100, paid % 100));
    }
    hub.kill();
    assert_audit_is_clean(data.path());
    let tasks: usize = tasks_of.iter().map(Vec::len).sum();
    let cut = counts.cut.load(Ordering::SeqCst);
    println!("{tasks} tasks over {ROUNDS} kills, {cut} streams cut");
    assert!(cut >= ROUNDS, "too few streams were open when the hub was killed: {cut}");
}
