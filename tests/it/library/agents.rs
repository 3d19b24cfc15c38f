//! `rialto_client::Agent`: it registers, works, is found again, and leaves.

use std::sync::{Arc, Mutex};

use rialto_client::agent::hub::{AgentEvent, AgentRegistration, HubWorker, register_agent};
use rialto_client::agent::record::JobRecords;
use rialto_client::agent::{Concurrency, Handlers, Job, Outcome, Skill};
use rialto_client::registry::direct::Peer;
use rialto_client::registry::{self, Credits, JobSpec};
use rialto_client::{Agent, AgentError, Hub, JobRequest, KeyFile};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::kit::{ClosedPort, TestHub, eventually, in_time};

/// A running agent, and its events.
pub struct Running {
    told: Arc<Mutex<Vec<AgentEvent>>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), AgentError>>,
}

impl Running {
    pub fn start(agent: Agent) -> Self {
        let told: Arc<Mutex<Vec<AgentEvent>>> = Arc::default();
        let heard = Arc::clone(&told);
        let agent = agent.on_event(move |told| heard.lock().expect("sound").push(told));
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        Self { told, stop, task: tokio::spawn(agent.run(stopped)) }
    }

    /// Whether it emitted an event of this name.
    pub fn said(&self, name: &str) -> bool {
        self.told().iter().any(|told| format!("{told:?}").starts_with(name))
    }

    fn told(&self) -> Vec<AgentEvent> {
        self.told.lock().expect("sound").clone()
    }

    /// Its id at the hub, once it works.
    async fn id(&self) -> String {
        eventually(async || self.said("Started")).await;
        let id = |told| match told {
            AgentEvent::Started { agent_id, .. } => Some(agent_id),
            _ => None,
        };
        self.told().into_iter().rev().find_map(id).expect("it is at work")
    }

    pub async fn stop(self) -> Result<(), AgentError> {
        let _ = self.stop.send(());
        self.task.await.expect("no panic")
    }

