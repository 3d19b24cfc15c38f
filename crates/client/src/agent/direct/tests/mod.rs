//! One agent on its own listener, called by peers of every protocol over real HTTP.

mod agora;
mod all;
mod openclaw;
mod pending;
mod registry;
mod relay;
mod restart;
mod router;
mod same_ids;

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use super::PeerIdentity;
use crate::agent::{
    AgentError, Concurrency, Handlers, HandlersBuilder, Job, Outcome, Skill, StateDir,
};
use crate::agora::Seed;
use crate::worker::lock_ignoring_poison;

const TEXT: &str =
    r#"{"type":"object","required":["text"],"properties":{"text":{"type":"string"}}}"#;

/// When the agent shuts down.
type Stop = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A running agent.
struct Stand {
    url: String,
    works: Works,
    identity: PeerIdentity,
    stop: Arc<Notify>,
    served: JoinHandle<Result<(), AgentError>>,
}

/// The jobs its skills ran, and a gate that blocks some of them.
#[derive(Clone)]
struct Works {
    begun: Arc<AtomicUsize>,
    ids: Arc<Mutex<Vec<String>>>,
    gate: Arc<Semaphore>,
}

/// An HTTP response.
struct Reply {
    status: u16,
    headers: reqwest::header::HeaderMap,
    text: String,
}

impl Reply {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("no JSON: {}", self.text))
    }
}

impl Works {
    fn new() -> Self {
        Self { begun: Arc::default(), ids: Arc::default(), gate: Arc::new(Semaphore::new(0)) }
    }

    fn begun(&self) -> usize {
        self.begun.load(Ordering::SeqCst)
    }

    /// The ids of the jobs that came.
    fn ids(&self) -> Vec<String> {
        lock_ignoring_poison(&self.ids).clone()
    }

    /// Handlers for skills of all kinds: `shout` for 0.05, the others free.
    fn all(&self) -> HandlersBuilder {
        let free = |name| Skill::new(name, "0").expect("a skill");
        let setup = Handlers::builder().skill(shouting(), self.hand());
        let setup = setup.skill(free("echo"), self.hand()).skill(free("held"), self.hand());
        setup.skill(free("fail"), self.hand()).skill(free("decline"), self.hand())
    }

    fn hand(&self) -> impl crate::agent::Handler + use<> {
        let works = self.clone();
        move |job: Job| {
            let works = works.clone();
            async move { works.work(job).await }
        }
    }

    async fn work(&self, job: Job) -> Outcome {
        lock_ignoring_poison(&self.ids).push(job.id.clone());
        self.begun.fetch_add(1, Ordering::SeqCst);
        match job.skill.as_str() {
            "shout" => {
                let input: Value = job.input().expect("JSON");
                Outcome::from_output(
                    &json!({"text": input["text"].as_str().map(str::to_uppercase)}),
                )
            }
            "held" => {
                self.gate.acquire().await.expect("open").forget();
                Outcome::Done(job.input)
            }
            "fail" => Outcome::Failed("it broke".to_owned()),
            "decline" => Outcome::Declined("not today".to_owned()),
            _ => Outcome::Done(job.input),
        }
    }
}

fn shouting() -> Skill {
    let skill = Skill::new("shout", "0.05").expect("a skill").description("Says it louder");
    skill.input_schema(TEXT).and_then(|skill| skill.output_schema(TEXT)).expect("schemas")
}

fn identity() -> PeerIdentity {
    PeerIdentity::new("The Shouter", &Seed::from_bytes([9; 32]))
}

impl Stand {
    /// An agent with every skill.
    async fn new() -> Self {
        Self::with(|works| works.all()).await
    }

    /// An agent with the skill `shout` only.
    async fn shouter() -> Self {
        Self::with(|works| Handlers::builder().skill(shouting(), works.hand())).await
    }

    async fn with(setup: impl FnOnce(&Works) -> HandlersBuilder) -> Self {
        let works = Works::new();
        let shop = setup(&works).concurrency(Concurrency(2)).build();
        Self::open(works, |listener, stop| async move {
            Ok(super::serve(listener, shop, identity(), stop).await?)
        })
        .await
    }

    /// An agent with a state directory.
    async fn in_seat(state_dir: StateDir, works: &Works, setup: HandlersBuilder) -> Self {
        let shop = setup.concurrency(Concurrency(2)).build();
        Self::open(works.clone(), |listener, stop| async move {
            super::serve_with_state(&state_dir, listener, shop, identity(), stop).await
        })
        .await
    }

    async fn open<F>(works: Works, serve: impl FnOnce(TcpListener, Stop) -> F) -> Self
    where
        F: Future<Output = Result<(), AgentError>> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let stop = Arc::<Notify>::default();
        let stopped = Arc::clone(&stop);
        let stopped: Stop = Box::pin(async move { stopped.notified().await });
        let served = tokio::spawn(serve(listener, stopped));
        let stand = Self { url, works, identity: identity(), stop, served };
        // It has started once it responds: agora refuses envelopes signed before the start.
        stand.get("/").await;
        stand
    }

    /// Aborts it without a shutdown.
    async fn kill(self) {
        self.served.abort();
        let _ = self.served.await;
    }

    async fn get(&self, path: &str) -> Reply {
        self.send(reqwest::Method::GET, path, String::new(), &[]).await
    }

    async fn post(&self, path: &str, body: impl ToString) -> Reply {
        self.send(reqwest::Method::POST, path, body.to_string(), &[]).await
    }

    async fn send(
        &self,
        method: reqwest::Method,
        path: &str,
        body: String,
        headers: &[(&str, &str)],
    ) -> Reply {
        let client = reqwest::Client::builder().no_proxy().build().expect("a client");
        let mut request = client.request(method, format!("{}{path}", self.url)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let answer = request.send().await.expect("an answer");
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        Reply { status, headers, text: answer.text().await.expect("text") }
    }

    /// Waits until this many jobs have started.
    async fn begun(&self, count: usize) {
        while self.works.begun() < count {
            tokio::task::yield_now().await;
        }
    }
}
