//! Jobs of agora, openclaw and clara from request to result. Each flow runs to its end, whatever
//! happens; every message of it is sent again, and by some flows once more to another node, without
//! a second effect.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rialto_protocols::agora::{EnvelopeSigner, MessageType};
use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::MessageResult;
use rialto_protocols::kit::ed25519::{PublicKey, SecretKey};
use serde_json::{Value, json};

use super::cast::grant;
use crate::agora::kit::{Key, Said};
use crate::clara::kit::{Wallet, about};
use crate::cluster::client::{Client, Reply, Request, cents};
use crate::cluster::history::Operation;
use crate::kit::operator_key;
use crate::openclaw::kit::{fresh_id, identity};

/// What each requester begins with, in cents.
const STARTING_CENTS: u64 = 1_000_000;
/// Price of a job of agora and of clara, in cents.
const AGORA_PRICE: u64 = 525;
const CLARA_PRICE: u64 = 2_000;
/// The tag of every item of clara.
const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

/// The agents of the flows of a round, and how many flows have ended.
#[derive(Clone)]
pub struct FlowAgents {
    resource: String,
    topic: String,
    consumer: Key,
    provider: Key,
    consumer_token: String,
    claw_requester: (String, String),
    claw_worker: (String, String),
    wallet: Wallet,
    worker_wallet: Wallet,
    counts: Arc<FlowCounts>,
}

#[derive(Debug, Default)]
struct FlowCounts {
    agora: AtomicU64,
    openclaw: AtomicU64,
    clara: AtomicU64,
}

/// Sends one step until there is an answer, which must be 2xx.
async fn step(client: &mut Client, request: &Request) -> Option<Reply> {
    let reply = client.run(request).await?;
    if !reply.is_done() {
        let text = format!("{} was refused at {}: {}", request.path, reply.node, reply.text);
        client.round.history.violation(text);
        return None;
    }
    // The same message at another node has no further effect.
    if client.dice.roll(8) == 0 {
        let node = client.other_node(reply.node);
        client.attempt(node, request).await;
    }
    Some(reply)
}

fn envelope(said: &Said) -> Request {
    let step = Operation::Step { protocol: "agora" };
    let mut request = Request::new(step, &*said.id, "/agora/envelopes");
    request.body = said.text.clone().into_bytes();
    request
}

