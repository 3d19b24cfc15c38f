//! The steps of one client: every kind of write a hub makes.

use rialto_protocols::agora::MessageType;
use rialto_protocols::kit::ans104::Item;
use serde_json::{Value, json};

use super::hub::{Caller, Request, Told};
use super::scene::{CLARA_AGENT, RESOURCE, SKILL, Scene, customer, finder, recorder, seeker};
use crate::agora::kit::{Said, now};
use crate::kit::operator_key;
use crate::openclaw::kit as claw;
use crate::relay::kit::turn;

/// Ids the client chooses; the same in every run, so that runs can be compared.
pub const NEWCOMER: &str = "00000000-0000-4000-8000-000000000001";
pub const TRANSFER: &str = "00000000-0000-4000-8000-000000000002";
pub const JOB: &str = "00000000-0000-4000-8000-000000000003";
pub const OTHER_JOB: &str = "00000000-0000-4000-8000-000000000004";
pub const ASKED: &str = "00000000-0000-4000-8000-000000000005";
pub const SOUGHT: &str = "sought";

/// One write, and the accepted answers to its repeat.
#[derive(Clone, Debug)]
pub struct Step {
    pub name: &'static str,
    pub request: Request,
    /// Besides any success: statuses that tell that it is a repeat.
    repeated: &'static [u16],
    /// A request made first, because the step needs an id that the hub chose.
    asks: Option<Request>,
}

/// The placeholder in paths and bodies for an id that the hub chose.
const CHOSEN: &str = "collaboration_id";

impl Step {
    fn new(name: &'static str, request: Request) -> Self {
        Self { name, request, repeated: &[], asks: None }
    }

    fn or(self, repeated: &'static [u16]) -> Self {
        Self { repeated, ..self }
    }

    /// Sends the step once.
    pub async fn say(&self, caller: &Caller, url: &str) -> Told {
        let Some(asks) = &self.asks else { return caller.send(url, &self.request).await };
        let (_, found) = caller.send(url, asks).await?;
        let found: Value = serde_json::from_str(&found).expect("JSON");
        let mut body: Value = serde_json::from_slice(&self.request.body).expect("JSON");
        body[CHOSEN] = found[CHOSEN].clone();
        let path = self.request.path.replace(CHOSEN, found[CHOSEN].as_str().expect("a name"));
        let body = body.to_string().into_bytes();
        caller.send(url, &Request { path, body, ..self.request.clone() }).await
    }

    /// Sends it again to a hub that may have executed it already.
    pub async fn repeat(&self, caller: &Caller, url: &str) {
        let (status, text) = self.say(caller, url).await.expect("an answer");
        let fine = (200..300).contains(&status) || self.repeated.contains(&status);
        assert!(fine, "{} repeated: {status} {text}", self.name);
    }
}

/// How far a client came, with every acknowledged answer.
#[derive(Debug, Default)]
pub struct Progress {
    pub acknowledged: Vec<String>,
    /// The first answer that was not a success, if there was one.
    pub refused: Option<(u16, String)>,
}

impl Progress {
    pub fn steps(&self) -> usize {
        self.acknowledged.len()
    }

    /// Keys issued to the client, which must be valid from then on.
    pub fn keys(&self) -> Vec<String> {
        let found = self.acknowledged.iter().filter_map(|text| {
            let told: Value = serde_json::from_str(text).ok()?;
            let key = told.get("api_key").or_else(|| told.get("key"))?;
            key.as_str().map(str::to_owned)
        });
        found.collect()
    }
}

/// Runs the script until a step is not acknowledged.
pub async fn play(caller: &Caller, url: &str, script: &[Step]) -> Progress {
    let mut progress = Progress::default();
    for step in script {
        match step.say(caller, url).await {
            Some((200..300, text)) => progress.acknowledged.push(text),
            other => {
                progress.refused = other;
                break;
            }
        }
    }
    progress
}

/// The script. Envelopes are signed now, and repeated verbatim.
pub fn script(scene: &Scene) -> Vec<Step> {
    let mut steps = Vec::new();
    steps.extend(registry(scene));
    steps.extend(relay(scene));
    steps.extend(agora());
    steps.extend(clara());
    steps.extend(openclaw(scene));
    steps.extend(keys(scene));
    steps
}

