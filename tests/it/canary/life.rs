//! A scenario in all protocols of which only the parties may learn the contents.

use std::collections::BTreeMap;

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ed25519::PublicKey;
use serde_json::{Value, json};

use super::caught::{Canaries, Wanted};
use super::process::Watched;
use crate::a2a::kit::{rpc, text_message};
use crate::a2a::remote::server::{Fault, Puppet};
use crate::agora::kit::{Key, Said};
use crate::clara::kit::Wallet;
use crate::kit::{Behaviour, Reply, Worker, eventually};
use crate::openclaw::kit::{fresh_id, identity, with};

/// What was sent and issued, and the ids of all objects.
pub struct Life {
    pub canaries: Canaries,
    /// Values for the parameters of a path.
    pub names: BTreeMap<&'static str, Vec<String>>,
    endpoint: Worker,
}

/// An agent with a key.
struct Holder {
    id: String,
    key: String,
}

impl Watched {
    pub async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Reply {
        let mut request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        Reply::to(request).await
    }

    /// Posts the same request twice with one idempotency key. The saved answer must not contain the
    /// secrets of the first.
    async fn post_twice(&self, path: &str, key: Option<&str>, body: &Value) -> [Reply; 2] {
        let name = format!("twice-{}", fresh_id());
        let mut replies = Vec::new();
        for _ in 0..2 {
            let mut request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
            request = request.header("idempotency-key", &name);
            if let Some(key) = key {
                request = request.bearer_auth(key);
            }
            replies.push(Reply::to(request).await);
        }
        replies.try_into().expect("there are two")
    }

    pub async fn get(&self, path: &str, key: Option<&str>) -> Reply {
        let mut request = self.http.get(format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        Reply::to(request).await
    }

    async fn grant(&self, owner: &str) {
        let body = json!({"owner": owner, "amount": 50, "create": true});
        self.post("/v1/operator/grants", Some(&self.operator), &body).await.expect(201);
    }
}

/// The path of a URL.
fn path_of(url: &str) -> String {
    let (_, rest) = url.split_once("://").expect("a URL");
    rest[rest.find('/').expect("a path")..].to_owned()
}

impl Life {
    pub async fn live(hub: &Watched) -> Self {
        let mut canaries = Canaries::default();
        canaries.secret("the operator's key", &hub.operator);
        let output = canaries.payload("called-output");
        let endpoint = Worker::start(Behaviour::Succeed(json!({ "said": output }), "0")).await;
        let mut life = Self { canaries, names: BTreeMap::new(), endpoint };
        let (requester, worker) = life.registry(hub).await;
        life.our_own(hub, &requester, &worker).await;
        life.relay(hub).await;
        life.openclaw(hub).await;
        life.agora(hub).await;
        life.clara(hub, &requester).await;
        life.a2a(hub).await;
        life
    }

    fn note(&mut self, part: &'static str, name: impl Into<String>) {
        self.names.entry(part).or_default().push(name.into());
    }

    /// Records every secret in a response.
    fn issued(&mut self, what: &str, reply: &Reply) {
        for name in ["api_key", "webhook_secret", "inbox_token", "key"] {
            for within in ["", "/data", "/payload"] {
                let found = reply.json().pointer(&format!("{within}/{name}")).cloned();
                if let Some(text) = found.as_ref().and_then(Value::as_str) {
                    self.canaries.secret(&format!("{name} of {what}"), text);
                }
            }
        }
    }

    /// Makes a request twice that issues a secret: the second answer is the first without the
    /// secret.
    async fn issued_once(
        &mut self,
        hub: &Watched,
        path: &str,
        key: Option<&str>,
        body: &Value,
        what: &str,
    ) -> Reply {
        let [first, again] = hub.post_twice(path, key, body).await;
        assert!(first.status < 300, "{}", first.text);
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (first.status, Some("true"))
        );
        let before = self.canaries.secrets.len();
        self.issued(what, &first);
        assert!(self.canaries.secrets.len() > before, "{path} issued nothing: {}", first.text);
        let issued = Wanted::all(self.canaries.secret_forms());
        issued.assert_not_in(&format!("{path} repeated"), again.text.as_bytes());
        first
    }

    async fn registered(&mut self, hub: &Watched, what: &str, more: Value) -> Holder {
        let body = with(&json!({"agent_name": what, "owner_id": what, "skills": []}), more);
        let reply = self.issued_once(hub, "/registry/register", None, &body, what).await;
        self.note("agent", reply.str("/agent_id"));
        self.note("owner", what);
        Holder { id: reply.str("/agent_id"), key: reply.str("/api_key") }
    }

