//! A hub with agents of three protocols that obey the first word of a message, and a client.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::json;

use super::{OF_TEXT, folder, python};
use crate::kit::{Lines, TestHub};
use crate::relay::kit::{Event, Peer, turn};
use crate::runtime::kit::{Place, Runtime};

/// Which SDK the agent with a server of its own uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkerVersion {
    /// a2a-sdk 0.3.26.
    Old,
    /// a2a-sdk 1.3.0.
    New,
}

/// An agent, and what clients do with it.
pub struct SceneAgent {
    pub url: String,
    pub groups: &'static str,
}

impl SceneAgent {
    /// Version 0.3 has no list of tasks.
    pub fn groups_of_0_3(&self) -> String {
        self.groups.replace(",list", "")
    }
}

/// A server with an SDK. It is killed when dropped.
pub struct SdkServer {
    child: Child,
    pub url: String,
}

impl SdkServer {
    pub fn start(version: WorkerVersion, more: &[&str]) -> Self {
        let mut command = match version {
            WorkerVersion::Old => python("python-0.3", "worker_0_3.py"),
            WorkerVersion::New => python("python-1.3", "worker_1_3.py"),
        };
        let child = command.args(more).stdout(Stdio::piped()).spawn().expect("Python starts");
        // Owned before the wait, so that it is killed even if the wait fails.
        let mut server = Self { child, url: String::new() };
        let mut lines = Lines::of(server.child.stdout.take());
        server.url = lines.next().expect("it prints its URL");
        server
    }

    pub fn card_url(&self) -> String {
        format!("{}/.well-known/agent-card.json", self.url)
    }
}

impl Drop for SdkServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub struct Scene {
    pub hub: TestHub,
    pub key: String,
    registry: String,
    relay: String,
    a2a: String,
    inbox: tokio::task::JoinHandle<()>,
    _runtime: Runtime,
    _place: Place,
    _server: SdkServer,
}

impl Scene {
    pub async fn build(version: WorkerVersion) -> Self {
        let hub = TestHub::serve(&[]).await;
        let server = SdkServer::start(version, &[]);
        let body = json!({"card_url": server.card_url(), "name": "sdk"});
        hub.post("/a2a/agents", None, &body).await.expect(201);
        let place = Place::new();
        let exec = format!("python3 {}", folder().join("worker_lines.py").display());
        let flags = ["--name", "lines", "--skill", "obey", "--price", "0", "--lines"];
        let flags = [&flags[..], &["--concurrency", "8", "--exec", &exec]].concat();
        let runtime = place.at_work(&hub, "said", &flags).await;
        let id = runtime.said("at_work").expect("an event")["agent_id"].clone();
        let peer = hub.join("obeying").await;
        let inbox = answer_inbox(&hub, peer.clone()).await;
        let key = hub.a2a_client("client").await.key;
        let at = |path: String| format!("{}{path}", hub.url);
        Self {
            registry: at(hub.a2a_path("registry", id.as_str().expect("an id"))),
            relay: at(hub.a2a_path("relay", &peer.id)),
            a2a: at("/a2a/agents/sdk".to_owned()),
            key,
            inbox,
            _runtime: runtime,
            _place: place,
            _server: server,
            hub,
        }
    }

    /// One agent of each protocol.
    pub fn agents(&self) -> [SceneAgent; 3] {
        let agent = |url: &str, groups| SceneAgent { url: url.to_owned(), groups };
        let a2a = agent(&self.a2a, "all");
        [agent(&self.registry, "all"), agent(&self.relay, OF_TEXT), a2a]
    }

    pub async fn stop(self) {
        self.inbox.abort();
        self.hub.stop().await;
    }
}

/// A relay agent that answers every message in its inbox.
async fn answer_inbox(hub: &TestHub, peer: Peer) -> tokio::task::JoinHandle<()> {
    let mut inbox = hub.inbox(&peer).await;
    let (http, url) = (hub.http.clone(), format!("{}/relay/messages", hub.url));
    let mut asked = Vec::new();
    tokio::spawn(async move {
        loop {
            let event = inbox.until("message").await;
            let conversation = event.data["envelope"]["conversation_id"].clone();
            let words: Vec<&str> = event.said().split_whitespace().collect();
            let (delay, reply, is_question) = match words[..] {
                _ if asked.contains(&conversation) => {
                    (0, format!("You said {}", event.said()), false)
                }
                ["ask", ..] => (0, "Which city?".to_owned(), true),
                ["slow", seconds, ..] => {
                    (seconds.parse().expect("digits"), "done".to_owned(), false)
                }
                _ => (0, event.said().to_owned(), false),
            };
            if is_question {
                asked.push(conversation);
            }
            let post = http.post(&url).bearer_auth(&peer.key);
            let body = reply_to(&peer, &event, &reply, is_question);
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_secs(delay)).await;
                // A late answer to a cancelled task is refused.
                let _ = post.body(body).send().await;
            });
        }
    })
}

fn reply_to(peer: &Peer, event: &Event, text: &str, is_question: bool) -> String {
    let envelope = &event.data["envelope"];
    let conversation = envelope["conversation_id"].as_str().expect("a conversation");
    let number = envelope["turn_number"].as_u64().expect("a number") + 1;
    let envelope = turn(&peer.id, text, conversation, number);
    json!({"receiver_id": event.data["sender_id"], "envelope": envelope, "question": is_question})
        .to_string()
}