fn registry(scene: &Scene) -> Vec<Step> {
    let Scene { requester, worker, payer, .. } = scene;
    let newcomer = json!({"agent_id": NEWCOMER, "agent_name": "n", "owner_id": "newcomer",
        "skills": [{"skill_name": "new", "cost_per_call": 0.10}]});
    let grant = json!({"owner": "payee", "amount": 5, "create": true});
    let transfer = json!({"transfer_id": TRANSFER, "from_owner": "payer", "to_owner": "payee",
        "amount": 12.34});
    let job = |id: &str| {
        json!({"job_id": id, "agent_id": worker.id, "orchestrator_id": requester.id,
            "skill_name": SKILL, "input_data": {"text": id}, "budget": 0.15})
    };
    let result = json!({"job_id": JOB, "agent_id": worker.id, "status": "SUCCESS",
        "output_data": {"echo": JOB}, "execution_cost": 0.10, "execution_time_ms": 1});
    let (operator, asks) = (operator_key(), Some(requester.key.as_str()));
    let cancel = format!("/registry/jobs/{OTHER_JOB}/cancel");
    let grant = Request::post("/v1/operator/grants", Some(&operator), &grant);
    let grant = Request { once: Some("a grant".to_owned()), ..grant };
    let post = |path, key, body: &Value| Request::post(path, key, body);
    vec![
        Step::new("register", post("/registry/register", None, &newcomer)).or(&[409]),
        Step::new("grant", grant),
        Step::new("transfer", post("/registry/transfer", Some(&payer.key), &transfer)),
        Step::new("job", post("/registry/jobs", asks, &job(JOB))),
        Step::new("result", post("/registry/results", Some(&worker.key), &result)),
        Step::new("other job", post("/registry/jobs", asks, &job(OTHER_JOB))),
        Step::new("cancel", post(&cancel, asks, &json!({}))).or(&[409]),
    ]
}

fn relay(scene: &Scene) -> Vec<Step> {
    let Scene { alice, bob, .. } = scene;
    let message = json!({"receiver_id": bob.id, "envelope": turn(&alice.id, "hello", "talk", 1)});
    let ack = json!({"up_to": 1});
    vec![
        Step::new("message", Request::post("/relay/messages", Some(&alice.key), &message)),
        Step::new("ack", Request::post("/relay/agent/inbox/ack", Some(&bob.key), &ack)),
    ]
}

fn agora() -> Vec<Step> {
    let (seeker, finder, at) = (seeker(), finder(), now());
    let request = json!({"resource": RESOURCE, "params": {"q": "x"}, "budget": {"max": 6}});
    let to = Some(finder.public());
    let request = seeker.sign_at(SOUGHT, at, MessageType::Request, &request, to);
    let offer = json!({"request_id": SOUGHT, "cost": 5.25, "ttl": 60_000, "eta": 1_000});
    let offer = finder.sign_at("offered", at, MessageType::Offer, &offer, None);
    let accept = json!({"offer_id": "offered"});
    let accept = seeker.sign_at("accepted", at, MessageType::Accept, &accept, to);
    let result = json!({"request_id": SOUGHT, "status": "success", "data": {"n": 1}});
    let result = finder.sign_at("found", at, MessageType::Result, &result, None);
    let step = |name, said: Said| {
        let request = Request::post("/agora/envelopes", None, &Value::Null);
        Step::new(name, Request { body: said.text.into_bytes(), ..request })
    };
    vec![
        step("agora request", request),
        step("agora offer", offer),
        step("agora accept", accept),
        step("agora result", result),
    ]
}

fn clara() -> Vec<Step> {
    let protocol = ("Protocol", "C.L.A.R.A.");
    let task = customer().item(
        &[
            ("Action", "Register-Task"),
            protocol,
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "50"),
        ],
        b"{\"n\":1}",
    );
    let id = Item::read(&task).expect("an item").id().to_string();
    let [agent, about] = crate::clara::kit::about(CLARA_AGENT, &id);
    let result = recorder().item(&[("Action", "Send-Result"), protocol, agent, about], b"{}");
    let step = |name, body| {
        Step::new(name, Request { body, ..Request::post("/clara/mu", None, &Value::Null) })
    };
    vec![step("clara task", task), step("clara result", result)]
}

fn openclaw(scene: &Scene) -> Vec<Step> {
    let Scene { asker, helper, .. } = scene;
    let shared = json!({"request_id": ASKED, "responder_agent_id": helper.id,
        "correlation_id": ASKED, "timestamp": "2026-02-06T16:30:00Z"});
    let asked = json!({"requester_agent_id": asker.id, "capability_id": "sum",
        "input_data": {"a": 0.5}, "budget": 3, "idempotency_key": "k"});
    let result = json!({"result_status": "completed", "output_data": {"r": 1}});
    let path = "/openclaw/collaborations";
    let (asked, result) = (claw::with(&shared, asked), claw::with(&shared, result));
    let report = format!("{path}/{CHOSEN}/result");
    let report = Step::new("collaborated", Request::post(report, Some(&helper.key), &result));
    let asks = Some(Request::get(format!("{path}/{ASKED}"), Some(&asker.key)));
    vec![
        Step::new("collaboration", Request::post(path, Some(&asker.key), &asked)),
        Step { asks, ..report },
    ]
}

fn keys(scene: &Scene) -> Vec<Step> {
    let rotate = Request::post("/v1/keys/rotate", Some(&scene.careful.key), &Value::Null);
    let rotate = Request { once: Some("a key".to_owned()), body: Vec::new(), ..rotate };
    let leave = Request { method: "DELETE", ..Request::get("/v1/me", Some(&scene.leaver.key)) };
    vec![Step::new("rotate", rotate), Step::new("leave", leave).or(&[401, 404, 410])]
}
