//! The hub every row is tested on: four agents of four owners, a job and a message between two of
//! them, a relay agent, an agora key, and a callback that failed. Rows of openclaw also have the
//! agents of `claws`, and those of a2a what is in `a2a`.

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::Caller;
use super::a2a::Tasks;
use super::claws::Claws;
use super::table::Row;
use crate::agora::kit::Key;
use crate::clara::kit::Wallet;
use crate::kit::api_doc::ReceivedAnswer;
use crate::kit::{API_DOC, Agent, ClosedPort, Reply, TestHub, eventually};

/// The sample key of RFC 6455.
const WEBSOCKET_KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";

/// A hub and its agents.
pub struct Scene {
    pub hub: TestHub,
    /// The agent that requests are about.
    pub named: Agent,
    pub requester: Agent,
    pub worker: Agent,
    pub other: Agent,
    /// The agent that the relay's requests are about.
    pub addressed: Agent,
    /// The agent that agora's requests are about, its inbox token, and its request.
    pub speaker: Key,
    pub inbox_token: String,
    pub request: String,
    /// The worker's message to the requester, which has no skill, so that the message is not a job.
    pub trace: String,
    /// A wallet, and a message it has posted to the market.
    pub wallet: Wallet,
    pub posted: String,
    /// Assigned to the worker and not fetched: by the requester's id, and by the hub's.
    pub job: String,
    pub uuid: String,
    /// Open to offers, by the hub's id; the worker has made one.
    pub offered: String,
    /// The callback token of another job, which the worker has fetched.
    pub token: String,
    /// The callback that is still pending.
    pub push: u64,
    /// openclaw's own agents and their collaborations, for rows about them.
    claws: Option<Claws>,
    /// a2a's client and task, for rows about them.
    tasks: Option<Tasks>,
    /// A URL that refuses connections.
    pub closed: ClosedPort,
}

impl Scene {
    pub async fn set(row: &Row) -> Self {
        Self::on(TestHub::serve(&[("relay.accept_direct", "true")]).await, row).await
    }

    /// The same on another kind of hub.
    pub async fn on(hub: TestHub, row: &Row) -> Self {
        let closed = ClosedPort::take();
        let endpoint = row.route.ends_with("/webhooks/test").then_some(closed.url.as_str());
        let named = hub.agent("named", "named_skill", "0.10", endpoint).await;
        let requester = hub.orchestrator("requester").await;
        let worker = hub.agent("worker", "free", "0", None).await;
        let other = hub.orchestrator("other").await;
        hub.grant("named", "1.00").await;
        let push = Self::failed_callback(&hub, &requester, &worker, &closed.url).await;
        let token = Self::fetched_job(&hub, &requester, &worker).await;
        let reply = Self::hire(&hub, &requester, &worker, json!({})).await;
        let (job, uuid) =
            (reply.str("/job_id"), reply.header("rialto-job").expect("our id").to_owned());
        if row.route.ends_with("/answer") {
            let (path, question) = (format!("/v1/jobs/{uuid}/ask"), json!({"text": "which?"}));
            hub.post(&path, Some(&worker.key), &question).await.expect(200);
        }
        let offered = Self::offered(&hub, &requester, &worker).await;
        let addressed = Self::addressed(&hub).await;
        let speaker = Key::of(1);
        let (inbox_token, request) = Self::spoken(&hub, &speaker).await;
        let trace = Self::message(&hub, &worker, &requester).await;
        let wallet = Wallet::of(1);
        let posted = Self::posted(&hub, &wallet).await;
        let claws = match row.of_claw {
            Some(about) => Some(Claws::set(&hub, about).await),
            None => None,
        };
        let tasks = match row.of_a2a {
            true => Some(Tasks::set(&hub, &requester, &worker, &closed.url).await),
            false => None,
        };
        Self {
            hub,
            named,
            requester,
            worker,
            other,
            addressed,
            speaker,
            inbox_token,
            request,
            trace,
            wallet,
            posted,
            job,
            uuid,
            offered,
            token,
            push,
            claws,
            tasks,
            closed,
        }
    }

    /// A job that waits for its requester to accept a price.
    async fn offered(hub: &TestHub, requester: &Agent, worker: &Agent) -> String {
        let wanted = json!({"skill": "free", "budget": 0, "select": "offers"});
        let opened = hub.post("/v1/jobs", Some(&requester.key), &wanted).await.expect(201);
        let id = opened.str("/id");
        let path = format!("/v1/jobs/{id}/offers");
        hub.post(&path, Some(&worker.key), &json!({"price": 0})).await.expect(201);
        id
    }

