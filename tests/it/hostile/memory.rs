//! Memory use of agents, jobs and messages, and the behaviour when the memory budget is exhausted.

use futures_util::{StreamExt, stream};
use rialto_hub::config::Profile;
use rialto_protocols::agora::MessageType;
use serde_json::{Value, json};

use super::hub_process::HubProcess;
use crate::agora::kit::Key;
use crate::clara::kit::{Hub as ClaraHub, Wallet};
use crate::kit::{Reply, TestHub};
use crate::openclaw::kit::identity;
use crate::relay::kit::Peer;

/// How many of each kind are measured.
const EACH: usize = 2_000;
/// Concurrent requests.
const AT_ONCE: usize = 32;
/// Memory the process may use for buffers, caches and the allocator, whatever it holds.
const SLACK: u64 = 10 << 20;

/// The documented sizes, in bytes: see the table of figures.
const IDLE_AGENT: u64 = 8_192;
const OPEN_JOB: u64 = 4_096;

/// One value of `/metrics`.
fn metric(text: &str, name: &str) -> u64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let number: f64 = line.unwrap_or_else(|| panic!("no {name}")).parse().expect("a number");
    number as u64
}

/// Memory as the hub counts it, and as the process uses it.
#[derive(Clone, Copy, Debug)]
struct Taken {
    counted: u64,
    resident: u64,
}

impl Taken {
    async fn by(process: &HubProcess) -> Self {
        let text = process.get("/metrics", None).await.expect(200).text;
        Self { counted: metric(&text, "rialto_memory_bytes"), resident: process.memory() }
    }

    /// The difference since then.
    fn since(self, before: Self) -> Self {
        Self {
            counted: self.counted.saturating_sub(before.counted),
            resident: self.resident.saturating_sub(before.resident),
        }
    }
}

async fn each<T>(count: usize, one: impl AsyncFn(usize) -> T) -> Vec<T> {
    stream::iter(0..count).map(|n| one(n)).buffered(AT_ONCE).collect().await
}

/// Runs something this many times, and returns the memory it took.
async fn taken<T>(
    process: &HubProcess,
    what: &str,
    one: impl AsyncFn(usize) -> T,
) -> (Taken, Vec<T>) {
    let before = Taken::by(process).await;
    let made = each(EACH, one).await;
    let taken = Taken::by(process).await.since(before);
    let of_one = |bytes: u64| bytes / EACH as u64;
    println!("{what}: {} counted, {} resident", of_one(taken.counted), of_one(taken.resident));
    (taken, made)
}

/// The process uses no more than is counted, and the count is close to it.
#[track_caller]
fn assert_counted(taken: Taken, stated: u64, what: &str) {
    let Taken { counted, resident } = taken;
    assert!(counted <= stated * EACH as u64, "{what}: {taken:?}");
    assert!(resident <= counted + counted / 4 + SLACK, "{what}: {taken:?}");
    assert!(counted <= resident * 3 + SLACK, "{what}: {taken:?}");
}

