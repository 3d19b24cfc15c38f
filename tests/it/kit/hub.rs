//! A hub in this process, on a free port, in its own directory.

use std::sync::Arc;

use rialto_core::time::Millis;
use rialto_engine::Engine;
use rialto_hub::app::{Hub, Options};
use rialto_hub::config::{LoadedConfig, Profile};
use rialto_hub::shutdown::{Shutdown, ShutdownTrigger};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MovedClock, Reply, http, in_time};

/// A throw-away operator key: a valid checksum over arbitrary digits.
pub fn operator_key() -> String {
    let key =
        rialto_engine::keys::Key::from_random(rialto_engine::keys::KeyPrefix::OPERATOR, [0x5a; 20]);
    key.expose().to_owned()
}

/// A running hub and how to call it.
pub struct TestHub {
    pub url: String,
    pub engine: Engine,
    pub operator: String,
    pub dir: TempDir,
    pub http: reqwest::Client,
    pub clock: Arc<MovedClock>,
    trigger: ShutdownTrigger,
    running: tokio::task::JoinHandle<Result<(), String>>,
}

/// A registered agent and its key.
#[derive(Clone, Debug)]
pub struct Agent {
    pub id: String,
    pub key: String,
    pub owner: String,
}

impl TestHub {
    /// A hub that requires keys, as `rialto serve` runs it, except for the flags. Loopback
    /// endpoints are allowed, since the tests' own workers are there.
    pub async fn serve(flags: &[(&str, &str)]) -> Self {
        Self::start(Profile::Serve, flags, TempDir::new().expect("a directory")).await
    }

    /// A hub that accepts claimed identities, as `rialto dev` runs it.
    pub async fn open(flags: &[(&str, &str)]) -> Self {
        Self::start(Profile::Dev, flags, TempDir::new().expect("a directory")).await
    }

    pub async fn start(posture: Profile, flags: &[(&str, &str)], dir: TempDir) -> Self {
        let own = [
            ("http.listen", "127.0.0.1:0".to_owned()),
            ("data.dir", dir.path().display().to_string()),
            ("egress.allow", "127.0.0.0/8,::1".to_owned()),
            ("egress.per_host_per_minute", "0".to_owned()),
            ("limits.registrations_per_minute", "0".to_owned()),
            ("limits.registrations_per_minute_total", "0".to_owned()),
            ("limits.writes_per_minute", "0".to_owned()),
            ("limits.read_bytes_per_minute", "0".to_owned()),
            ("limits.wrong_keys_per_minute", "0".to_owned()),
            // The tests' clients are configured with the published process id.
            ("clara.process_id", rialto_protocols::clara::PROCESS.to_owned()),
        ];
        let given = flags.iter().map(|(key, value)| (*key, (*value).to_owned()));
        let all: Vec<(&str, String)> = own.into_iter().chain(given).collect();
        let loaded = LoadedConfig::load(posture, None, std::iter::empty(), &all)
            .expect("a good configuration");
        let (trigger, shutdown) = Shutdown::manual();
        let operator = operator_key();
        let clock = MovedClock::start();
        let options = Options {
            operator_key: Some(operator.clone()),
            clock: Some(clock.clone()),
            ..Options::default()
        };
        let hub = Hub::start(&loaded.config, options, shutdown.clone()).await.expect("a hub");
        // Whatever its public URL is, the tests reach it by its address.
        let (url, engine) = (format!("http://{}", hub.address), hub.engine.clone());
        let running = tokio::spawn(async move { hub.run(&shutdown).await });
        let http = http();
        Self { url, engine, operator, dir, http, clock, trigger, running }
    }

    /// Advances the hub's clock, and runs what became due.
    pub fn pass(&self, span: Millis) {
        self.clock.advance(span);
        self.engine.wake_lane();
    }

    /// Shuts the hub down and returns its directory.
    pub async fn stop(self) -> TempDir {
        self.trigger.trigger();
        in_time(self.running).await.expect("no panic").expect("a clean shutdown");
        self.dir
    }

    /// Shuts it down and starts another on the same data.
    pub async fn restart(self, posture: Profile, flags: &[(&str, &str)]) -> Self {
        let dir = self.stop().await;
        Self::start(posture, flags, dir).await
    }