    /// A message without effect.
    async fn posted(hub: &TestHub, wallet: &Wallet) -> String {
        let item = wallet.item(&[("Action", "Tasks-Queue")], b"");
        let request = hub.http.post(format!("{}/clara/mu", hub.url)).body(item);
        let reply = Reply::to(request).await;
        reply.expect(202).str("/id")
    }

    async fn addressed(hub: &TestHub) -> Agent {
        let reply = hub.post("/relay/register", None, &json!({"agent_id": "addressed"})).await;
        let reply = reply.expect(201);
        let (id, key) = (reply.str("/data/agent_id"), reply.str("/data/api_key"));
        Agent { owner: format!("relay:{id}"), id, key }
    }

    /// A key that sent HELLO and a request to another key.
    async fn spoken(hub: &TestHub, speaker: &Key) -> (String, String) {
        let did = hub.get("/agora", None).await.expect(200).str("/hub");
        let own = PublicKey::parse(&did).expect("a key");
        let post = async |text: &str| hub.call("POST", "/agora/envelopes", None, Some(text)).await;
        let hello = speaker.sign_for(MessageType::Hello, &json!({"inbox": true}), Some(own));
        let welcome = post(&hello.text).await.expect(200);
        let asked =
            Key::of(2).sign(MessageType::Hello, &json!({"capabilities": ["agora:time:v1"]}));
        post(&asked.text).await.expect(200);
        let request = speaker.request("agora:time:v1", json!({}));
        post(&request.text).await.expect(202);
        (welcome.str("/payload/inbox_token"), request.id)
    }

    /// A message from one agent to another between their relay addresses.
    async fn message(hub: &TestHub, from: &Agent, to: &Agent) -> String {
        let all = hub.get("/relay/agents", None).await.expect(200).at("/data");
        let address = |agent: &Agent| {
            let mut all = all.as_array().expect("a list").iter();
            let found = all.find(|one| one["native_id"] == agent.id.as_str()).expect("an alias");
            found["agent_id"].clone()
        };
        let envelope = json!({"chorus_version": "0.4", "sender_id": address(from),
            "original_text": "hello", "sender_culture": "en"});
        let body = json!({"receiver_id": address(to), "envelope": envelope});
        let sent = hub.post("/relay/messages", Some(&from.key), &body).await.expect(202);
        sent.str("/data/trace_id")
    }

    async fn failed_callback(hub: &TestHub, requester: &Agent, worker: &Agent, url: &str) -> u64 {
        let reply = Self::hire(hub, requester, worker, json!({"callback_url": url})).await;
        hub.report(worker, &reply.str("/job_id"), "SUCCESS", "0").await.expect(200);
        let failed = |times: u32| {
            hub.engine.with_world(|world| {
                world.deliveries().find(|push| push.attempts >= times).map(|push| push.notice.0)
            })
        };
        eventually(async || failed(1).is_some()).await;
        let push = failed(1).expect("it has failed");
        // The first retry would come within seconds, during the test; the second takes minutes.
        let path = format!("/v1/operator/pushes/{push}/retry");
        hub.post(&path, Some(&hub.operator), &json!({})).await.expect(200);
        eventually(async || failed(2).is_some()).await;
        push
    }

    async fn fetched_job(hub: &TestHub, requester: &Agent, worker: &Agent) -> String {
        Self::hire(hub, requester, worker, json!({})).await;
        let work =
            hub.get(&format!("/registry/agents/{}/jobs", worker.id), Some(&worker.key)).await;
        let url = work.expect(200).str("/jobs/0/callback_url");
        url.rsplit_once('/').expect("a path").1.to_owned()
    }

    async fn hire(hub: &TestHub, by: &Agent, worker: &Agent, more: Value) -> Reply {
        let mut body =
            json!({"orchestrator_id": by.id, "skill_name": "free", "input_data": {}, "budget": 0});
        body.as_object_mut()
            .expect("an object")
            .extend(more.as_object().expect("an object").clone());
        hub.post(&format!("/registry/agents/{}/jobs", worker.id), Some(&by.key), &body)
            .await
            .expect(202)
    }

    /// openclaw's agents, in rows about them.
    pub fn claws(&self) -> &Claws {
        self.claws.as_ref().expect("the row is about openclaw")
    }

    /// a2a's client and task, in rows about them.
    fn tasks(&self) -> &Tasks {
        self.tasks.as_ref().expect("the row is about a2a")
    }

