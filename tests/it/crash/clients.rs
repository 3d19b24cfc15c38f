//! The clients: some register, some pay, some hire and cancel, one works. Each records an operation
//! before it sends it, and the answer.

use std::sync::Arc;

use rialto_engine::random::{OsRandom, RandomSource};
use serde_json::{Value, json};

use super::Dice;
use super::book::{Book, Fate, Job, Payment};
use crate::kit::{Agent, http, operator_key};

pub const SKILL: &str = "analyze_text";
/// Starting balance of payer and requester, in cents.
pub const STARTING_CREDITS: u64 = 100_000_000;
pub const BUDGET: u64 = 15;
pub const PRICE: u64 = 10;

/// The agents of the test.
#[derive(Clone)]
pub struct Cast {
    pub http: reqwest::Client,
    pub payer: Agent,
    pub requester: Agent,
    pub worker: Agent,
}

/// One caller at one hub.
pub struct Line<'a> {
    http: &'a reqwest::Client,
    url: &'a str,
}

/// A complete response; a partial one counts as none.
pub type Told = Option<(u16, String)>;

impl<'a> Line<'a> {
    pub fn new(http: &'a reqwest::Client, url: &'a str) -> Self {
        Self { http, url }
    }

    pub async fn post(&self, path: &str, key: Option<&str>, body: &Value) -> Told {
        let request = self.http.post(format!("{}{path}", self.url)).body(body.to_string());
        Self::whole(key, request).await
    }

    pub async fn get(&self, path: &str, key: Option<&str>) -> Told {
        Self::whole(key, self.http.get(format!("{}{path}", self.url))).await
    }

    async fn whole(key: Option<&str>, request: reqwest::RequestBuilder) -> Told {
        let request = match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        };
        let answer = request.send().await.ok()?;
        let status = answer.status().as_u16();
        // A hub that stops leaves it open whether the operation took effect.
        let is_stopping = status == 503;
        Some((status, answer.text().await.ok()?)).filter(|_| !is_stopping)
    }
}

fn fresh_id() -> String {
    OsRandom.new_uuid().to_string()
}

pub fn cents(amount: u64) -> Value {
    serde_json::from_str(&format!("{}.{:02}", amount / 100, amount % 100)).expect("a number")
}

pub fn registration(id: &str) -> Value {
    json!({"agent_id": id, "agent_name": "n", "owner_id": format!("owner {id}"),
        "skills": [{"skill_name": id, "cost_per_call": 0.10}]})
}

pub fn payment(id: &str, amount: u64) -> Value {
    json!({"transfer_id": id, "from_owner": "payer", "to_owner": "payee", "amount": cents(amount)})
}

pub fn job(cast: &Cast, id: &str) -> Value {
    json!({"job_id": id, "agent_id": cast.worker.id, "orchestrator_id": cast.requester.id,
        "skill_name": SKILL, "input_data": {"text": id}, "budget": cents(BUDGET)})
}

pub fn result(cast: &Cast, id: &str, good: bool) -> Value {
    match good {
        true => json!({"job_id": id, "agent_id": cast.worker.id, "status": "SUCCESS",
            "output_data": {"echo": id}, "execution_cost": cents(PRICE), "execution_time_ms": 1}),
        false => {
            json!({"job_id": id, "agent_id": cast.worker.id, "status": "FAILURE", "error_message": id})
        }
    }
}

impl Cast {
    /// Registers all agents and grants their credits.
    pub async fn assemble(url: &str) -> Self {
        let http = http();
        let line = Line::new(&http, url);
        let mut agents = Vec::new();
        for (owner, skills) in [
            ("payer", json!([])),
            ("requester", json!([])),
            ("worker", json!([{"skill_name": SKILL, "cost_per_call": cents(PRICE)}])),
            ("payee", json!([])),
        ] {
            let body = json!({"agent_name": owner, "owner_id": owner, "skills": skills});
            let (status, text) = line.post("/register", None, &body).await.expect("an answer");
            assert_eq!(status, 201, "{text}");
            let made: Value = serde_json::from_str(&text).expect("JSON");
            let word = |name: &str| made[name].as_str().expect("text").to_owned();
            agents.push(Agent {
                id: word("agent_id"),
                key: word("api_key"),
                owner: owner.to_owned(),
            });
        }
        for owner in ["payer", "requester"] {
            let body = json!({"owner_id": owner, "initial_balance": cents(STARTING_CREDITS)});
            let told =
                line.post("/accounts", Some(&operator_key()), &body).await.expect("an answer");
            assert_eq!(told.0, 201, "{}", told.1);
        }
        let [payer, requester, worker, _] = agents.try_into().expect("four of them");
        Self { http, payer, requester, worker }
    }
}

/// The running clients of one round.
pub struct Load(Vec<tokio::task::JoinHandle<()>>);