    /// Any call.
    pub async fn call(
        &self,
        method: &str,
        path: &str,
        key: Option<&str>,
        body: Option<&str>,
    ) -> Reply {
        let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.body(body.to_owned());
        }
        Reply::to(request).await
    }

    pub async fn get(&self, path: &str, key: Option<&str>) -> Reply {
        self.call("GET", path, key, None).await
    }

    pub async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Reply {
        self.call("POST", path, key, Some(&body.to_string())).await
    }

    /// Registers an agent with one skill; without an endpoint it polls.
    pub async fn agent(
        &self,
        owner: &str,
        skill: &str,
        price: &str,
        endpoint: Option<&str>,
    ) -> Agent {
        let price: Value = serde_json::from_str(price).expect("a number");
        let mut body = json!({
            "agent_name": format!("{owner}'s agent"), "owner_id": owner, "version": "0.1",
            "skills": [{"skill_name": skill, "cost_per_call": price}],
        });
        if let Some(endpoint) = endpoint {
            body["api_endpoint"] = endpoint.into();
        }
        self.enrol(&body, None).await
    }

    /// An agent that only requests jobs.
    pub async fn orchestrator(&self, owner: &str) -> Agent {
        let body = json!({"agent_name": format!("{owner}'s orchestrator"), "owner_id": owner, "skills": []});
        self.enrol(&body, None).await
    }

    pub async fn enrol(&self, body: &Value, key: Option<&str>) -> Agent {
        let reply = self.post("/registry/register", key, body).await.expect(201);
        let owner = body["owner_id"].as_str().unwrap_or_default().to_owned();
        Agent { id: reply.str("/agent_id"), key: reply.str("/api_key"), owner }
    }

    /// Grants an owner credits, as the operator.
    pub async fn grant(&self, owner: &str, amount: &str) {
        let amount: Value = serde_json::from_str(amount).expect("a number");
        let body = json!({"owner_id": owner, "initial_balance": amount});
        self.post("/registry/accounts", Some(&self.operator), &body).await.expect(201);
    }

    /// An owner's available balance and escrow, as printed.
    pub async fn balance(&self, owner: &str) -> (String, String) {
        let reply = self
            .get(&format!("/registry/accounts/{owner}"), Some(&self.operator))
            .await
            .expect(200);
        (digits(&reply.text, "balance"), digits(&reply.text, "held"))
    }

    /// A job for a named agent.
    pub async fn hire(&self, by: &Agent, worker: &Agent, skill: &str, budget: &str) -> Reply {
        let budget: Value = serde_json::from_str(budget).expect("a number");
        let body = json!({
            "orchestrator_id": by.id, "skill_name": skill, "input_data": {"text": "hello"}, "budget": budget,
        });
        self.post(&format!("/registry/agents/{}/jobs", worker.id), Some(&by.key), &body).await
    }

    /// A worker's report about a job.
    pub async fn report(&self, worker: &Agent, job: &str, status: &str, cost: &str) -> Reply {
        let cost: Value = serde_json::from_str(cost).expect("a number");
        let mut body = json!({"job_id": job, "agent_id": worker.id, "status": status,
            "execution_cost": cost, "execution_time_ms": 12});
        match status {
            "SUCCESS" => body["output_data"] = json!({"done": true}),
            _ => body["error_message"] = "it broke".into(),
        }
        self.post("/registry/results", Some(&worker.key), &body).await
    }

    /// An agent's score, as printed.
    pub async fn score(&self, agent: &Agent) -> String {
        let reply = self.get(&format!("/registry/reputation/{}", agent.id), None).await.expect(200);
        digits(&reply.text, "score")
    }
}

/// The digits of a number member, verbatim.
pub fn digits(text: &str, member: &str) -> String {
    let start =
        text.find(&format!("\"{member}\":")).unwrap_or_else(|| panic!("no {member} in {text}"));
    let rest = &text[start + member.len() + 3..];
    rest.chars().take_while(|c| c.is_ascii_digit() || ".-eE+".contains(*c)).collect()
}
