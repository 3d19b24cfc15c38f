//! Test fixture: a hub without network, with an engine in memory, the operations of `/v1`, and agents with keys.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::response::Response;
use http::{Method, Request, StatusCode};
use http_body_util::BodyExt;
use rialto_core::agent::key::Holder;
use rialto_core::agent::{Liveness, Skill};
use rialto_core::alias::{Digest, Protocol};
use rialto_core::answer::Answer;
use rialto_core::command::{
    Actor, Command, JobRef, OpenJob, Registration, ReportResult, SendMessage,
};
use rialto_core::id::AgentId;
use rialto_core::job::{Job, Policy, Requester, Selection};
use rialto_core::money::Credits;
use rialto_core::time::{Millis, Timestamp};
use rialto_core::world::Rules;
use rialto_engine::Engine;
use rialto_engine::delivery::egress::{Egress, EgressSettings};
use rialto_engine::key_use;
use rialto_engine::keys::{Key, KeyPrefix};
use rialto_engine::store::memory::MemoryStore;
use rialto_engine::testkit::{ManualClock, start_engine};
use rialto_protocols::adapter::caller::Credential;
use rialto_protocols::adapter::shutdown::Shutdown;
use rialto_protocols::adapter::{Api, HubContext, HubContextParts, settings};
use rialto_protocols::registry;
use serde_json::Value;
use tokio::sync::watch;
use uuid::Uuid;

use super::api_doc::{ApiDoc, ReceivedAnswer};
use crate::edge::OperationTable;
use crate::v1::V1Api;

/// The API document.
pub static API_DOC: LazyLock<ApiDoc> =
    LazyLock::new(|| ApiDoc::new(&crate::app::openapi::openapi_document()));

/// 2026-02-11T12:00:00Z.
pub const DAWN: Timestamp = Timestamp(1_770_811_200_000);

pub struct Hub {
    pub context: HubContext,
    pub engine: Engine,
    pub clock: Arc<ManualClock>,
    operations: OperationTable,
    pub operator: String,
    /// Tells open responses that the hub stops.
    pub stop: watch::Sender<bool>,
}

#[derive(Clone)]
pub struct Agent {
    pub id: AgentId,
    pub key: String,
    pub native: String,
}

/// The body of a request, to be compared with the API document.
#[derive(Clone, Default)]
struct SentBody(String);

/// A response with its complete body.
pub struct Got {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub text: String,
    pub body: Value,
}

pub fn credits(text: &str) -> Credits {
    Credits::parse(text, 6).expect("test amounts are valid")
}

impl Hub {
    pub async fn start() -> Self {
        Self::over(MemoryStore::default(), Rules::default()).await
    }

    pub async fn over(store: MemoryStore, rules: Rules) -> Self {
        let clock = ManualClock::at(DAWN);
        let started = start_engine(Box::new(store), rules, clock.clone()).expect("memory is there");
        let engine = started.engine;
        // Test servers listen on loopback.
        let allow = vec!["127.0.0.0/8".parse().expect("a net")];
        let settings = EgressSettings { allow, ..EgressSettings::default() };
        let egress = Egress::new(settings).expect("good settings");
        let (stop, stopping) = watch::channel(false);
        let context = HubContext::new(HubContextParts {
            protocols: settings::open_with_defaults(engine.hub_secret()),
            write_limiter: Arc::new(rialto_protocols::adapter::Unlimited),
            engine: engine.clone(),
            egress: Arc::new(egress),
            hub_url: "http://hub.example".to_owned(),
            listens_on: ([127, 0, 0, 1], 1).into(),
            body_limit: 1 << 20,
            settings: Default::default(),
            running_requests: Default::default(),
            pending_waits: Default::default(),
            open_streams: Default::default(),
            endpoint_checks: Default::default(),
            shutdown: Shutdown::new(stopping),
        });
        let key = Key::from_random(KeyPrefix::OPERATOR, [9; 20]);
        let (holder, hash) = (Holder::Operator, key.hash());
        if engine.with_world(|world| world.key(&hash).is_none()) {
            let command =
                Command::IssueKey { holder, hash, retire_others: false, by_operator: false };
            engine.run(command).await.expect("a key");
        }
        let operator = key.expose().to_owned();
        let api: Arc<dyn Api> = Arc::new(V1Api::new(&context));
        let never = |_: &[_], _| unreachable!("no two operations have the same path");
        let operations = OperationTable::new(&[api], 1 << 20, Box::new(never));
        let operations = operations.expect("operations can be told apart");
        Self { context, operations, engine, clock, operator, stop }
    }