impl Load {
    /// Waits until all of them have noticed that the hub is gone.
    pub async fn over(self) {
        super::all_done(self.0).await;
    }
}

/// Starts all clients; each runs until its hub no longer answers.
pub fn load(url: &str, cast: &Cast, book: &Arc<Book>, seed: u64) -> Load {
    let one = |work: fn(Role) -> Working, number: u64| {
        let dice = Dice(seed.wrapping_add(number));
        tokio::spawn(work(Role {
            url: url.to_owned(),
            cast: cast.clone(),
            book: book.clone(),
            dice,
        }))
    };
    Load(vec![
        one(|role| Box::pin(register(role)), 1),
        one(|role| Box::pin(pay(role)), 2),
        one(|role| Box::pin(pay(role)), 3),
        one(|role| Box::pin(hire(role)), 4),
        one(|role| Box::pin(work(role)), 5),
    ])
}

type Working = std::pin::Pin<Box<dyn Future<Output = ()> + Send>>;

/// What a client works with.
struct Role {
    url: String,
    cast: Cast,
    book: Arc<Book>,
    dice: Dice,
}

async fn register(role: Role) {
    let line = Line::new(&role.cast.http, &role.url);
    loop {
        let id = fresh_id();
        role.book.open().agents.insert(id.clone(), Fate::Unknown);
        let Some((status, text)) = line.post("/register", None, &registration(&id)).await else {
            return;
        };
        assert_eq!(status, 201, "{text}");
        let made: Value = serde_json::from_str(&text).expect("JSON");
        let key = made["api_key"].as_str().expect("a key").to_owned();
        role.book.open().agents.insert(id, Fate::Done(key));
    }
}

async fn pay(mut role: Role) {
    let line = Line::new(&role.cast.http, &role.url);
    loop {
        let (id, amount) = (fresh_id(), 1 + role.dice.roll(9));
        let unknown = Payment { cents: amount, fate: Fate::Unknown };
        role.book.open().payments.insert(id.clone(), unknown);
        let told = line.post("/transfer", Some(&role.cast.payer.key), &payment(&id, amount)).await;
        let Some((status, text)) = told else { return };
        assert_eq!(status, 200, "{text}");
        role.book.open().payments.insert(id, Payment { cents: amount, fate: Fate::Done(text) });
    }
}

async fn hire(mut role: Role) {
    let line = Line::new(&role.cast.http, &role.url);
    let key = role.cast.requester.key.clone();
    loop {
        let id = fresh_id();
        let page = Job { posted: Fate::Unknown, reported: None, cancelled: None, ended: None };
        role.book.open().jobs.insert(id.clone(), page);
        let told = line.post("/jobs", Some(&key), &job(&role.cast, &id)).await;
        let Some((status, text)) = told else { return };
        // A quick worker may end the job before the response of the post arrives.
        assert!([200, 202].contains(&status), "{status} {text}");
        write(&role.book, &id, |page| page.posted = Fate::Done(text));
        if role.dice.roll(4) == 0 {
            write(&role.book, &id, |page| page.cancelled = Some(Fate::Unknown));
            let told = line.post(&format!("/jobs/{id}/cancel"), Some(&key), &json!({})).await;
            match told {
                None => return,
                Some((200, _)) => {
                    write(&role.book, &id, |page| page.cancelled = Some(Fate::Done(())))
                }
                // The worker was faster.
                Some((409, _)) => write(&role.book, &id, |page| page.cancelled = None),
                Some((status, text)) => panic!("{status} {text}"),
            }
        }
    }
}

async fn work(mut role: Role) {
    let line = Line::new(&role.cast.http, &role.url);
    let key = role.cast.worker.key.clone();
    let path = format!("/registry/agents/{}/jobs?wait=1", role.cast.worker.id);
    loop {
        let Some((status, text)) = line.get(&path, Some(&key)).await else { return };
        assert_eq!(status, 200, "{text}");
        let work: Value = serde_json::from_str(&text).expect("JSON");
        for one in work["jobs"].as_array().expect("a list") {
            let id = one["job_id"].as_str().expect("an id").to_owned();
            // A report from before the last crash is repeated, not changed.
            let said = role.book.open().jobs.get(&id).and_then(|page| page.reported.clone());
            let good = said.map_or_else(|| role.dice.roll(4) > 0, |(good, _)| good);
            write(&role.book, &id, |page| page.reported = Some((good, Fate::Unknown)));
            let told = line.post("/results", Some(&key), &result(&role.cast, &id, good)).await;
            let Some((status, text)) = told else { return };
            assert_eq!(status, 200, "{text}");
            write(&role.book, &id, |page| page.reported = Some((good, Fate::Done(()))));
        }
    }
}

fn write(book: &Book, id: &str, change: impl FnOnce(&mut Job)) {
    // A job is recorded before its post, so it is there even without a response.
    change(book.open().jobs.get_mut(id).expect("the job was written down before it was sent"));
}
