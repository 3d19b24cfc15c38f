//! Streams while the store fails (R62, R67).

use std::sync::atomic::{AtomicBool, Ordering};

use axum::http::StatusCode;
use http_body_util::BodyExt;
use parking_lot::Mutex;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::answer::Answer;
use rialto_core::changes::{Changes, ExpiredRows};
use rialto_core::command::{Actor, Command, JobRef, Registration, ReportProgress};
use rialto_core::job::Selection;
use rialto_core::job::progress::ProgressUpdate;
use rialto_core::market::Markets;
use rialto_core::money::Credits;
use rialto_core::time::Millis;
use rialto_core::world::Rules;
use rialto_engine::clock::SystemClock;
use rialto_engine::delivery::egress::{Egress, EgressSettings};
use rialto_engine::random::OsRandom;
use rialto_engine::secret::HubSecret;
use rialto_engine::store::log::Place;
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::store::{BatchLog, PageQuery, Reader, Row, RowKey, Store, StoreError};
use rialto_engine::{Engine, EngineParts};
use serde_json::Value;

use super::*;
use crate::a2a::settings::{CardMembers, Settings};
use crate::a2a::translate::{Hire, LEASE, NewTask, open_task};
use crate::a2a::wire::Version;
use crate::a2a::wire::params::SendParams;
use crate::a2a::{A2aState, ID};
use crate::adapter::settings::Authentication;
use crate::adapter::{HubContext, HubContextParts, ProtocolContext, Unlimited};
use crate::kit::ijson;

/// A store in memory that cannot be read while it fails.
struct FailingStore {
    inner: MemoryStore,
    fails: Arc<AtomicBool>,
}

impl Store for FailingStore {
    fn load_hot_rows(&mut self) -> Result<Changes, StoreError> {
        self.inner.load_hot_rows()
    }

    fn log(&self) -> Arc<Mutex<dyn BatchLog>> {
        self.inner.log()
    }

    fn publish(&mut self, place: Option<Place>, changes: &Changes, expired: &ExpiredRows) {
        self.inner.publish(place, changes, expired);
    }

    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        Store::load(&mut self.inner, key)
    }

    fn open_reader(&self) -> Result<Box<dyn Reader>, StoreError> {
        let (inner, fails) = (self.inner.open_reader()?, self.fails.clone());
        Ok(Box::new(FailingReader { inner, fails }))
    }
}

struct FailingReader {
    inner: Box<dyn Reader>,
    fails: Arc<AtomicBool>,
}

impl Reader for FailingReader {
    fn load(&mut self, key: RowKey) -> Result<Option<Row>, StoreError> {
        match self.fails.load(Ordering::SeqCst) {
            true => Err(StoreError::Failed("as the test wants it".to_owned())),
            false => self.inner.load(key),
        }
    }

    fn load_page(&mut self, page: PageQuery) -> Result<Vec<Row>, StoreError> {
        self.inner.load_page(page)
    }
}

/// A task that is being worked on.
struct Scene {
    context: A2aContext,
    fails: Arc<AtomicBool>,
    client: AgentId,
    worker: AgentId,
    job: Arc<Job>,
    key: Key,
    _stop: tokio::sync::watch::Sender<bool>,
    shutdown: Shutdown,
}

impl Scene {
    async fn new() -> Self {
        let fails = Arc::<AtomicBool>::default();
        let store = FailingStore { inner: MemoryStore::default(), fails: fails.clone() };
        let secret = HubSecret::from_bytes([7; 32]);
        let started = Engine::start(EngineParts {
            store: Box::new(store),
            rules: Rules::default(),
            clock: Arc::new(SystemClock::start()),
            random: Arc::new(OsRandom),
            secret: secret.clone(),
            markets: Markets::new(),
            cluster: None,
        });
        let engine = started.expect("an engine").engine;
        let (stop, stopping) = tokio::sync::watch::channel(false);
        let shutdown = Shutdown::new(stopping);
        let hub = HubContext::new(HubContextParts {
            engine: engine.clone(),
            egress: Arc::new(Egress::new(EgressSettings::default()).expect("an egress")),
            hub_url: "https://hub.example".to_owned(),
            listens_on: ([127, 0, 0, 1], 1).into(),
            body_limit: 1 << 20,
            settings: Default::default(),
            protocols: Vec::new(),
            write_limiter: Arc::new(Unlimited),
            running_requests: Default::default(),
            pending_waits: Default::default(),
            open_streams: Default::default(),
            endpoint_checks: Default::default(),
            shutdown: shutdown.clone(),
        });
        let settings = Settings {
            authentication: Authentication::Key,
            card: CardMembers::Both,
            sync_wait: Millis::minutes(10),
            task_ttl: Millis::hours(24),
            refresh: Millis::hours(1),
            owner_proof: true,
            require_signed: false,
            trust_jku: Vec::new(),
        };
        let context = ProtocolContext::new(&hub, Arc::new(A2aState::new(settings, &secret)));
        let (client, key) = register(&engine, "client").await;
        let (worker, _) = register(&engine, "worker").await;
        engine.record_seen(worker);
        let job = open(&engine, client, worker).await;
        Self { context, fails, client, worker, job, key, _stop: stop, shutdown }
    }

    async fn progress(&self, text: &str) {
        let update = ProgressUpdate { text: Some(text.to_owned()), ..ProgressUpdate::default() };
        let (job, by) = (JobRef::Id(self.job.id), self.worker);
        let order = ReportProgress { job, by, epoch: None, update };
        self.context.engine.run(Command::ReportProgress(Box::new(order))).await.expect("it counts");
    }