    async fn registry(&mut self, hub: &Watched) -> (Holder, Holder) {
        let url = self.endpoint.url.clone();
        let requester = self.registered(hub, "requester", json!({})).await;
        let skills = json!({"skills": [{"skill_name": "work", "cost_per_call": 0}]});
        let worker = self.registered(hub, "worker", skills).await;
        // The endpoint of an agent is public in this protocol.
        let called = json!({"api_endpoint": format!("{url}/work"),
            "skills": [{"skill_name": "called", "cost_per_call": 0}]});
        let called = self.registered(hub, "called", called).await;
        hub.grant("requester").await;
        for (of, skill) in [(&worker, "work"), (&worker, "work"), (&called, "called")] {
            let callback = format!("{url}/{}?t=1", self.canaries.payload("callback"));
            let input = self.canaries.payload("input");
            let job = json!({"orchestrator_id": requester.id, "skill_name": skill, "budget": 0,
                "input_data": {"text": input}, "callback_url": callback});
            let path = format!("/registry/agents/{}/jobs", of.id);
            let reply = hub.post(&path, Some(&requester.key), &job).await;
            assert!(reply.status < 300, "{}", reply.text);
            self.note("job", reply.str("/job_id"));
            self.note("job", reply.header("rialto-job").expect("our id"));
        }
        let path = format!("/registry/agents/{}/jobs", worker.id);
        let work = hub.get(&path, Some(&worker.key)).await.expect(200);
        for (at, job) in work.at("/jobs").as_array().expect("a list").iter().enumerate() {
            let url = job["callback_url"].as_str().expect("a URL");
            self.canaries.secret("a callback token", url.rsplit('/').next().expect("a token"));
            let text = self.canaries.payload("outcome");
            let done = json!({"status": "SUCCESS", "output_data": {"text": text}});
            let failed = json!({"status": "FAILURE", "error_message": text});
            let said = if at == 0 { done } else { failed };
            let body = with(&json!({"job_id": job["job_id"], "execution_cost": 0}), said);
            // One through the secret callback URL, one with the key.
            match at {
                0 => hub.post(&path_of(url), None, &body).await.expect(200),
                _ => hub.post("/registry/results", Some(&worker.key), &body).await.expect(200),
            };
        }
        let again = json!({"agent_id": worker.id, "agent_name": "worker", "owner_id": "worker",
            "rotate_key": true, "skills": [{"skill_name": "work", "cost_per_call": 0}]});
        let (path, key) = ("/registry/register", Some(&*worker.key));
        let rotated = self.issued_once(hub, path, key, &again, "worker, rotated").await;
        (requester, Holder { id: worker.id, key: rotated.str("/api_key") })
    }

    async fn our_own(&mut self, hub: &Watched, requester: &Holder, worker: &Holder) {
        let (path, key) = ("/v1/keys/rotate", Some(&*worker.key));
        self.issued_once(hub, path, key, &json!({}), "worker, rotated by v1").await;
        let (input, output) =
            (self.canaries.payload("v1-input"), self.canaries.payload("v1-output"));
        let callback = format!("{}/{}", self.endpoint.url, self.canaries.payload("v1-callback"));
        let job = json!({"to": worker.id, "skill": "work", "budget": 0, "input": {"text": input},
            "callback": callback});
        let job = hub.post("/v1/jobs", Some(&requester.key), &job).await.expect(201).str("/id");
        let done = json!({"ok": true, "output": {"text": output}});
        let path = format!("/v1/jobs/{job}/result");
        hub.post(&path, Some(&worker.key), &done).await.expect(200);
        self.note("job", job);
        let wanted = self.canaries.payload("v1-wanted");
        let open =
            json!({"skill": "work", "budget": 0, "select": "offers", "input": {"t": wanted}});
        let open = hub.post("/v1/jobs", Some(&requester.key), &open).await.expect(201).str("/id");
        let offer = json!({"price": 0});
        hub.post(&format!("/v1/jobs/{open}/offers"), Some(&worker.key), &offer).await.expect(201);
        self.note("job", open);
        let text = self.canaries.payload("v1-message");
        let message = json!({"to": worker.id, "body": {"text": text}});
        hub.post("/v1/messages", Some(&requester.key), &message).await.expect(200);
    }

