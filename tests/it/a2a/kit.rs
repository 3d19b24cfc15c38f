//! Shared by the tests of A2A: clients, calls over both bindings, and event streams.

#![allow(dead_code)]

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};

use crate::kit::{Agent, Reply, TestHub};
use crate::relay::kit::{Event, events};

/// Our extension for hiring.
pub const HIRE: &str = "urn:rialto:a2a:hire:v1";
/// The path of the hub itself.
pub const HUB: &str = "/a2a";
/// Long enough for a busy disk.
const DEADLINE: Duration = Duration::from_secs(60);

/// A registered client and its key.
#[derive(Clone, Debug)]
pub struct Client {
    pub name: String,
    pub key: String,
}

/// A message with one text part.
pub fn text_message(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]})
}

/// The same with metadata for hiring.
pub fn hire_message(id: &str, text: &str, hire: Value) -> Value {
    let mut message = text_message(id, text);
    message["metadata"] = json!({ HIRE: hire });
    message
}

/// A JSON-RPC call.
pub fn rpc(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

/// The same for a whole call of SendMessage.
pub fn send_call(message: Value) -> Value {
    rpc(1, "SendMessage", json!({ "message": message }))
}

/// Headers of version 1.0 with a key.
pub fn headers(key: &str) -> Vec<(&'static str, String)> {
    let mut all = vec![("a2a-version", "1.0".to_owned())];
    if !key.is_empty() {
        all.push(("authorization", format!("Bearer {key}")));
    }
    all
}

impl TestHub {
    /// Registers a client.
    pub async fn a2a_client(&self, name: &str) -> Client {
        let reply = self.post("/a2a/agents", None, &json!({"name": name})).await.expect(201);
        Client { name: name.to_owned(), key: reply.str("/api_key") }
    }

    /// Registers a client with credits.
    pub async fn rich_client(&self, name: &str) -> Client {
        let client = self.a2a_client(name).await;
        self.grant(&format!("a2a:{name}"), "100.00").await;
        client
    }

    /// The name in A2A of an agent of another protocol, by its id there.
    pub fn a2a_name(&self, protocol: &'static str, native: &str) -> String {
        let protocol = rialto_core::alias::Protocol::new(protocol);
        self.engine.with_world(|world| {
            let agent = world.agent_by_alias(protocol, native).expect("a known agent");
            world.alias_of(agent, rialto_protocols::a2a::ID).expect("an alias").to_owned()
        })
    }

    /// The path at which an agent of another protocol is called.
    pub fn a2a_path(&self, protocol: &'static str, native: &str) -> String {
        format!("/a2a/agents/{}", self.a2a_name(protocol, native))
    }

    /// Any request with a key, which may be empty, and further headers.
    pub async fn request(
        &self,
        (method, path): (&str, &str),
        key: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let own = headers(key);
        let mut all: Vec<(&str, &str)> =
            own.iter().map(|(name, value)| (*name, value.as_str())).collect();
        // A header that is given replaces the usual one.
        all.retain(|(name, _)| !more.iter().any(|(other, _)| other == name));
        all.extend(more.iter().filter(|(_, value)| !value.is_empty()));
        self.send(method, path, &all, body.as_bytes()).await
    }

    /// A JSON-RPC call of version 1.0.
    pub async fn rpc(&self, base: &str, key: &str, method: &str, params: Value) -> Reply {
        self.request(("POST", base), key, &[], &rpc(1, method, params).to_string()).await
    }

    /// The result of a call that succeeds.
    #[track_caller]
    pub fn result<'h>(
        &'h self,
        base: &'h str,
        key: &'h str,
        method: &'h str,
        params: Value,
    ) -> impl Future<Output = Value> + 'h {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.rpc(base, key, method, params).await;
            let result = reply.json().get("result").cloned();
            result.unwrap_or_else(|| panic!("{method} at {caller}: {}", reply.text))
        }
    }

    /// The code and the reason of a call that is refused.
    #[track_caller]
    pub fn refusal<'h>(
        &'h self,
        base: &'h str,
        key: &'h str,
        method: &'h str,
        params: Value,
    ) -> impl Future<Output = (i64, String)> + 'h {
        let caller = std::panic::Location::caller();
        async move {
            let reply = self.rpc(base, key, method, params).await;
            let reason = reply.json().pointer("/error/data/0/reason").cloned();
            let reason = reason.unwrap_or_else(|| panic!("{method} at {caller}: {}", reply.text));
            let code = reply.at("/error/code").as_i64().expect("a number");
            (code, reason.as_str().expect("a text").to_owned())
        }
    }

    /// A GET with a key.
    pub async fn get_task(&self, base: &str, key: &str, task: &str) -> Value {
        let path = format!("{base}/tasks/{task}");
        self.request(("GET", &path), key, &[], "").await.expect(200).json()
    }

    /// Sends a message without waiting for its end; returns the task.
    pub async fn begin(&self, base: &str, key: &str, message: Value) -> Value {
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        self.result(base, key, "SendMessage", params).await["task"].clone()
    }

    /// Opens a stream with these headers alone.
    pub async fn a2a_stream(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> TaskEvents {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.body(body.to_owned()).send().await.expect("an answer");
        TaskEvents::of(answer).await
    }

    /// Opens a stream with the headers of version 1.0, and more.
    pub async fn stream(
        &self,
        (method, path): (&str, &str),
        key: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> TaskEvents {
        let own = headers(key);
        let own = own.iter().map(|(name, value)| (*name, value.as_str()));
        let all: Vec<(&str, &str)> = own.chain(more.iter().copied()).collect();
        self.a2a_stream(method, path, &all, body).await
    }

    /// Sends a message over HTTP+JSON and follows its task.
    pub async fn follow(&self, base: &str, key: &str, message: Value) -> TaskEvents {
        let body = json!({ "message": message }).to_string();
        self.stream(("POST", &format!("{base}/message:stream")), key, &[], &body).await
    }

    /// Follows a task, after an event if one is named.
    pub async fn subscribe(
        &self,
        base: &str,
        key: &str,
        task: &str,
        after: Option<&str>,
    ) -> TaskEvents {
        let path = format!("{base}/tasks/{task}:subscribe");
        let more: Vec<(&str, &str)> = after.map(|id| ("last-event-id", id)).into_iter().collect();
        self.stream(("POST", &path), key, &more, "").await
    }
}

/// A worker of the registry that uses the hub's own API.
pub struct TaskWorker<'h> {
    hub: &'h TestHub,
    pub agent: Agent,
    /// Where it is called in A2A.
    pub base: String,
}

