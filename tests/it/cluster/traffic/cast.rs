//! The agents of a round, registered anew, so that a round can be checked by itself.

use serde_json::{Value, json};

use crate::cluster::client::{Client, Request};
use crate::cluster::history::Operation;
use crate::kit::{Agent, operator_key};
use crate::relay::kit::registration;

/// What each payer begins with, in cents.
pub const STARTING_CENTS: u64 = 1_000_000;
/// Price of a job, and what its requester offers, in cents.
pub const PRICE: u64 = 10;
pub const BUDGET: u64 = 15;

/// The agents of a round. Names begin with its number.
#[derive(Clone, Debug)]
pub struct Cast {
    pub senders: Vec<Agent>,
    /// Agents whose inbox is only written to by `senders`.
    pub receivers: Vec<Agent>,
    pub relay_sender: Agent,
    pub relay_receiver: Agent,
    /// Owners that pay each other.
    pub payers: Vec<Agent>,
    /// An owner of whose account only one client spends.
    pub spender: Agent,
    pub requester: Agent,
    pub workers: Vec<Agent>,
    pub skill: String,
    /// An agent whose keys are changed all the time.
    pub rotating: Agent,
    /// Jobs that had ever been opened when the round began.
    pub jobs_before: u64,
}

pub fn cents_value(cents: u64) -> Value {
    serde_json::from_str(&format!("{}.{:02}", cents / 100, cents % 100)).expect("a number")
}

impl Cast {
    /// Registers all agents of a round and grants their credits, each at any node.
    pub async fn assemble(client: &mut Client, round: usize) -> Self {
        let skill = format!("work-{round}");
        let name = |what: &str| format!("r{round} {what}");
        let mut senders = Vec::new();
        let mut receivers = Vec::new();
        let mut payers = Vec::new();
        for number in 0..2 {
            senders.push(register(client, &name(&format!("sender {number}")), json!([])).await);
            receivers.push(register(client, &name(&format!("receiver {number}")), json!([])).await);
        }
        for number in 0..3 {
            let payer = register(client, &name(&format!("payer {number}")), json!([])).await;
            grant(client, &payer.owner, STARTING_CENTS + number).await;
            payers.push(payer);
        }
        let spender = register(client, &name("spender"), json!([])).await;
        let requester = register(client, &name("requester"), json!([])).await;
        grant(client, &requester.owner, STARTING_CENTS).await;
        let skills = json!([{"skill_name": skill, "cost_per_call": cents_value(PRICE)}]);
        let mut workers = Vec::new();
        for number in 0..2 {
            let owner = name(&format!("worker {number}"));
            workers.push(register(client, &owner, skills.clone()).await);
        }
        let rotating = register(client, &name("rotating"), json!([])).await;
        let relay_sender = join(client, &format!("r{round}-sender")).await;
        let relay_receiver = join(client, &format!("r{round}-receiver")).await;
        let jobs_before = jobs_opened(client).await;
        Self {
            senders,
            receivers,
            relay_sender,
            relay_receiver,
            payers,
            spender,
            requester,
            workers,
            skill,
            rotating,
            jobs_before,
        }
    }

    /// The owners whose accounts the clients of this round move.
    pub fn owners(&self) -> Vec<String> {
        let agents = self.payers.iter().chain([&self.spender, &self.requester]);
        agents.chain(&self.workers).map(|agent| agent.owner.clone()).collect()
    }

    /// All agents whose inbox is compared in the end.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        let relay = [&self.relay_sender, &self.relay_receiver];
        let own = [&self.spender, &self.requester];
        let all = self.senders.iter().chain(&self.receivers).chain(&self.payers);
        all.chain(&self.workers).chain(relay).chain(own)
    }
}

/// Registers an agent of the registry. One that was registered without an answer is left behind.
pub async fn register(client: &mut Client, name: &str, skills: Value) -> Agent {
    for number in 1.. {
        let owner = if number == 1 { name.to_owned() } else { format!("{name} {number}") };
        let body = json!({"agent_name": owner, "owner_id": owner, "skills": skills});
        let made = enrol(client, "/registry/register", &body).await;
        let word = |name: &str| made.as_ref()?[name].as_str().map(str::to_owned);
        if let (Some(id), Some(key)) = (word("agent_id"), word("api_key")) {
            return Agent { id, key, owner };
        }
        client.pause(50).await;
    }
    unreachable!("there is always another name")
}

/// Registers an agent of the relay.
async fn join(client: &mut Client, name: &str) -> Agent {
    for number in 1.. {
        let id = format!("{name}-{number}@chorus");
        let made = enrol(client, "/relay/register", &registration(&id)).await;
        let word = |name: &str| made.as_ref()?["data"][name].as_str().map(str::to_owned);
        if let (Some(id), Some(key)) = (word("agent_id"), word("api_key")) {
            return Agent { owner: id.clone(), id, key };
        }
        client.pause(50).await;
    }
    unreachable!("there is always another name")
}

/// One attempt to register at any node.
async fn enrol(client: &mut Client, path: &str, body: &Value) -> Option<Value> {
    let step = Operation::Step { protocol: "registration" };
    let (request, node) = (Request::new(step, client.fresh_key(), path), client.any_node());
    let reply = client.attempt(node, &request.json(body)).await?;
    Some(reply.json()).filter(|_| reply.is_done())
}

/// Grants credits, once, whatever happens meanwhile.
pub async fn grant(client: &mut Client, owner: &str, amount: u64) {
    let operation = Operation::Grant { owner: owner.to_owned(), cents: amount };
    let body = json!({"owner": owner, "amount": cents_value(amount), "create": true});
    let request = Request::new(operation, client.fresh_key(), "/v1/operator/grants");
    let request = request.bearer(&operator_key()).with_key().json(&body);
    let reply = client.run(&request).await.expect("an answer");
    assert!(reply.is_done(), "{}", reply.text);
}

async fn jobs_opened(client: &mut Client) -> u64 {
    let key = operator_key();
    loop {
        let node = client.any_node();
        if let Some((seen, ..)) = client.read(node, "/v1/operator/stats", Some(&key)).await {
            return seen["jobs_opened"].as_u64().expect("a number");
        }
        client.pause(50).await;
    }
}