    async fn relay(&mut self, hub: &Watched) {
        let endpoint = format!("{}/relay", self.endpoint.url);
        let mut join = async |name: &str, more: Value| {
            let body = with(&json!({"agent_id": name}), more);
            let reply = self.issued_once(hub, "/relay/register", None, &body, name).await;
            self.note("agent", reply.str("/data/agent_id"));
            Holder { id: reply.str("/data/agent_id"), key: reply.str("/data/api_key") }
        };
        let ann = join("ann", json!({})).await;
        let bob = join("bob", json!({})).await;
        let cid = join("cid", json!({ "endpoint": endpoint })).await;
        // The second key of the read-only agent stays valid.
        let (path, operator) = (format!("/relay/agents/{}/key", cid.id), Some(&*hub.operator));
        self.issued_once(hub, &path, operator, &json!({}), "cid, by the operator").await;
        for (from, to) in [(&ann, &bob), (&bob, &ann), (&ann, &cid)] {
            let text = self.canaries.payload("letter");
            let envelope = json!({"chorus_version": "0.4", "sender_id": from.id,
                "original_text": text, "sender_culture": "en"});
            let body = json!({"receiver_id": to.id, "envelope": envelope});
            let sent = hub.post("/relay/messages", Some(&from.key), &body).await;
            assert!(sent.status < 300, "{}", sent.text);
            self.note("trace", sent.str("/data/trace_id"));
        }
    }

    async fn openclaw(&mut self, hub: &Watched) {
        let now = crate::agora::kit::now();
        let stamp = rialto_protocols::kit::rfc3339::format_millis(now);
        let mut both = Vec::new();
        for name in ["claw-asker", "claw-worker"] {
            let endpoint = format!("{}/claw", self.endpoint.url);
            let body = with(&identity(name, now), json!({ "endpoint": endpoint }));
            let reply = self.issued_once(hub, "/openclaw/identity", None, &body, name).await;
            self.note("agent", reply.str("/agent_id"));
            both.push(Holder { id: reply.str("/agent_id"), key: reply.str("/api_key") });
        }
        let (asker, worker) = (&both[0], &both[1]);
        let (input, output) = (self.canaries.payload("asked"), self.canaries.payload("answered"));
        let request = json!({"request_id": fresh_id(), "requester_agent_id": asker.id,
            "responder_agent_id": worker.id, "capability_id": "sum",
            "input_data": {"a": 0.5, "text": input}, "correlation_id": fresh_id(),
            "timestamp": stamp});
        let path = "/openclaw/collaborations";
        let reply = hub.post(path, Some(&asker.key), &request).await.expect(200);
        let id = reply.str("/collaboration_id");
        let result = json!({"collaboration_id": id, "request_id": request["request_id"],
            "responder_agent_id": worker.id, "result_status": "completed",
            "output_data": {"r": output}, "correlation_id": request["correlation_id"],
            "timestamp": stamp});
        let path = format!("/openclaw/collaborations/{id}/result");
        hub.post(&path, Some(&worker.key), &result).await.expect(200);
        self.note("job", id);
    }

    async fn agora(&mut self, hub: &Watched) {
        let own = hub.get("/agora", None).await.expect(200).str("/hub");
        let own = PublicKey::parse(&own).expect("a key");
        let tell = async |said: &Said| {
            let body: Value = serde_json::from_str(&said.text).expect("JSON");
            let reply = hub.post("/agora/envelopes", None, &body).await;
            assert!(reply.status < 300, "{}", reply.text);
            reply
        };
        let (alice, bob) = (Key::of(1), Key::of(2));
        let endpoint = format!("{}/agora", self.endpoint.url);
        let profile = json!({"inbox": true, "capabilities": ["agora:search:v1"],
            "endpoint": endpoint});
        for (who, profile) in [(&alice, json!({"inbox": true})), (&bob, profile)] {
            let welcome = tell(&who.sign_for(MessageType::Hello, &profile, Some(own))).await;
            self.issued(who.did(), &welcome);
            self.note("agent", who.did());
        }
        let (params, data) = (self.canaries.payload("params"), self.canaries.payload("data"));
        let request = alice.request("agora:search:v1", json!({"params": {"q": params}}));
        tell(&request).await;
        let result = json!({"request_id": request.id, "status": "success", "data": {"n": data}});
        tell(&bob.sign(MessageType::Result, &result)).await;
        self.note("job", &request.id);
    }