    /// Aborts it, as a crash does.
    async fn crash(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

#[derive(serde::Deserialize)]
struct Terms {
    terms: Vec<i64>,
}

fn adder() -> Agent {
    let add = |input: Terms| async move {
        input.terms.into_iter().try_fold(0_i64, i64::checked_add).ok_or("that is too much")
    };
    Agent::new("Adder").typed_skill(Skill::new("add", "0.05").expect("a skill"), add)
}

/// A hub, and a requester with credits.
async fn hub_and_boss() -> (TestHub, Hub) {
    let hub = TestHub::serve(&[]).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "10.00").await;
    let boss = Hub::new(&hub.url).expect("a hub").with_key(&boss.key);
    (hub, boss)
}

async fn add(boss: &Hub, terms: &Value) -> rialto_client::JobView {
    hire(boss, &json!({ "terms": terms })).await
}

async fn hire(boss: &Hub, input: &Value) -> rialto_client::JobView {
    let wanted = JobRequest::new("add", input, "0.10").expect("an order");
    boss.hire(&wanted, std::time::Duration::from_secs(60)).await.expect("an answer")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_function_of_ones_own_types_is_an_agent() {
    let ((hub, boss), state) = (hub_and_boss().await, TempDir::new().expect("a directory"));
    let agent = adder().hub(&hub.url).state_path(state.path()).owner("adders");
    let running = Running::start(agent);
    running.id().await;
    let job = add(&boss, &json!([1, 2, 3])).await;
    assert_eq!(job.output::<Value>().expect("a sum"), json!({"result": 6}));
    assert_eq!(hub.balance("adders").await.0, "0.05");
    let job = add(&boss, &json!([i64::MAX, 1])).await;
    assert_eq!((job.state.as_str(), job.failure_reason()), ("failed", Some("that is too much")));
    let job = add(&boss, &json!(["one"])).await;
    let why = job.failure_reason().expect("a reason");
    assert!(
        why.starts_with("the input does not match the agent's input schema: invalid type"),
        "{why}"
    );
    running.stop().await.expect("it leaves");
    let found = hub.get("/registry/discover?skill=add", None).await.expect(200).json();
    assert_eq!(found["total"], 0, "{found}");
}

/// The idle pause of the agent is an hour here: if one job began it, the next would wait for ever.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_that_follow_each_other_are_taken_without_a_pause() {
    let ((hub, boss), state) = (hub_and_boss().await, TempDir::new().expect("a directory"));
    let echo = |job: Job| async move { Outcome::Done(job.input) };
    let shop = Handlers::builder().skill(Skill::new("add", "0.05").expect("a skill"), echo).build();
    let nobody = Hub::new(&hub.url).expect("a hub");
    let entry = AgentRegistration { name: "Echo", owner: "echoes", id: None, accepts: &[] };
    let enrolled = register_agent(&nobody, &entry, &shop).await.expect("registered");
    let records = JobRecords::open(state.path().join("jobs")).expect("a directory");
    let at_work = nobody.with_key(&enrolled.api_key);
    let post = HubWorker::new(at_work, shop, records, Arc::new(|_| {}))
        .idle_pause(std::time::Duration::from_secs(3_600));
    let (stop, stopped) = oneshot::channel::<()>();
    let working = tokio::spawn(post.run(async move {
        let _ = stopped.await;
    }));
    in_time(async {
        for n in 0..5 {
            let job = hire(&boss, &json!({ "n": n })).await;
            assert_eq!(job.output::<Value>().expect("an output"), json!({ "n": n }));
        }
    })
    .await;
    drop(stop);
    working.await.expect("no panic").expect("it leaves");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_the_same_after_a_crash_and_sits_alone() {
    let ((hub, boss), state) = (hub_and_boss().await, TempDir::new().expect("a directory"));
    let agent = || adder().hub(&hub.url).state_path(state.path());
    let running = Running::start(agent());
    let id = running.id().await;
    let second = agent().run(std::future::pending()).await;
    assert!(matches!(second, Err(AgentError::AlreadyRunning { .. })), "{second:?}");
    running.crash().await;
    let keys = KeyFile::load(&state.path().join("agent.key")).expect("a key file");
    assert_eq!((keys.agent_id, keys.hub), (Some(id.clone()), Some(hub.url.clone())));
    let again = Running::start(agent());
    assert_eq!(again.id().await, id);
    assert_eq!(add(&boss, &json!([1])).await.state, "completed");
    again.stop().await.expect("it leaves");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_is_not_there_is_waited_for_and_one_set_up_anew_gets_the_agent_again() {
    let state = TempDir::new().expect("a directory");
    let key = state.path().join("adder.key");
    let agent = |url: &str| adder().hub(url).state_path(state.path().join("seat")).key_file(&key);
    let closed = ClosedPort::take();
    let waiting = Running::start(agent(&closed.url));
    eventually(async || waiting.said("WaitingForHub")).await;
    waiting.stop().await.expect("nothing to leave");
    let (first, _) = hub_and_boss().await;
    let running = Running::start(agent(&first.url));
    running.id().await;
    running.crash().await;
    first.stop().await;
    let (second, boss) = hub_and_boss().await;
    let running = Running::start(agent(&second.url));
    running.id().await;
    assert_eq!(add(&boss, &json!([2, 2])).await.state, "completed");
    running.stop().await.expect("it leaves");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_hub_does_not_take_is_an_error_and_stays_as_it_was() {
    let ((hub, _), state) = (hub_and_boss().await, TempDir::new().expect("a directory"));
    let running = Running::start(adder().hub(&hub.url).state_path(state.path()));
    running.id().await;
    running.crash().await;
    let path = state.path().join("agent.key");
    let kept = KeyFile::load(&path).expect("a key file");
    let wrong = KeyFile { agent_id: kept.agent_id, ..KeyFile::from_key("rk_wrong") };
    wrong.write(&path).expect("written");
    let ended = adder().hub(&hub.url).state_path(state.path()).run(std::future::pending()).await;
    assert!(matches!(ended, Err(AgentError::Call(_))), "{ended:?}");
    assert_eq!(KeyFile::load(&path).expect("a key file"), wrong);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_agent_works_for_a_hub_and_for_peers_with_the_same_hands() {
    let ((hub, boss), state) = (hub_and_boss().await, TempDir::new().expect("a directory"));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let echo = |job: Job| async move { Outcome::Done(format!(r#"{{"got":{}}}"#, job.input)) };
    let agent = Agent::new("Echo")
        .skill(Skill::new("add", "0.05").expect("a skill"), echo)
        .concurrency(Concurrency(1))
        .state_path(state.path())
        .hub(&hub.url)
        .listener(listener);
    let running = Running::start(agent);
    running.id().await;
    assert!(running.said("ServingPeers"));
    let order = JobSpec::new("add", "{}").budget(Credits::parse("0.05", 2).expect("an amount"));
    let peer = Peer::new(&url).expect("a URL");
    let standing = peer.hire(&order.build().expect("a job")).await.expect("an answer");
    assert_eq!(standing.outcome, registry::JobOutcome::Done(r#"{"got":{}}"#.to_owned()));
    let job = hire(&boss, &json!({"n": 1})).await;
    assert_eq!(job.output::<Value>().expect("an output"), json!({"got": {"n": 1}}));
    running.stop().await.expect("it leaves");
}

#[tokio::test]
async fn an_agent_without_hub_and_direct_address_reports_it() {
    let ended = adder().run(std::future::pending()).await;
    assert!(matches!(ended, Err(AgentError::NoHubOrListener)), "{ended:?}");
}