    async fn stream(&self, binding: Binding, start: StreamStart) -> Response {
        let reader = StreamReader {
            agent: self.client,
            key: Some(self.key.clone()),
            binding,
            ends_at_question: false,
            history_length: None,
        };
        let job = self.context.engine.load_job(self.job.id).await.expect("a read").expect("a job");
        let meta = TaskMeta::of(&job).expect("a task");
        let (context, shutdown) = (self.context.clone(), self.shutdown.clone());
        TaskStream::new(context, reader, job, meta, start, shutdown).into_response().await
    }
}

async fn register(engine: &Engine, name: &str) -> (AgentId, Key) {
    let key =
        Key::from_random(rialto_engine::keys::KeyPrefix::AGENT, engine.random().new_key_bytes());
    let skill = Skill {
        name: "echo".to_owned(),
        price: Credits::ZERO,
        by_offer: false,
        expected_duration: None,
        needs_approval: false,
        description: String::new(),
        category: None,
        native_name: None,
        input: "{}".to_owned(),
        output: "{}".to_owned(),
    };
    let registration = Registration {
        actor: Actor::Anonymous,
        home: ID,
        native_id: name.to_owned(),
        aliases: Vec::new(),
        owner: format!("a2a:{name}"),
        name: name.to_owned(),
        endpoint: None,
        liveness: Liveness::ByPolling,
        skills: vec![skill],
        terms: Default::default(),
        status: None,
        card: "{}".to_owned(),
        key: Some(key.hash()),
        rotate_key: false,
    };
    let answer = engine.run(Command::Register(Box::new(registration))).await.expect("it is new");
    let Answer::Agent { agent, .. } = answer else { panic!("{answer:?}") };
    (agent.id, key)
}

async fn open(engine: &Engine, client: AgentId, worker: AgentId) -> Arc<Job> {
    let text = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]}}"#;
    let params = SendParams::read(&ijson::read(text.as_bytes()).expect("JSON"), Version::V1);
    let task = open_task(NewTask {
        id: engine.random().new_uuid(),
        requester: client,
        params: &params.expect("a message"),
        version: Version::V1,
        context_id: "c",
        extensions: Vec::new(),
        agent: Some(worker),
        skill: "echo".to_owned(),
        hire: &Hire::default(),
        budget: Credits::ZERO,
        selection: Selection::Direct(worker),
        deadline: engine.now().plus(Millis::hours(1)),
        lease: LEASE,
        unfit_agents: Vec::new(),
    });
    let answer = engine.run(Command::OpenJob(Box::new(task))).await.expect("it is taken");
    let Answer::Job { job, .. } = answer else { panic!("{answer:?}") };
    job
}

fn bindings() -> [Binding; 3] {
    let rpc = |version| Binding::JsonRpc { id: "7".to_owned(), version };
    [Binding::Http, rpc(Version::V1), rpc(Version::V03)]
}

/// The error that the store's failure is, in the form of a binding.
fn check_error(binding: &Binding, body: &str) {
    let body: Value = serde_json::from_str(body).expect("JSON");
    let (code, reason) = match binding {
        Binding::Http => (503, &body["error"]["details"][0]["reason"]),
        Binding::JsonRpc { version: Version::V1, .. } => {
            (-32053, &body["error"]["data"][0]["reason"])
        }
        Binding::JsonRpc { .. } => (-32053, &body["error"]["data"]["reason"]),
    };
    assert_eq!((&body["error"]["code"], reason), (&code.into(), &"UNAVAILABLE".into()), "{body}");
    let id = (*binding != Binding::Http).then_some(7);
    assert_eq!(body["id"].as_i64(), id, "{body}");
}

#[tokio::test]
async fn a_fault_in_the_middle_of_a_stream_is_an_error_event_and_its_end() {
    let scene = Scene::new().await;
    scene.progress("one").await;
    let mut streams = Vec::new();
    for binding in bindings() {
        let response = scene.stream(binding.clone(), StreamStart::After(0)).await;
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        streams.push((binding, response.into_body().into_data_stream()));
    }
    // What was read before it is sent.
    for (_, stream) in &mut streams {
        let first = stream.next().await.expect("events").expect("bytes");
        let first = String::from_utf8_lossy(&first).into_owned();
        assert!(
            first.starts_with("retry: 2000\nid: 1\ndata: {") && first.contains("one"),
            "{first}"
        );
    }
    scene.fails.store(true, Ordering::SeqCst);
    scene.progress("two").await;
    for (binding, stream) in &mut streams {
        let last = stream.next().await.expect("an event").expect("bytes");
        let last = String::from_utf8_lossy(&last).into_owned();
        let data =
            last.strip_prefix("event: error\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        check_error(binding, data.unwrap_or_else(|| panic!("{last}")));
        assert!(stream.next().await.is_none(), "the stream ends");
    }
}

#[tokio::test]
async fn a_fault_before_the_first_event_is_a_plain_error() {
    let scene = Scene::new().await;
    scene.progress("one").await;
    scene.fails.store(true, Ordering::SeqCst);
    for binding in bindings() {
        for start in [StreamStart::Snapshot(Moment::Now), StreamStart::After(1)] {
            let response = scene.stream(binding.clone(), start).await;
            assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
            assert_eq!(response.headers()["content-type"], "application/json");
            let body = response.into_body().collect().await.expect("a body").to_bytes();
            check_error(&binding, &String::from_utf8_lossy(&body));
        }
    }
}