    /// The market is public by its own rules, but jobs from other protocols are not.
    async fn clara(&mut self, hub: &Watched, requester: &Holder) {
        let (wallet, asker) = (Wallet::of(1), Wallet::of(2));
        let say = async |by: &Wallet, tags: &[(&str, &str)], data: &str| {
            let all = [&[("Protocol", "C.L.A.R.A.")], tags].concat();
            let request = hub.http.post(format!("{}/clara/mu", hub.url));
            let sent = request.body(by.item(&all, data.as_bytes())).send().await;
            Reply::of(sent.expect("an answer")).await.expect(202).str("/id")
        };
        let profile = [
            ("Action", "Register-Agent-Profile"),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "1"),
            ("RedStone-Agent-Id", "A"),
        ];
        say(&wallet, &profile, "{}").await;
        self.note("agent", "A");
        hub.grant(&format!("clara:{}", asker.address())).await;
        let task = [
            ("Action", "Register-Task"),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "1"),
            ("RedStone-Agent-Matching", "cheapest"),
        ];
        let task = say(&asker, &task, r#"{"say":"this is public"}"#).await;
        let about =
            [("Action", "Send-Result"), ("RedStone-Agent-Id", "A"), ("RedStone-Task-Id", &task)];
        let done = say(&wallet, &about, r#"{"said":"this too"}"#).await;
        let (input, output) =
            (self.canaries.payload("to-market"), self.canaries.payload("of-market"));
        let job = json!({"to": "clara:A", "skill": "clara.tweet", "budget": 1,
            "input": {"text": input}});
        let job = hub.post("/v1/jobs", Some(&requester.key), &job).await.expect(201).str("/id");
        let load = [("Action", "Load-Next-Assigned-Task"), ("RedStone-Agent-Id", "A")];
        say(&wallet, &load, "").await;
        let about =
            [("Action", "Send-Result"), ("RedStone-Agent-Id", "A"), ("RedStone-Task-Id", &job)];
        let delivered = say(&wallet, &about, &json!({ "text": output }).to_string()).await;
        let path = format!("/v1/jobs/{job}");
        eventually(async || hub.get(&path, Some(&requester.key)).await.text.contains(&output))
            .await;
        // Only the agent knows the id of its request for work, and so its answer.
        for message in [task, done, delivered] {
            self.note("message", message);
        }
        self.note("job", job);
    }

    /// Tasks at agents with servers of their own, each with credentials of another kind, and a push
    /// configuration with a token and credentials.
    async fn a2a(&mut self, hub: &Watched) {
        let name = json!({"name": "canary-client"});
        let client = self.issued_once(hub, "/a2a/agents", None, &name, "a client of a2a").await;
        let key = client.str("/api_key");
        let access = self.canaries.issue("an access token");
        for auth in [
            json!({"scheme": "bearer", "token": self.canaries.issue("a bearer token")}),
            json!({"scheme": "basic", "username": "u", "password": self.canaries.issue("a password")}),
            json!({"scheme": "header", "name": "x-key", "value": self.canaries.issue("a header")}),
            json!({"scheme": "oauth2", "token_url": "", "client_id": "c",
                "client_secret": self.canaries.issue("a client secret")}),
        ] {
            let puppet = Puppet::start().await;
            let (mut auth, scheme) =
                (auth.clone(), auth["scheme"].as_str().expect("a text").to_owned());
            if scheme == "oauth2" {
                auth["token_url"] = puppet.url.clone().into();
                let answer = json!({"access_token": access, "token_type": "Bearer"});
                puppet.fault_of("", Fault::Text("application/json", answer.to_string()));
            }
            let agent = format!("canary-{scheme}");
            let body = json!({"name": agent, "card_url": puppet.card_url(), "auth": auth});
            self.issued_once(hub, "/a2a/agents", None, &body, &agent).await;
            self.note("a2a agent", &agent);
            let (input, output) = (self.canaries.payload("message"), self.canaries.payload("part"));
            let push = json!({"id": "hook", "token": self.canaries.issue("a push token"),
                "url": format!("{}/{}", self.endpoint.url, self.canaries.payload("hook")),
                "authentication": {"scheme": "Bearer",
                    "credentials": self.canaries.issue("push credentials")}});
            let send = json!({"message": text_message("m", &input),
                "configuration": {"returnImmediately": true, "taskPushNotificationConfig": push}});
            let path = format!("/a2a/agents/{agent}");
            let call = rpc(1, "SendMessage", send);
            let sent = hub.post(&path, Some(&key), &call).await.expect(200);
            let task = sent.str("/result/task/id");
            let remote = puppet.task().await;
            puppet.complete(&remote, &output);
            let shown = format!("{path}/tasks/{task}");
            eventually(async || hub.get(&shown, Some(&key)).await.text.contains(&output)).await;
            eventually(async || {
                let got = self.endpoint.got();
                got.iter().any(|one| one.body.contains(&task) && one.body.contains("COMPLETED"))
            })
            .await;
            self.note("task", &task);
            self.note("job", task);
        }
    }
}
