//! SIGKILL while a model hires with a key of its own for the call: the same call again finds the one
//! job, which is paid once (R79).

mod servers;

use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::client::data_of;
use crate::clients::register;
use crate::kit::{
    Dice, Process, Reply, SEED, assert_audit_is_clean, digits, eventually, http, seed,
};

const ROUNDS: u64 = 15;
/// The kill comes at most so long after the call: a whole hire takes about as long.
const KILL_WITHIN_MS: u64 = 60;

/// A buyer at a hub that is killed and started again on the same data.
struct Buyer {
    url: String,
    key: String,
}

impl Buyer {
    /// Hires the demo agent that counts words; `None` if the hub died before it answered.
    async fn hire(&self, order: &str) -> Option<Value> {
        let arguments = json!({"skill": "count_words", "input": {"text": order}, "budget": "0.10",
            "idempotency_key": order});
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": "hire", "arguments": arguments}});
        let request = http().post(format!("{}/mcp", self.url)).bearer_auth(&self.key);
        let answer = request.body(call.to_string()).send().await.ok()?;
        let text = answer.text().await.ok()?;
        let mut response = match text.starts_with('{') {
            true => serde_json::from_str(&text).expect("JSON"),
            // A stream may have been cut after some notifications.
            false => data_of(&text).into_iter().find(|message| message.get("id").is_some())?,
        };
        assert_ne!(response["result"]["isError"], true, "{response}");
        Some(response["result"]["structuredContent"].take())
    }

    async fn get(&self, path: &str) -> Reply {
        let request = http().get(format!("{}{path}", self.url)).bearer_auth(&self.key);
        Reply::to(request).await.expect(200)
    }
}

/// A hub with its demo agents at work.
async fn start(data: &TempDir) -> Process {
    let hub = Process::start("dev", data.path(), &[]);
    let list = format!("{}/v1/agents?skill=count_words&online=true", hub.url);
    eventually(async || {
        let found = Reply::to(http().get(&list)).await.expect(200).json();
        found["items"].as_array().is_some_and(|agents| !agents.is_empty())
    })
    .await;
    hub
}

#[tokio::test(flavor = "multi_thread")]
async fn a_keyed_hire_that_a_kill_interrupts_is_one_job_and_one_payment() {
    let seed = seed();
    println!("{SEED}={seed}");
    let (mut dice, mut cut) = (Dice(seed), 0);
    let data = TempDir::new().expect("a directory");
    let mut hub = start(&data).await;
    let mut buyer = Buyer { url: hub.url.clone(), key: register(&hub.url, "buyer").await };
    for round in 1..=ROUNDS {
        let order = format!("order {round}");
        let answer = tokio::select! {
            answer = buyer.hire(&order) => answer,
            // The random moment is the point of the test, so a real sleep is right here.
            () = tokio::time::sleep(Duration::from_millis(dice.roll(KILL_WITHIN_MS))) => None,
        };
        cut += u64::from(answer.is_none());
        hub.kill();
        assert_audit_is_clean(data.path());
        hub = start(&data).await;
        buyer.url.clone_from(&hub.url);
        let job = finished(&buyer, &order).await;
        assert_eq!((&job["state"], &job["paid"]), (&json!("completed"), &json!("0.05")), "{job}");
        if let Some(answer) = answer {
            assert_eq!(answer["job_id"], job["job_id"], "what was acknowledged is there");
        }
        let again = buyer.hire(&order).await.expect("an answer");
        assert_eq!((&again["job_id"], &again["repeated"]), (&job["job_id"], &json!(true)));
        assert_one_payment_each(&buyer, round).await;
    }
    hub.kill();
    assert_audit_is_clean(data.path());
    println!("{cut} of {ROUNDS} calls were cut");
    assert!(cut > 0, "no kill came during a call");
}

/// The same call until its job has ended. The worker was killed with its hub, so it may need a moment.
async fn finished(buyer: &Buyer, order: &str) -> Value {
    let mut job = Value::Null;
    eventually(async || {
        job = buyer.hire(order).await.expect("an answer");
        job["done"] == true
    })
    .await;
    job
}

async fn assert_one_payment_each(buyer: &Buyer, rounds: u64) {
    let jobs = buyer.get("/v1/jobs?side=asked&state=all&limit=100").await.json();
    assert_eq!(jobs["items"].as_array().map(Vec::len), Some(rounds as usize), "{jobs}");
    let me = buyer.get("/v1/me").await.text;
    let spent = 5 * rounds;
    let left = format!("{}.{:02}", (10_000 - spent) / 100, (10_000 - spent) % 100);
    assert_eq!((digits(&me, "available"), digits(&me, "held")), (left, "0.00".to_owned()));
}