impl FlowAgents {
    /// Registers the agents of a round and grants their credits.
    pub async fn assemble(client: &mut Client, round: usize) -> Option<Self> {
        let seed = |number: u8| {
            let mut seed = [number; 32];
            seed[..8].copy_from_slice(&(round as u64).to_be_bytes());
            SecretKey::from_seed(&seed)
        };
        let key = |number| Key { composer: EnvelopeSigner::new(seed(number)) };
        let (consumer, provider) = (key(1), key(2));
        let resource = format!("agora:round{round}:v1");
        let hub = loop {
            let node = client.any_node();
            if let Some((about, ..)) = client.read(node, "/agora", None).await {
                break PublicKey::parse(about["hub"].as_str()?).ok()?;
            }
            client.pause(50).await;
        };
        let mut tokens = Vec::new();
        for (key, capabilities) in
            [(&consumer, json!([])), (&provider, json!([{"resource": resource}]))]
        {
            let profile = json!({"name": "flow", "inbox": true, "capabilities": capabilities});
            let hello = key.sign_for(MessageType::Hello, &profile, Some(hub));
            let welcome = client.run(&envelope(&hello)).await?.json();
            tokens.push(welcome["payload"]["inbox_token"].as_str()?.to_owned());
        }
        grant(client, &consumer.owner(), STARTING_CENTS).await;

        let mut claws = Vec::new();
        for name in ["requester", "worker"] {
            let now = rialto_core::time::Timestamp(0);
            let body = identity(&format!("r{round}-{name}"), now);
            let step = Operation::Step { protocol: "openclaw" };
            let request = Request::new(step, client.fresh_key(), "/openclaw/identity").with_key();
            let made = client.run(&request.json(&body)).await?.json();
            let word = |name: &str| made[name].as_str().map(str::to_owned);
            claws.push((word("agent_id")?, word("api_key")?));
        }
        let claw_worker = claws.pop()?;
        let claw_requester = claws.pop()?;

        let (wallet, worker_wallet) = (Wallet::from_key(seed(3)), Wallet::from_key(seed(4)));
        grant(client, &format!("clara:{}", wallet.address()), STARTING_CENTS).await;
        let topic = format!("round{round}");
        let (agent, fee) = (format!("A{round}"), (CLARA_PRICE / 100).to_string());
        let tags = [
            ("Action", "Register-Agent-Profile"),
            PROTOCOL,
            ("RedStone-Agent-Topic", &topic),
            ("RedStone-Agent-Fee", &fee),
            ("RedStone-Agent-Id", &agent),
        ];
        let profile = item(&worker_wallet.item(&tags, br#"{"url":"https://x"}"#));
        client.run(&profile).await.filter(Reply::is_done)?;
        let consumer_token = tokens.swap_remove(0);
        let counts = Arc::default();
        Some(Self {
            resource,
            topic,
            consumer,
            provider,
            consumer_token,
            claw_requester,
            claw_worker,
            wallet,
            worker_wallet,
            counts,
        })
    }

    /// Flows that have run to their end.
    pub fn completed(&self) -> u64 {
        let FlowCounts { agora, openclaw, clara } = &*self.counts;
        [agora, openclaw, clara].iter().map(|count| count.load(Ordering::SeqCst)).sum()
    }
}

/// Request, offer, acceptance and result, all signed; in between the state is read elsewhere.
pub async fn agora(mut client: Client, agents: FlowAgents) {
    while !client.is_over() {
        if agora_flow(&mut client, &agents).await.is_none() {
            return;
        }
        agents.counts.agora.fetch_add(1, Ordering::SeqCst);
        client.pause(60).await;
    }
}

async fn agora_flow(client: &mut Client, agents: &FlowAgents) -> Option<()> {
    let FlowAgents { consumer, provider, .. } = agents;
    let request = consumer.request(&agents.resource, json!({"budget": {"max": 6}}));
    step(client, &envelope(&request)).await?;
    let price: Value = serde_json::from_str("5.25").expect("a number");
    let offer = provider.offer(&request.id, price);
    step(client, &envelope(&offer)).await?;
    expect_state(client, agents, &request.id, "NEGOTIATING").await;
    step(client, &envelope(&consumer.accept(&offer))).await?;
    expect_state(client, agents, &request.id, "PROCESSING").await;
    step(client, &envelope(&provider.result(&request.id))).await?;
    expect_state(client, agents, &request.id, "COMPLETED").await;
    Some(())
}

/// The state of a request at any node, which has every step that was acknowledged elsewhere.
async fn expect_state(client: &mut Client, agents: &FlowAgents, id: &str, expected: &str) {
    let (node, path) = (client.any_node(), format!("/agora/requests/{id}"));
    let read = client.read(node, &path, Some(&agents.consumer_token)).await;
    if let Some((seen, ..)) = read.filter(|(seen, ..)| seen["state"] != expected) {
        let text = format!("agora {id} is not {expected} at {node}: {seen}");
        client.round.history.violation(text);
    }
}

/// Collaborations that are requested of a worker and completed by it.
pub async fn openclaw(mut client: Client, agents: FlowAgents) {
    while !client.is_over() {
        if openclaw_flow(&mut client, &agents).await.is_none() {
            return;
        }
        agents.counts.openclaw.fetch_add(1, Ordering::SeqCst);
        client.pause(60).await;
    }
}

async fn openclaw_flow(client: &mut Client, agents: &FlowAgents) -> Option<()> {
    let ((requester, requester_key), (worker, worker_key)) =
        (&agents.claw_requester, &agents.claw_worker);
    let time = rialto_protocols::kit::rfc3339::format_millis(crate::agora::kit::now());
    let (request_id, correlation) = (fresh_id(), fresh_id());
    let body = json!({"request_id": request_id, "requester_agent_id": requester,
        "responder_agent_id": worker, "capability_id": "sum", "input_data": {"a": 0.5},
        "correlation_id": correlation, "timestamp": time});
    let claw = || Operation::Step { protocol: "openclaw" };
    let request = Request::new(claw(), &*request_id, "/openclaw/collaborations");
    let reply = step(client, &request.bearer(requester_key).json(&body)).await?.json();
    let id = reply["collaboration_id"].as_str().filter(|_| reply["response_status"] == "accepted");
    let Some(id) = id.map(str::to_owned) else {
        client.round.history.violation(format!("openclaw did not accept: {reply}"));
        return None;
    };
    let body = json!({"collaboration_id": id, "request_id": request_id,
        "responder_agent_id": worker, "result_status": "completed", "output_data": {"r": 1},
        "correlation_id": correlation, "timestamp": time});
    let path = format!("/openclaw/collaborations/{id}/result");
    let request = Request::new(claw(), format!("{id} result"), path);
    step(client, &request.bearer(worker_key).json(&body)).await?;
    let (node, path) = (client.any_node(), format!("/openclaw/collaborations/{id}"));
    let read = client.read(node, &path, Some(requester_key)).await;
    if let Some((seen, ..)) = read.filter(|(seen, ..)| seen["state"] != "completed") {
        client.round.history.violation(format!("openclaw {id} is not completed at {node}: {seen}"));
    }
    Some(())
}

/// Tasks of clara: registered, assigned and delivered by signed items.
pub async fn clara(mut client: Client, agents: FlowAgents) {
    while !client.is_over() {
        if clara_flow(&mut client, &agents).await.is_none() {
            return;
        }
        agents.counts.clara.fetch_add(1, Ordering::SeqCst);
        client.pause(60).await;
    }
}

fn item(bytes: &[u8]) -> Request {
    let step = Operation::Step { protocol: "clara" };
    let key = crate::cluster::hex_digest(bytes);
    let mut request = Request::new(step, key, "/clara/mu");
    request.body = bytes.to_vec();
    request.content_type = "application/octet-stream";
    request
}

async fn clara_flow(client: &mut Client, agents: &FlowAgents) -> Option<()> {
    let tags = [
        ("Action", "Register-Task"),
        PROTOCOL,
        ("RedStone-Agent-Topic", agents.topic.as_str()),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "roundRobin"),
    ];
    let task = agents.wallet.item(&tags, br#"{"say":"hello"}"#);
    let (id, result) = clara_step(client, &task).await?;
    let agent = result.messages.first()?.tag("Agent-Id")?.to_owned();
    let [first, second] = about(&agent, &id);
    let tags = [("Action", "Send-Result"), PROTOCOL, first, second];
    let (_, result) = clara_step(client, &agents.worker_wallet.item(&tags, b"{}")).await?;
    let action = result.messages.first().and_then(|sent| sent.tag("Action"));
    if action != Some("Task-Result") {
        client.round.history.violation(format!("clara {id} has no result: {result:?}"));
    }
    Some(())
}

/// Posts an item and reads its result at any node.
async fn clara_step(client: &mut Client, bytes: &[u8]) -> Option<(String, MessageResult)> {
    let reply = step(client, &item(bytes)).await?.json();
    let id = reply["id"].as_str()?.to_owned();
    let path = format!("/clara/cu/result/{id}?process-id={PROCESS}");
    loop {
        let node = client.any_node();
        if let Some((status, text)) = client.get(node, &path, None).await {
            match MessageResult::read(text.as_bytes()) {
                Ok(result) if status == 200 => return Some((id, result)),
                _ => {
                    let text = format!("clara's {id} has no result at {node}: {status} {text}");
                    client.round.history.violation(text);
                    return None;
                }
            }
        }
        client.pause(20).await;
    }
}

/// In the end each flow was paid exactly once.
pub async fn assert_flow_accounts(client: &mut Client, agents: &FlowAgents) {
    let FlowCounts { agora, clara, .. } = &*agents.counts;
    let wallet = |wallet: &Wallet| format!("clara:{}", wallet.address());
    let (agora, clara) =
        (AGORA_PRICE * agora.load(Ordering::SeqCst), CLARA_PRICE * clara.load(Ordering::SeqCst));
    let expected = [
        (agents.provider.owner(), agora),
        (agents.consumer.owner(), STARTING_CENTS - agora),
        (wallet(&agents.worker_wallet), clara),
        (wallet(&agents.wallet), STARTING_CENTS - clara),
    ];
    for (owner, expected) in expected {
        // A provider that was never paid has no account yet.
        if expected == 0 {
            continue;
        }
        let (node, path) = (client.any_node(), format!("/v1/accounts/{owner}"));
        let Some((seen, ..)) = client.read(node, &path, Some(&operator_key())).await else {
            client.round.history.violation(format!("node {node} does not show {owner}"));
            continue;
        };
        let shown = (cents(&seen["available"]), cents(&seen["held"]));
        if shown != (expected, 0) {
            let text = format!("{owner} has {shown:?} cents instead of {expected}");
            client.round.history.violation(text);
        }
    }
}
