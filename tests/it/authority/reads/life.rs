//! The scenario whose secrets are searched for: a job, a message and an offer of every kind.

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::Secret;
use crate::a2a::kit::{id, text_message};
use crate::agora::kit::{Key, Said};
use crate::clara::kit::{Hub as Board, Wallet};
use crate::kit::{Agent, TestHub, eventually};
use crate::openclaw::kit::{self, Hub as Claws, Node, fresh_id};

const INPUT: &str = "read job input";
const RESULT: &str = "read job result";
const BODY: &str = "read a message body";
const WEBHOOK: &str = "see where events are sent";
const BIDS: &str = "see bids before close";
const PUBLIC: &str = "be public";

/// The push configuration of a task, and a server that refuses every connection.
pub const CONFIG: &str = "hook";
const CLOSED: &str = "http://127.0.0.1:1";

const RESOURCE: &str = "agora:search:v1";
const PARTIES: &[&str] = &["requester", "worker"];
const KEYS: &[&str] = &["asking key", "working key"];
const CLIENTS: &[&str] = &["client", "worker"];
const NODES: &[&str] = &["asking node", "working node"];

/// An agent or operator that reads.
pub struct Reader {
    pub name: &'static str,
    pub key: Option<String>,
}

/// The hub, the texts in it, and the ids of its objects.
pub struct Life {
    pub hub: TestHub,
    pub secrets: Vec<Secret>,
    pub readers: Vec<Reader>,
    pub jobs: Vec<String>,
    pub agents: Vec<String>,
    pub traces: Vec<String>,
    pub messages: Vec<String>,
    /// a2a's tasks, and the names of their agents there.
    pub tasks: Vec<String>,
    pub called: Vec<String>,
}

impl Life {
    pub async fn live() -> Self {
        let hub = TestHub::serve(&[("jobs.auction_window", "1h")]).await;
        let operator = hub.operator.clone();
        let mut life = Self {
            hub,
            secrets: Vec::new(),
            readers: Vec::new(),
            jobs: Vec::new(),
            agents: Vec::new(),
            traces: Vec::new(),
            messages: Vec::new(),
            tasks: Vec::new(),
            called: Vec::new(),
        };
        life.reader("anybody", None);
        life.reader("operator", Some(operator));
        let requester = life.hub.orchestrator("requester").await;
        let worker = life.hub.agent("worker", "work", "0", None).await;
        let rival = life.hub.agent("rival", "work", "0", None).await;
        let other = life.hub.orchestrator("other").await;
        let all = [&requester, &worker, &rival, &other];
        for (name, agent) in ["requester", "worker", "rival", "other"].into_iter().zip(all) {
            life.reader(name, Some(agent.key.clone()));
            life.agents.push(agent.id.clone());
        }
        life.hub.grant("requester", "100").await;
        life.registry(&requester, &worker).await;
        life.offers(&requester, [&worker, &rival]).await;
        life.letters(&worker, &requester).await;
        life.a2a(&worker).await;
        life.openclaw().await;
        life.agora().await;
        life.clara(&requester).await;
        life
    }

    fn reader(&mut self, name: &'static str, key: Option<String>) {
        self.readers.push(Reader { name, key });
    }