/// Rows on disk take no memory.
#[track_caller]
fn assert_nothing(taken: Taken, what: &str) {
    assert!(taken.counted <= 64 << 10, "{what}: {taken:?}");
    assert!(taken.resident <= SLACK, "{what}: {taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_jobs_and_messages_take_the_memory_that_is_stated() {
    let process =
        HubProcess::open(&[("registry.heartbeat_ttl", "1h"), ("limits.inbox_pending", "0")]);
    let worker = process.agent("worker", "work", None).await;
    // One requester may not fill an agent with free work alone.
    let bosses = each(8, async |n| process.agent(&format!("boss-{n}"), "boss", None).await).await;
    let (ada, bob) = (process.join("ada").await, process.join("bob").await);
    let wanted = json!({"skill": "work", "budget": 0, "input": {"text": "x".repeat(100)}});
    let open = async |n: usize| {
        let boss = &bosses[n % bosses.len()];
        process.post("/v1/jobs", Some(&boss.key), &wanted).await.expect(201).str("/id")
    };
    let finish = async |job: &str| {
        let path = format!("/v1/jobs/{job}/result");
        process
            .post(&path, Some(&worker.key), &json!({"ok": true, "output": {}}))
            .await
            .expect(200);
    };
    let say = async |n: usize| {
        process.say(&ada, &bob, &format!("no. {n}: {}", "x".repeat(200))).await.expect(202);
    };
    // One-time allocations happen before the measurement.
    each(300, async |n| finish(&open(n).await).await).await;
    each(300, &say).await;

    let idle = async |n: usize| process.agent(&format!("owner-{n}"), "idle", None).await;
    let (agents, _) = taken(&process, "idle agent", idle).await;
    assert_counted(agents, IDLE_AGENT, "idle agents");
    let (opened, jobs) = taken(&process, "open job", open).await;
    assert_counted(opened, OPEN_JOB, "open jobs");
    let (ended, _) = taken(&process, "job that ends", async |n| finish(&jobs[n]).await).await;
    assert_nothing(ended, "jobs that end");
    let (done, _) = taken(&process, "finished job", async |n| finish(&open(n).await).await).await;
    assert_nothing(done, "finished jobs");
    let (said, _) = taken(&process, "message", say).await;
    assert_nothing(said, "messages");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_said_about_itself_leaves_memory_with_it() {
    const COUNT: usize = 400;
    let process = HubProcess::open(&[]);
    let schema = json!({"text": "x".repeat(15_000)});
    let skills: Vec<Value> = (0..4)
        .map(|n| {
            json!({"skill_name": format!("skill-{n}"), "cost_per_call": 0,
            "input_schema": schema, "output_schema": schema})
        })
        .collect();
    let body = json!({"agent_name": "large", "owner_id": "large", "skills": skills});
    let join = async |owner: String| {
        let mut body = body.clone();
        body["owner_id"] = owner.into();
        let reply = process.post("/registry/register", None, &body).await.expect(201);
        Peer { id: reply.str("/agent_id"), key: reply.str("/api_key") }
    };
    let start = Taken::by(&process).await;
    let (mut there, mut left) = (Vec::new(), Vec::new());
    // The allocator keeps freed memory and reuses it for the next wave.
    for wave in 0..3 {
        let all = each(COUNT, async |n| join(format!("owner-{wave}-{n}")).await).await;
        there.push(Taken::by(&process).await.since(start));
        each(COUNT, async |n| {
            let path = format!("{}/registry/agents/{}", process.url, all[n].id);
            let left = process.http.delete(path).bearer_auth(&all[n].key).send().await;
            assert!(left.expect("an answer").status().is_success());
        })
        .await;
        left.push(Taken::by(&process).await.since(start));
    }
    println!("{COUNT} large agents at a time: there {there:?}, left {left:?}");
    let one = there[0].counted;
    assert!(one > COUNT as u64 * 120_000, "{there:?}");
    assert!(left[2].counted < COUNT as u64 * 3 * 20_000, "{left:?}");
    assert!(left[2].resident < left[0].resident + one / 2 + SLACK, "{left:?}");
}

/// The refusal says that memory is exhausted, and when to retry.
#[track_caller]
fn assert_full(reply: &Reply, what: &str) {
    assert_eq!(reply.status, 507, "{what}: {}", reply.text);
    assert_eq!(reply.header("retry-after"), Some("60"), "{what}: {}", reply.text);
    assert!(reply.text.contains("memory"), "{what}: {}", reply.text);
}

/// A registration in every protocol, with a description of this size.
async fn register(hub: &TestHub, bytes: usize) -> [(&'static str, Reply); 5] {
    let text = "x".repeat(bytes);
    let skill = json!({"skill_name": "s", "cost_per_call": 0, "input_schema": {"a": text}});
    let registry = json!({"agent_name": "new", "owner_id": "new", "skills": [skill]});
    let card = json!({"card_version": "0.3", "user_culture": "en", "supported_languages": ["en"],
        "about": text});
    let relay = json!({"agent_id": "new", "agent_card": card});
    let mut openclaw = identity("new", hub.engine.now());
    openclaw["capabilities"]["input_schemas"]["sum"]["description"] = text.as_str().into();
    openclaw["capabilities"]["output_schemas"]["sum"]["description"] = text.as_str().into();
    let many: Vec<Value> = (0..100)
        .map(|n| {
            json!({"resource": format!("r{n}"),
            "description": text.chars().take(bytes / 100).collect::<String>()})
        })
        .collect();
    let agora = Key::of(77).sign(MessageType::Hello, &json!({"capabilities": many})).json();
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Id", "new"),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "5"),
    ];
    let item = Wallet::of(77).item(&tags, json!({"about": text}).to_string().as_bytes());
    let clara = hub.http.post(format!("{}/clara/mu", hub.url)).body(item);
    let clara = clara.header("content-type", "application/octet-stream").send().await;
    [
        ("registry", hub.post("/registry/register", None, &registry).await),
        ("relay", hub.post("/relay/register", None, &relay).await),
        ("openclaw", hub.post("/openclaw/identity", None, &openclaw).await),
        ("agora", hub.post("/agora/envelopes", None, &agora).await),
        ("clara", Reply::of(clara.expect("an answer")).await),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_memory_limit_every_protocol_refuses_what_adds_and_takes_what_ends() {
    let hub = TestHub::serve(&[]).await;
    let worker = hub.agent("worker", "work", "0", None).await;
    let boss = hub.orchestrator("boss").await;
    hub.grant("boss", "1.00").await;
    let wanted =
        |bytes: usize| json!({"skill": "work", "budget": 0, "input": {"text": "x".repeat(bytes)}});
    let job = hub.post("/v1/jobs", Some(&boss.key), &wanted(500)).await.expect(201).str("/id");
    let used = metric(&hub.get("/metrics", None).await.expect(200).text, "rialto_memory_bytes");
    let hub = hub.restart(Profile::Serve, &[("store.memory", &used.to_string())]).await;

    let stats = hub.get("/v1/operator/stats", Some(&hub.operator)).await.expect(200);
    assert_eq!(stats.at("/memory/used"), used, "memory use is unchanged: {}", stats.text);
    assert_eq!(stats.at("/memory/limit"), used, "{}", stats.text);
    assert_eq!(stats.at("/memory/owners/0/owner"), "boss", "{}", stats.text);
    for (protocol, reply) in register(&hub, 100).await {
        assert_full(&reply, protocol);
    }
    let refused = hub.post("/v1/jobs", Some(&boss.key), &wanted(100)).await;
    assert_full(&refused, "v1");
    assert_eq!(refused.str("/code"), "memory_full");
    let after = hub.get("/v1/operator/stats", Some(&hub.operator)).await.expect(200);
    assert_eq!(after.at("/memory"), stats.at("/memory"), "nothing was changed");
    // Ending a job frees its memory, and is always accepted.
    let result = json!({"ok": true, "output": {}});
    hub.post(&format!("/v1/jobs/{job}/result"), Some(&worker.key), &result).await.expect(200);
    let next = hub.post("/v1/jobs", Some(&boss.key), &wanted(100)).await.expect(201).str("/id");
    assert_full(&hub.post("/v1/jobs", Some(&boss.key), &wanted(100)).await, "v1");
    hub.post(&format!("/v1/jobs/{next}/cancel"), Some(&boss.key), &json!({})).await.expect(200);
    let path = format!("/registry/agents/{}", worker.id);
    hub.call("DELETE", &path, Some(&worker.key), None).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_at_its_memory_limit_is_told_what_to_do_and_others_go_on() {
    let hub = TestHub::serve(&[("store.memory_per_owner", "30000")]).await;
    hub.agent("worker", "work", "0", None).await;
    let (boss, other) = (hub.orchestrator("boss").await, hub.orchestrator("other").await);
    let wanted = json!({"skill": "work", "budget": 0, "input": {"text": "x".repeat(20_000)}});
    let job = hub.post("/v1/jobs", Some(&boss.key), &wanted).await.expect(201).str("/id");
    let refused = hub.post("/v1/jobs", Some(&boss.key), &wanted).await;
    assert_full(&refused, "v1");
    assert!(refused.str("/detail").contains("end jobs"), "{}", refused.text);
    hub.post("/v1/jobs", Some(&other.key), &wanted).await.expect(201);
    hub.post(&format!("/v1/jobs/{job}/cancel"), Some(&boss.key), &json!({})).await.expect(200);
    hub.post("/v1/jobs", Some(&boss.key), &wanted).await.expect(201);
}

#[tokio::test(flavor = "multi_thread")]
async fn more_about_an_agent_than_the_hub_keeps_is_refused_by_name_in_every_protocol() {
    let hub = TestHub::serve(&[]).await;
    let too_large = [
        ("registry", 40_000, "/skills/0/input_schema"),
        ("relay", 40_000, "/agent_card"),
        ("openclaw", 60_000, "capabilities"),
        ("agora", 80_000, "capabilities"),
    ];
    for (protocol, bytes, field) in too_large {
        let replies = register(&hub, bytes).await;
        let (_, reply) = replies.iter().find(|(name, _)| *name == protocol).expect("a reply");
        assert_eq!(reply.status, 413, "{protocol}: {}", reply.text);
        assert!(reply.text.contains(field), "{protocol}: {}", reply.text);
        assert!(reply.text.contains("bytes"), "{protocol}: {}", reply.text);
    }
    // What fits is accepted.
    for (protocol, reply) in register(&hub, 10_000).await {
        assert!((200..300).contains(&reply.status), "{protocol}: {} {}", reply.status, reply.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn more_metadata_than_the_hub_keeps_is_an_error_that_says_how_much_it_may_be() {
    let hub = ClaraHub::serve(&[]).await;
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Id", "new"),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "5"),
    ];
    let data = json!({"about": "x".repeat(64 << 10)}).to_string();
    hub.assert_error(&Wallet::of(1), &tags, &data, "Data must have at most 65536 bytes").await;
}