    /// Registers an agent, with a skill at a price if one is given.
    pub async fn enrol(&self, name: &str, owner: &str, skill: Option<(&str, &str)>) -> Agent {
        self.enrol_at(name, owner, skill, Some("https://secret.example/in?token=s3cret")).await
    }

    /// The same, with or without an endpoint.
    pub async fn enrol_at(
        &self,
        name: &str,
        owner: &str,
        skill: Option<(&str, &str)>,
        endpoint: Option<&str>,
    ) -> Agent {
        let skills = skill.map(|(name, price)| Self::skill(name, price));
        self.enrol_with(name, owner, skills.into_iter().collect(), endpoint).await
    }

    pub fn skill(name: &str, price: &str) -> Skill {
        Skill {
            name: name.to_owned(),
            price: credits(price),
            by_offer: false,
            expected_duration: None,
            needs_approval: false,
            category: None,
            native_name: None,
            description: "does it".to_owned(),
            input: r#"{"text":"string"}"#.to_owned(),
            output: "{}".to_owned(),
        }
    }

    /// Registers an agent with these skills.
    pub async fn enrol_with(
        &self,
        name: &str,
        owner: &str,
        skills: Vec<Skill>,
        endpoint: Option<&str>,
    ) -> Agent {
        let native = self.engine.random().new_uuid().to_string();
        let key = Key::from_random(KeyPrefix::AGENT, self.engine.random().new_key_bytes());
        let order = Registration {
            actor: Actor::OpenRegistration,
            home: registry::ID,
            native_id: native.clone(),
            aliases: Vec::new(),
            owner: owner.to_owned(),
            name: name.to_owned(),
            endpoint: endpoint.map(str::to_owned),
            liveness: Liveness::Always,
            skills,
            terms: Default::default(),
            status: None,
            card: r#"{"card":"s3cret"}"#.to_owned(),
            key: Some(key.hash()),
            rotate_key: false,
        };
        match self.engine.run(Command::Register(Box::new(order))).await {
            Ok(Answer::Agent { agent, .. }) => {
                Agent { id: agent.id, key: key.expose().to_owned(), native }
            }
            other => panic!("{other:?}"),
        }
    }

    pub async fn grant(&self, owner: &str, amount: &str) {
        let command = Command::Grant { name: owner.to_owned(), amount: credits(amount) };
        self.engine.run(command).await.expect("a grant");
    }

    /// Opens a job for the best agent.
    pub async fn open(&self, by: &Agent, skill: &str, budget: &str) -> Arc<Job> {
        self.hire(by, skill, budget, Selection::BestReputation).await
    }

    pub async fn hire(&self, by: &Agent, skill: &str, budget: &str, who: Selection) -> Arc<Job> {
        self.order(by, skill, budget, who, Policy::default()).await
    }

    /// The same, with a policy for when the first choice fails.
    pub async fn hire_by(&self, by: &Agent, skill: &str, who: Selection, to: Policy) -> Arc<Job> {
        self.order(by, skill, "0.50", who, to).await
    }

    async fn order(
        &self,
        by: &Agent,
        skill: &str,
        budget: &str,
        who: Selection,
        policy: Policy,
    ) -> Arc<Job> {
        let uuid = self.engine.random().new_uuid();
        let order = OpenJob {
            uuid,
            origin: registry::ID,
            foreign_id: format!("own-{uuid}"),
            content: Digest::of(&[uuid.as_bytes()]),
            requester: Requester::Agent(by.id),
            skill: skill.to_owned(),
            alternative_skills: Vec::new(),
            input: "{\n \"text\": 1.10 }".to_owned(),
            budget: credits(budget),
            price_step: rialto_core::price_step::PriceStep::FINEST,
            selection: who,
            unfit_agents: Vec::new(),
            policy,
            deadline: self.engine.now().plus(Millis::hours(24)),
            lease: Millis::minutes(10),
            wanted_by: None,
            priority: rialto_core::job::DEFAULT_PRIORITY,
            callback: Some("https://back.example/s3cret".to_owned()),
            input_error: None,
            meta: "{}".to_owned(),
            hops: 0,
            request_id: None,
        };
        match self.engine.run(Command::OpenJob(Box::new(order))).await {
            Ok(Answer::Job { job, .. }) => job,
            other => panic!("{other:?}"),
        }
    }

    pub async fn succeed(&self, job: &Job) {
        self.report(job, true).await;
    }