    /// A text that occurs nowhere else.
    fn secret(
        &mut self,
        action: &'static str,
        name: &'static str,
        readers: &'static [&'static str],
    ) -> String {
        let text = format!("CANARY-{}-{}", self.secrets.len(), name.replace([' ', '\''], "-"));
        self.secrets.push(Secret { name, text: text.clone(), action, readers });
        text
    }

    /// A price that occurs nowhere else.
    fn price(&mut self, name: &'static str, text: &str, readers: &'static [&'static str]) {
        self.secrets.push(Secret { name, text: text.to_owned(), action: BIDS, readers });
    }

    /// A finished job, and one that its worker has not fetched.
    async fn registry(&mut self, requester: &Agent, worker: &Agent) {
        let done = self.secret(INPUT, "input of a job", PARTIES);
        let waiting = self.secret(INPUT, "input of a job that waits", PARTIES);
        let output = self.secret(RESULT, "result of a job", PARTIES);
        for (at, input) in [done, waiting].into_iter().enumerate() {
            let job = json!({"orchestrator_id": requester.id, "skill_name": "work", "budget": 0,
                "input_data": {"text": input}});
            let path = format!("/registry/agents/{}/jobs", worker.id);
            let reply = self.hub.post(&path, Some(&requester.key), &job).await.expect(202);
            let id = reply.str("/job_id");
            if at == 0 {
                let said = json!({"job_id": id, "status": "SUCCESS", "execution_cost": 0,
                    "output_data": {"text": output}});
                self.hub.post("/registry/results", Some(&worker.key), &said).await.expect(200);
            }
            self.jobs.push(id);
            self.jobs.push(reply.header("rialto-job").expect("our id").to_owned());
        }
    }

    /// A job with two invited workers, of which one has made an offer.
    async fn offers(&mut self, requester: &Agent, [worker, rival]: [&Agent; 2]) {
        let input =
            self.secret(INPUT, "input of a job to bid for", &["requester", "worker", "rival"]);
        let wanted =
            json!({"skill": "work", "budget": 9, "select": "offers", "input": {"t": input}});
        let opened = self.hub.post("/v1/jobs", Some(&requester.key), &wanted).await.expect(201);
        let id = opened.str("/id");
        // The requester chooses among them, so only it may read these.
        for (by, price, name, readers) in [
            (worker, 3.162_277, "an offer", PARTIES),
            (rival, 2.236_067, "a rival's offer", &["requester", "rival"]),
        ] {
            let path = format!("/v1/jobs/{id}/offers");
            self.hub.post(&path, Some(&by.key), &json!({"price": price})).await.expect(201);
            self.price(name, &price.to_string(), readers);
        }
        self.jobs.push(id);
    }

    /// A message through the hub's own API, and one between relay addresses.
    async fn letters(&mut self, from: &Agent, to: &Agent) {
        let own = self.secret(BODY, "body of a message", PARTIES);
        let body = json!({"to": to.id, "body": {"text": own}});
        self.hub.post("/v1/messages", Some(&from.key), &body).await.expect(200);
        let text = self.secret(BODY, "text of an envelope", PARTIES);
        let all = self.hub.get("/relay/agents", None).await.expect(200).at("/data");
        let address = |agent: &Agent| {
            let mut all = all.as_array().expect("a list").iter();
            let found = all.find(|one| one["native_id"] == agent.id.as_str()).expect("an alias");
            found["agent_id"].as_str().expect("text").to_owned()
        };
        let envelope = json!({"chorus_version": "0.4", "sender_id": address(from),
            "original_text": text, "sender_culture": "en"});
        let body = json!({"receiver_id": address(to), "envelope": envelope});
        let sent = self.hub.post("/relay/messages", Some(&from.key), &body).await.expect(202);
        self.traces.push(sent.str("/data/trace_id"));
        self.agents.push(address(to));
    }

    /// A finished task with a push configuration, and one that its worker has not fetched.
    async fn a2a(&mut self, worker: &Agent) {
        let client = self.hub.a2a_client("client").await;
        self.reader("client", Some(client.key.clone()));
        let name = self.hub.a2a_name("registry", &worker.id);
        let base = format!("/a2a/agents/{name}");
        let done = self.secret(INPUT, "message of a task", CLIENTS);
        let waiting = self.secret(INPUT, "message of a task that waits", CLIENTS);
        let output = self.secret(RESULT, "artifact of a task", CLIENTS);
        for (at, text) in [done, waiting].into_iter().enumerate() {
            let task = id(&self.hub.begin(&base, &client.key, text_message("m", &text)).await);
            if at == 0 {
                let url = self.secret(WEBHOOK, "URL of a push configuration", &["client"]);
                let push = json!({"taskId": task, "id": CONFIG, "url": format!("{CLOSED}/{url}")});
                let create = "CreateTaskPushNotificationConfig";
                self.hub.result(&base, &client.key, create, push).await;
                let said = json!({"ok": true, "output": {"text": output}});
                let path = format!("/v1/jobs/{task}/result");
                self.hub.post(&path, Some(&worker.key), &said).await.expect(200);
            }
            self.jobs.push(task.clone());
            self.tasks.push(task);
        }
        self.called.extend([name, client.name]);
    }

    async fn openclaw(&mut self) {
        let mut nodes = Vec::new();
        for name in ["asking node", "working node", "other node"] {
            let identity = kit::identity(&name.replace(' ', "-"), Claws::time_of(&self.hub));
            let reply = self.hub.post("/openclaw/identity", None, &identity).await.expect(201);
            let node = Node { id: reply.str("/agent_id"), key: reply.str("/api_key"), identity };
            self.reader(name, Some(node.key.clone()));
            self.agents.push(node.id.clone());
            nodes.push(node);
        }
        let (by, of) = (&nodes[0], &nodes[1]);
        let input = self.secret(INPUT, "input of a collaboration", NODES);
        let output = self.secret(RESULT, "result of a collaboration", NODES);
        let stamp = Claws::stamp_of(&self.hub);
        let request = json!({"request_id": fresh_id(), "requester_agent_id": by.id,
            "responder_agent_id": of.id, "capability_id": "sum", "correlation_id": fresh_id(),
            "input_data": {"a": 0.5, "text": input}, "timestamp": stamp});
        let path = "/openclaw/collaborations";
        let id = self.hub.post(path, Some(&by.key), &request).await.expect(200);
        let id = id.str("/collaboration_id");
        let result = json!({"collaboration_id": id, "request_id": request["request_id"],
            "responder_agent_id": of.id, "result_status": "completed", "output_data": {"r": output},
            "correlation_id": request["correlation_id"], "timestamp": stamp});
        let path = format!("/openclaw/collaborations/{id}/result");
        self.hub.post(&path, Some(&of.key), &result).await.expect(200);
        self.jobs.push(request["request_id"].as_str().expect("text").to_owned());
        self.jobs.push(id);
    }

    async fn tell(&self, said: &Said) -> Value {
        let reply = self.hub.call("POST", "/agora/envelopes", None, Some(&said.text)).await;
        assert!(reply.status < 300, "{}", reply.text);
        reply.json()
    }

    async fn agora(&mut self) {
        let own = self.hub.get("/agora", None).await.expect(200).str("/hub");
        let own = PublicKey::parse(&own).expect("a key");
        let [alice, bob, carol, dave] = [1, 2, 3, 4].map(Key::of);
        let able = json!({"inbox": true, "capabilities": [{"resource": RESOURCE}]});
        for (name, key, profile) in [
            ("asking key", &alice, json!({"inbox": true})),
            ("working key", &bob, able.clone()),
            ("rival key", &carol, able),
            ("other key", &dave, json!({"inbox": true})),
        ] {
            let welcome = self.tell(&key.sign_for(MessageType::Hello, &profile, Some(own))).await;
            let token = welcome["payload"]["inbox_token"].as_str().expect("a token");
            self.reader(name, Some(token.to_owned()));
            self.agents.push(key.did().to_owned());
        }
        self.hub.grant(&alice.owner(), "10").await;
        let params = self.secret(INPUT, "params of a request", KEYS);
        let data = self.secret(RESULT, "data of a result", KEYS);
        let wish = json!({"resource": RESOURCE, "params": {"q": params}});
        let request = alice.sign_for(MessageType::Request, &wish, Some(bob.public()));
        self.tell(&request).await;
        let output = json!({"request_id": request.id, "status": "success", "data": {"n": data}});
        self.tell(&bob.sign(MessageType::Result, &output)).await;
        self.jobs.push(request.id);
        let note = self.secret(BODY, "body of a note", &["working key"]);
        let note = json!({"status": "busy", "note": note});
        self.tell(&alice.sign_for(MessageType::Status, &note, Some(bob.public()))).await;
        let both = &["asking key", "working key", "rival key"];
        let params = self.secret(INPUT, "params of a request to two", both);
        let more = json!({"params": {"q": params}, "budget": {"max": 6}});
        let request = alice.request(RESOURCE, more);
        self.tell(&request).await;
        self.tell(&bob.offer(&request.id, json!(2.449_489))).await;
        self.price("cost of an offer", "2.449489", KEYS);
        self.jobs.push(request.id);
    }

    /// A public task of the market, a sealed bid for another one, and a job from another protocol
    /// for one of its agents.
    async fn clara(&mut self, requester: &Agent) {
        let [asker, agent, rival] = [11, 12, 13].map(Wallet::of);
        let payload = self.secret(PUBLIC, "payload of a task", &["*"]);
        let result = self.secret(PUBLIC, "result of a task", &["*"]);
        let input = self.secret(INPUT, "input of a job for the market", &["requester"]);
        let output = self.secret(RESULT, "result of a job for the market", &["requester"]);
        let board = Board(std::mem::replace(&mut self.hub, TestHub::serve(&[]).await));
        board.agent(&agent, "A", "tweet", "1").await;
        board.agent(&rival, "B", "tweet", "2").await;
        board.fund(&asker, "1000000000").await;
        let tags = |matching: &'static str, reward: &'static str| {
            [
                ("RedStone-Agent-Topic", "tweet"),
                ("RedStone-Agent-Reward", reward),
                ("RedStone-Agent-Matching", matching),
            ]
        };
        let said = json!({ "say": payload }).to_string();
        let task = board.act(&asker, "Register-Task", &tags("cheapest", "5"), &said).await;
        let about = |task| [("RedStone-Agent-Id", "A"), ("RedStone-Task-Id", task)];
        let said = json!({ "said": result }).to_string();
        let done = board.act(&agent, "Send-Result", &about(&task.id), &said).await;
        let auction = board.send(&asker, "Register-Task", &tags("query", "900000000"), "{}").await;
        let bid = board.offer(&agent, "A", &auction, "734003311").await;
        self.price("a sealed bid", "734003311", &[]);
        let job = json!({"to": "clara:A", "skill": "clara.tweet", "budget": 1,
            "input": {"text": input}});
        let job = board.post("/v1/jobs", Some(&requester.key), &job).await.expect(201).str("/id");
        let said = json!({ "text": output }).to_string();
        let delivered = board.act(&agent, "Send-Result", &about(&job), &said).await;
        let path = format!("/v1/jobs/{job}");
        eventually(async || board.get(&path, Some(&requester.key)).await.text.contains(&output))
            .await;
        // The outcome of the auction is answered when it closes, and not before.
        self.messages = [task.id.clone(), done.id, bid.id, delivered.id].into();
        self.jobs.extend([task.id, auction, job]);
        self.agents.push("A".to_owned());
        std::mem::replace(&mut self.hub, board.0).stop().await;
    }

    pub async fn end(self) {
        self.hub.stop().await;
    }
}
