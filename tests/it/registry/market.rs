//! A small market: a requester with money, a worker, and a job between them.

use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::{Value, json};

use crate::kit::{Agent, Reply, TestHub, eventually};

/// The worker's skill, for 0.10.
pub const SKILL: &str = "analyze_text";

/// A hub with a requester and a worker.
pub struct Market {
    pub hub: TestHub,
    /// Of owner `o1`, with 100.00.
    pub asking: Agent,
    /// Of owner `acme`, without credits; it polls.
    pub working: Agent,
    keyed: bool,
}

impl Market {
    /// On a hub that requires keys.
    pub async fn keyed(flags: &[(&str, &str)]) -> Self {
        Self::on(TestHub::serve(flags).await, true).await
    }

    /// On a hub that accepts claimed identities, with the same money and no welcome grant.
    pub async fn open(flags: &[(&str, &str)]) -> Self {
        let poor = [("ledger.welcome_grant", "0")];
        let flags: Vec<_> = poor.iter().chain(flags).copied().collect();
        Self::on(TestHub::open(&flags).await, false).await
    }

    pub async fn both(flags: &[(&str, &str)]) -> [Self; 2] {
        [Self::keyed(flags).await, Self::open(flags).await]
    }

    async fn on(hub: TestHub, keyed: bool) -> Self {
        let asking = hub.orchestrator("o1").await;
        let working = hub.agent("acme", SKILL, "0.10", None).await;
        hub.grant("o1", "100.00").await;
        Self { hub, asking, working, keyed }
    }

    /// An agent's credential: its key, or nothing on an open hub.
    pub fn key<'a>(&self, agent: &'a Agent) -> Option<&'a str> {
        self.keyed.then_some(agent.key.as_str())
    }

    /// Another worker, of `globex`, with an endpoint.
    pub async fn endpoint(&self, url: &str) -> Agent {
        self.hub.agent("globex", SKILL, "0.10", Some(url)).await
    }

    /// Posts a job for a worker with a budget of 0.15, and these further members.
    pub async fn ask(&self, worker: &Agent, more: Value) -> Reply {
        let mut body = json!({
            "orchestrator_id": self.asking.id, "skill_name": SKILL,
            "input_data": {"text": "hello"}, "budget": 0.15,
        });
        merge(&mut body, more);
        let path = format!("/registry/agents/{}/jobs", worker.id);
        self.hub.post(&path, self.key(&self.asking), &body).await
    }

    /// The id of a job that now waits for the polling worker.
    pub async fn pending(&self) -> String {
        self.ask(&self.working, json!({})).await.expect(202).str("/job_id")
    }

    /// The work that waits for an agent, as it fetches it.
    pub async fn fetch(&self, agent: &Agent) -> Vec<Value> {
        let path = format!("/registry/agents/{}/jobs?status=PENDING", agent.id);
        let reply = self.hub.get(&path, self.key(agent)).await.expect(200);
        reply.at("/jobs").as_array().expect("a list").clone()
    }

    /// The path of the callback URL for late results of a job.
    pub async fn callback(&self, agent: &Agent, job: &str) -> String {
        let work = self.fetch(agent).await;
        let found = work.iter().find(|one| one["job_id"] == job).expect("the job is there");
        self.path_of(found["callback_url"].as_str().expect("an address"))
    }

    /// A URL of this hub without its origin.
    pub fn path_of(&self, url: &str) -> String {
        url.strip_prefix(&self.hub.url).expect("an address of this hub").to_owned()
    }

    /// A result of the polling worker.
    pub async fn report(&self, body: &Value) -> Reply {
        self.hub.post("/registry/results", self.key(&self.working), body).await
    }

    /// The job as its requester sees it.
    pub async fn shown(&self, job: &str) -> Reply {
        self.hub.get(&format!("/registry/jobs/{job}"), self.key(&self.asking)).await
    }

    /// The balances of both owners: available and held of `o1`, available of `acme`.
    pub async fn accounts(&self) -> [String; 3] {
        let ((balance, held), (earned, _)) =
            (self.hub.balance("o1").await, self.hub.balance("acme").await);
        [balance, held, earned]
    }

    /// Waits until no delivery is pending.
    pub async fn quiet(&self) {
        quiet(&self.hub).await;
    }

    pub async fn stop(self) {
        self.hub.stop().await;
    }
}

/// Waits until no delivery of this hub is pending.
pub async fn quiet(hub: &TestHub) {
    eventually(async || hub.engine.with_world(|world| world.deliveries().count()) == 0).await;
}

/// A successful result with every field.
pub fn success(job: &str, agent: &Agent, cost: &str) -> Value {
    let cost: Value = serde_json::from_str(cost).expect("a number");
    json!({
        "job_id": job, "agent_id": agent.id, "status": "SUCCESS", "output_data": {"entities": []},
        "execution_cost": cost, "execution_time_ms": 1250, "error_message": null,
        "timestamp_utc": "2026-02-11T14:15:09Z",
    })
}

/// A failure with every field.
pub fn failure(job: &str, agent: &Agent, code: Option<&str>) -> Value {
    json!({
        "job_id": job, "agent_id": agent.id, "status": "FAILURE", "output_data": null,
        "execution_cost": 0, "execution_time_ms": 3, "error_message": "it broke", "error_code": code,
        "timestamp_utc": "2026-02-11T14:15:09Z",
    })
}

/// Merges the members of the second into the first.
pub fn merge(body: &mut Value, more: Value) {
    let (Value::Object(members), Value::Object(more)) = (body, more) else {
        panic!("both must be objects")
    };
    members.extend(more);
}

/// An unused UUID.
pub fn fresh_id() -> String {
    OsRandom.new_uuid().to_string()
}