    pub async fn report(&self, job: &Job, ok: bool) {
        let said = ReportResult {
            job: JobRef::Id(job.id),
            by: job.worker().expect("it is assigned"),
            epoch: None,
            ok,
            is_final: true,
            knows_work: true,
            no_response: false,
            output: Some(r#"{"sum": 0.30}"#.to_owned()),
            cost: Credits::MAX,
            took: Some(Millis(7)),
            cause: None,
            text: None,
            meta: None,
            content: Digest::of(&[b"done"]),
        };
        self.engine.run(Command::ReportResult(Box::new(said))).await.expect("a report");
    }

    pub async fn say(&self, from: &Agent, to: &Agent, body: &str) {
        let order = SendMessage {
            from: Some(from.id),
            to: to.id,
            protocol: Protocol::new("v1"),
            body: body.to_owned(),
            url: None,
            first_try: Millis(0),
            identity: None,
            by_operator: false,
        };
        self.engine.run(Command::SendMessage(Box::new(order))).await.expect("a message");
    }

    pub fn request(method: Method, path: &str, key: &str, body: &str) -> Request<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !key.is_empty() {
            request = request.header("authorization", format!("Bearer {key}"));
        }
        request
            .extension(SentBody(body.to_owned()))
            .body(Body::from(body.to_owned()))
            .expect("a request")
    }

    pub async fn ask(&self, request: Request<Body>) -> Response {
        let (mut parts, body) = request.into_parts();
        // As the edge does.
        let key = Credential::of(&self.engine, &mut parts).key_use();
        let route = self.operations.find(&parts.method, parts.uri.path());
        let answer = async {
            match route.select(parts, body).await {
                Ok((operation, request)) => operation.api.call(operation, request).await,
                Err(refusal) => refusal,
            }
        };
        key_use::scope(key, answer).await
    }

    pub async fn send(&self, request: Request<Body>) -> Got {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let sent = request.extensions().get::<SentBody>().cloned().unwrap_or_default();
        let answer = self.ask(request).await;
        let (parts, body) = answer.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        let text = String::from_utf8(bytes.to_vec()).expect("text");
        let kind = parts.headers.get("content-type").and_then(|kind| kind.to_str().ok());
        let (method, status) = (method.as_str(), parts.status.as_u16());
        let (content_type, body) = (kind.unwrap_or_default(), Some(text.as_str()));
        API_DOC.check_answer(ReceivedAnswer {
            method: Some(method),
            path: &path,
            status,
            content_type,
            body,
        });
        API_DOC.check_request(method, &path, status, sent.0.as_bytes());
        let body = serde_json::from_str(&text).unwrap_or_default();
        Got { status: parts.status.as_u16(), headers: parts.headers, text, body }
    }

    pub async fn get(&self, path: &str, key: &str) -> Got {
        self.send(Self::request(Method::GET, path, key, "")).await
    }

    pub async fn post(&self, path: &str, key: &str, body: &str) -> Got {
        self.send(Self::request(Method::POST, path, key, body)).await
    }

    pub async fn delete(&self, path: &str, key: &str) -> Got {
        self.send(Self::request(Method::DELETE, path, key, "")).await
    }

    /// All items of a list, page by page.
    pub async fn all(&self, path: &str, key: &str, limit: usize) -> Vec<Value> {
        let join = if path.contains('?') { '&' } else { '?' };
        let (mut items, mut cursor) = (Vec::new(), String::new());
        for _ in 0..1_000 {
            let got = self.get(&format!("{path}{join}limit={limit}{cursor}"), key).await;
            assert_eq!(got.status, 200, "{}", got.text);
            let page = got.body["items"].as_array().expect("a page").clone();
            assert!(page.len() <= limit);
            items.extend(page);
            match got.body["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return items,
            }
        }
        panic!("the list does not end");
    }
}

impl Got {
    /// Checks that this is a problem with this status and code, in the right format.
    pub fn is_problem(&self, status: u16, code: &str) {
        assert_eq!(
            (self.status, self.body["code"].as_str()),
            (status, Some(code)),
            "{}",
            self.text
        );
        assert_eq!(self.headers["content-type"], "application/problem+json");
        assert_eq!(self.body["status"], status);
        assert_eq!(self.body["type"], format!("urn:rialto:problem:{code}"));
        assert!(self.body["retryable"].is_boolean() && self.body["title"].is_string());
        let waits = self.body["retry_after_seconds"].as_u64().map(|s| s.to_string());
        let header = self.headers.get("retry-after").map(|v| v.to_str().expect("digits"));
        assert_eq!(waits.as_deref(), header);
        if status == StatusCode::BAD_REQUEST {
            assert!(self.body["field"].is_string(), "{}", self.text);
            assert_ne!(self.body["example"], serde_json::json!({}), "{}", self.text);
        }
    }
}

/// A public id that does not exist.
pub fn nothing() -> Uuid {
    Uuid::from_u128(7)
}