    fn key(&self, row: &Row, caller: Caller) -> Option<&str> {
        if let Some(claws) = &self.claws {
            let operator = (caller == Caller::Operator).then_some(self.hub.operator.as_str());
            return claws.key(caller).or(operator);
        }
        Some(match caller {
            Caller::Anyone => return None,
            Caller::Itself if row.by_address => &self.addressed.key,
            Caller::Itself if row.by_key => &self.inbox_token,
            Caller::Itself if row.of_a2a => &self.tasks().named.key,
            Caller::Itself => &self.named.key,
            Caller::Requester => &self.requester.key,
            Caller::Worker => &self.worker.key,
            Caller::Other => &self.other.key,
            Caller::Operator => &self.hub.operator,
        })
    }

    /// Sends the row's request as this caller and returns the status.
    pub async fn ask(&self, row: &Row, caller: Caller) -> u16 {
        let request = self.request(row, caller);
        if !row.is_stream() {
            return Reply::to(request).await.status;
        }
        // Streams have no end, so only the head is read.
        let answer = request.send().await.expect("an answer");
        let content_type = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        let (method, _) = row.route.split_once(' ').expect("method and path");
        let status = answer.status().as_u16();
        API_DOC.check_answer(ReceivedAnswer {
            method: Some(method),
            path: answer.url().path(),
            status,
            content_type: content_type.unwrap_or_default(),
            body: None,
        });
        status
    }

    /// The row's request as this caller makes it.
    pub fn request(&self, row: &Row, caller: Caller) -> reqwest::RequestBuilder {
        let (method, template) = row.route.split_once(' ').expect("method and path");
        let path = self.filled(template, row);
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http(method, &path);
        if let Some(key) = self.key(row, caller) {
            request = request.bearer_auth(key);
        }
        if row.route.ends_with("/ws") {
            let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
            let ours = [("sec-websocket-version", "13"), ("sec-websocket-key", WEBSOCKET_KEY)];
            for (name, value) in upgrade.into_iter().chain(ours) {
                request = request.header(name, value);
            }
        }
        if let Some(body) = row.body {
            request = request.body(body(self).to_string());
        }
        if row.route.starts_with("POST /clara") && row.expected == [202; 6] {
            request = request.body(self.wallet.item(&[("Action", "Tasks-Queue")], b""));
        }
        request
    }

    fn http(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.hub.http.request(method, format!("{}{path}", self.hub.url))
    }

    /// The hub's id of an agent's key; one that no key has, after all were revoked.
    fn key_of(&self, agent: &Agent) -> String {
        self.hub.engine.with_world(|world| {
            let id = world.agent_by_alias(rialto_protocols::registry::ID, &agent.id);
            let id = id.expect("it is registered");
            world.keys_of(id).next().map_or_else(|| "0".to_owned(), |key| key.id.to_string())
        })
    }

    /// The path with this scene's ids.
    pub fn filled(&self, template: &str, row: &Row) -> String {
        let claws = self.claws.as_ref();
        let part = |part: &str| match part {
            variable if row.of_a2a && variable.starts_with('{') => {
                self.tasks().path_part(row, variable)
            }
            "{agent_id}" if row.of_worker && claws.is_some() => self.claws().worker.id.clone(),
            "{agent_id}" if claws.is_some() => self.claws().named.id.clone(),
            "{id}" if claws.is_some() => self.claws().collaboration.clone(),
            "{agent_id}" if row.of_worker => self.worker.id.clone(),
            "{id}" if row.by_address => self.addressed.id.clone(),
            "{id}" if template.contains("/requests/") => self.request.clone(),
            "{id}" if template.ends_with("/offers") => self.offered.clone(),
            "{id}" if template.ends_with("/accept") => self.offered.clone(),
            "{id}" if template.starts_with("/v1/jobs/") => self.uuid.clone(),
            "{id}" if template.contains("/webhooks/") => self.push.to_string(),
            "{id}" if template.starts_with("/v1/keys/") => self.key_of(&self.named),
            "{id}" if row.by_key => self.speaker.did().to_owned(),
            "{process}" => rialto_protocols::clara::PROCESS.to_owned(),
            "{message}" => self.posted.clone(),
            "{trace_id}" => self.trace.clone(),
            "{agent_id}" | "{id}" if template.contains("/pushes/") => self.push.to_string(),
            "{agent_id}" | "{id}" => self.named.id.clone(),
            "{job_id}" => self.job.clone(),
            "{uuid}" => self.uuid.clone(),
            "{token}" => self.token.clone(),
            "{names}" => self.named.id.clone(),
            "{owner_id}" | "{name}" => self.named.owner.clone(),
            open if open.starts_with('{') => panic!("the scene has no value for {open}"),
            fixed => fixed.to_owned(),
        };
        let path: Vec<String> = template.split('/').map(part).collect();
        path.join("/") + row.query
    }

    pub async fn end(self) {
        self.hub.stop().await;
    }
}