impl<'h> TaskWorker<'h> {
    /// A worker with one skill.
    pub async fn join(hub: &'h TestHub, skill: &str, price: &str) -> Self {
        Self::of(hub, hub.agent(skill, skill, price, None).await).await
    }

    /// A worker with these skills.
    pub async fn with_skills(hub: &'h TestHub, name: &str, skills: Value) -> Self {
        let body =
            json!({"agent_name": name, "owner_id": name, "version": "0.1", "skills": skills});
        Self::of(hub, hub.enrol(&body, None).await).await
    }

    async fn of(hub: &'h TestHub, agent: Agent) -> Self {
        let base = hub.a2a_path("registry", &agent.id);
        let worker = Self { hub, agent, base };
        // One that polls is online.
        worker.hub.get("/v1/work", Some(&worker.agent.key)).await.expect(200);
        worker
    }

    /// Waits for the next job.
    pub async fn take(&self) -> Value {
        for _ in 0..6 {
            let work = self.hub.get("/v1/work?wait=10", Some(&self.agent.key)).await.expect(200);
            if let Some(job) = work.at("/jobs").as_array().and_then(|jobs| jobs.first()) {
                return job.clone();
            }
        }
        panic!("no work came");
    }

    /// Waits for the job that is this task.
    pub async fn take_task(&self, task: &str) -> Value {
        for _ in 0..6 {
            let work = self.hub.get("/v1/work?wait=10", Some(&self.agent.key)).await.expect(200);
            let jobs = work.at("/jobs");
            let mut jobs = jobs.as_array().expect("jobs").iter();
            if let Some(job) = jobs.find(|job| job["id"] == task) {
                return job.clone();
            }
        }
        panic!("{task} did not come");
    }

    /// A call about a job.
    pub async fn say(&self, job: &Value, verb: &str, body: Value) -> Reply {
        let id = job["id"].as_str().expect("an id");
        self.hub.post(&format!("/v1/jobs/{id}/{verb}"), Some(&self.agent.key), &body).await
    }

    pub async fn progress(&self, job: &Value, text: &str) {
        self.say(job, "progress", json!({"text": text})).await.expect(200);
    }

    pub async fn part(&self, job: &Value, artifact: Value, append: bool) {
        self.say(job, "parts", json!({"artifact": artifact, "append": append})).await.expect(200);
    }

    pub async fn ask(&self, job: &Value, text: &str) {
        self.say(job, "ask", json!({"text": text})).await.expect(200);
    }

    pub async fn succeed(&self, job: &Value, output: Value) {
        self.say(job, "result", json!({"ok": true, "output": output})).await.expect(200);
    }

    pub async fn fail(&self, job: &Value, text: &str) {
        self.say(job, "result", json!({"ok": false, "message": text})).await.expect(200);
    }

    pub async fn decline(&self, job: &Value, reason: &str) {
        self.say(job, "decline", json!({"reason": reason})).await.expect(200);
    }

    /// Takes the next job and does it.
    pub async fn work(&self, output: Value) -> Value {
        let job = self.take().await;
        self.succeed(&job, output).await;
        job
    }
}

/// The text of the first part of a message or artifact.
#[track_caller]
pub fn first_text(of: &Value) -> &str {
    of["parts"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {of}"))
}

/// The state of a task.
#[track_caller]
pub fn state(task: &Value) -> &str {
    task["status"]["state"].as_str().unwrap_or_else(|| panic!("no state in {task}"))
}

/// The id of a task or message.
#[track_caller]
pub fn id(of: &Value) -> String {
    of["id"].as_str().unwrap_or_else(|| panic!("no id in {of}")).to_owned()
}

/// The events of a task as they come. Dropping it closes the connection.
pub struct TaskEvents {
    answer: reqwest::Response,
    bytes: Vec<u8>,
    events: VecDeque<Event>,
    /// Everything read so far.
    pub raw: String,
}

impl TaskEvents {
    /// A response that is a stream.
    pub async fn of(answer: reqwest::Response) -> Self {
        if answer.status() != 200 || answer.headers()["content-type"] != "text/event-stream" {
            let status = answer.status();
            panic!("no stream but {status} {}", answer.text().await.unwrap_or_default());
        }
        Self { answer, bytes: Vec::new(), events: VecDeque::new(), raw: String::new() }
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.answer.headers().get(name).and_then(|value| value.to_str().ok())
    }

    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.events.pop_front() {
                crate::kit::API_DOC.check_event(self.answer.url().path(), &event.text);
                return Some(event);
            }
            let more = tokio::time::timeout(DEADLINE, self.answer.chunk()).await;
            // An aborted stream has ended as well.
            let more = more.expect("bytes, or an end").ok().flatten()?;
            self.raw.push_str(&String::from_utf8_lossy(&more));
            self.bytes.extend_from_slice(&more);
            self.events.extend(events(&mut self.bytes));
        }
    }

    /// Waits for the next bytes, whatever they are.
    pub async fn more(&mut self) {
        let more = self.answer.chunk().await.expect("bytes").expect("the stream goes on");
        self.raw.push_str(&String::from_utf8_lossy(&more));
        self.bytes.extend_from_slice(&more);
        self.events.extend(events(&mut self.bytes));
    }

    /// The next event, which must come.
    pub async fn event(&mut self) -> Event {
        self.next().await.expect("the stream goes on")
    }

    /// All events until the hub closes the stream.
    pub async fn rest(&mut self) -> Vec<Event> {
        let mut all = Vec::new();
        while let Some(event) = self.next().await {
            all.push(event);
        }
        all
    }
}
