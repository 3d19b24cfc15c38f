//! Lists are returned in pages of bounded size, and the pages together are the whole list.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::clara::kit::{Hub as Clara, Wallet};
use crate::kit::{Agent, Reply, TestHub};
use crate::relay::kit::message;

/// Maximum size of a list response: a mebibyte, its frame, and more for a single long item.
const LIST: usize = (1 << 20) + (16 << 10);
/// The same for the market's lists, which are JSON texts within JSON.
const MARKET_LIST: usize = 4 << 20;

/// Bytes of one schema; every agent of `swell` has six.
const SCHEMA: usize = 15_000;

/// Registers agents with long descriptions and one shared skill.
pub async fn swell(hub: &TestHub, agents: usize, shared: &str) -> Vec<String> {
    let schema = json!({"type": "object", "description": "d".repeat(SCHEMA)});
    let mut ids = Vec::with_capacity(agents);
    for number in 0..agents {
        let skill = |name: String| {
            json!({"skill_name": name, "cost_per_call": 0, "description": "a".repeat(4_000),
                "input_schema": schema, "output_schema": schema})
        };
        let skills = [
            skill(shared.to_owned()),
            skill(format!("long-{number}-b")),
            skill(format!("long-{number}-c")),
        ];
        let body = json!({"agent_name": format!("long {number}"), "owner_id": format!("o{number}"),
            "skills": skills});
        ids.push(hub.enrol(&body, None).await.id);
    }
    ids
}

#[track_caller]
fn assert_short(reply: &Reply, most: usize, path: &str) {
    assert_eq!(reply.status, 200, "{path}: {}", &reply.text[..reply.text.len().min(500)]);
    assert!(reply.text.len() <= most, "{path}: {} bytes, at most {most}", reply.text.len());
}

/// Reads a list to its end: the named member of every item, and the number of pages.
async fn walk(
    hub: &TestHub,
    path: &str,
    key: Option<&str>,
    (items, name, cursor, parameter): (&str, &str, &str, &str),
) -> (Vec<Value>, usize) {
    let (mut all, mut answers, mut next) = (Vec::new(), 0, None::<String>);
    loop {
        let sign = if path.contains('?') { '&' } else { '?' };
        let at = next.map_or_else(String::new, |next| format!("{sign}{parameter}={next}"));
        let reply = hub.get(&format!("{path}{at}"), key).await;
        assert_short(&reply, LIST, path);
        let body = reply.json();
        let page = body.pointer(items).and_then(Value::as_array).expect("a list");
        all.extend(page.iter().map(|item| item.pointer(name).expect(name).clone()));
        answers += 1;
        next = match body.pointer(cursor) {
            None | Some(Value::Null) => return (all, answers),
            Some(Value::String(text)) => Some(text.clone()),
            Some(other) => Some(other.to_string()),
        };
        assert!(!page.is_empty(), "{path}: only the last page may be empty");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_directory_has_pages_of_bounded_length_and_leaves_no_agent_out() {
    const AGENTS: usize = 24;
    let hub = TestHub::serve(&[]).await;
    let ids: BTreeSet<String> = swell(&hub, AGENTS, "long").await.into_iter().collect();
    let is_one = |id: &&Value| ids.contains(id.as_str().unwrap_or_default());
    for (path, members) in [
        (
            "/registry/discover?skill=long&limit=200",
            ("/agents", "/agent_id", "/next_offset", "offset"),
        ),
        ("/discover?skill=long&limit=200", ("/agents", "/agent_id", "/next_offset", "offset")),
        ("/discover?skill=long&limit=5", ("/agents", "/agent_id", "/next_offset", "offset")),
        ("/openclaw/agents?limit=200", ("/agents", "/native_id", "/next_cursor", "cursor")),
        (
            "/openclaw/agents?capability=long&limit=200",
            ("/agents", "/native_id", "/next_cursor", "cursor"),
        ),
        ("/agora/agents?limit=200", ("/agents", "/native_id", "/next_cursor", "cursor")),
        (
            "/agora/agents?resource=agora:long:v1&limit=200",
            ("/agents", "/native_id", "/next_cursor", "cursor"),
        ),
        ("/relay/agents", ("/data", "/native_id", "/metadata/next_cursor", "cursor")),
        ("/v1/agents?limit=200", ("/items", "/names/registry", "/next_cursor", "cursor")),
        (
            "/v1/agents?skill=long&limit=200",
            ("/items", "/names/registry", "/next_cursor", "cursor"),
        ),
    ] {
        let (found, answers) = walk(&hub, path, None, members).await;
        let found: Vec<&Value> = found.iter().filter(is_one).collect();
        let each: BTreeSet<&str> = found.iter().filter_map(|id| id.as_str()).collect();
        assert_eq!((found.len(), each.len()), (AGENTS, AGENTS), "{path} in {answers} answers");
    }
    // With everything that is shown of them they exceed two pages.
    let whole = ("/agents", "/agent_id", "/next_offset", "offset");
    let path = "/registry/discover?skill=long&limit=200";
    assert!(walk(&hub, path, None, whole).await.1 > 2, "{path}");
    let posted = json!({"skill": "long", "limit": 200});
    let reply = hub.post("/registry/discover", None, &posted).await;
    assert_short(&reply, LIST, "POST /registry/discover");
    assert_eq!(reply.at("/total"), AGENTS);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_short_directory_is_one_answer_that_says_nothing_of_more() {
    let hub = TestHub::serve(&[]).await;
    hub.agent("one", "short", "0", None).await;
    let found = hub.get("/registry/discover?skill=short", None).await.expect(200).json();
    assert_eq!(found.get("next_offset"), None);
    let skills = hub.get("/registry/skills", None).await.expect(200).json();
    assert_eq!((skills.get("next_after"), &skills["skills"]), (None, &json!(["short"])));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_skills_are_had_in_order_name_after_name() {
    let hub = TestHub::serve(&[]).await;
    // A name counts with the size of its worst escaping, so two thousand exceed one page.
    let name = |number: usize| format!("{}-{number:04}", "s".repeat(100));
    for agent in 0..32 {
        let skills: Vec<Value> = (0..64)
            .map(|one| json!({"skill_name": name(agent * 64 + one), "cost_per_call": 0}))
            .collect();
        let body = json!({"agent_name": "many", "owner_id": format!("o{agent}"), "skills": skills});
        hub.enrol(&body, None).await;
    }
    let (mut all, mut after, mut answers) = (Vec::new(), String::new(), 0);
    loop {
        let reply = hub.get(&format!("/skills?after={after}"), None).await;
        assert_short(&reply, LIST, "/skills");
        let body = reply.json();
        let names = body["skills"].as_array().expect("a list");
        all.extend(names.iter().map(|name| name.as_str().expect("a name").to_owned()));
        answers += 1;
        match body["next_after"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    let expected: Vec<String> = (0..32 * 64).map(name).collect();
    assert_eq!((all, answers > 1), (expected, true));
    hub.stop().await;
}

/// Sends a message of this size from one agent to another through the hub's own API.
async fn tell(hub: &TestHub, from: &Agent, to: &Agent, bytes: usize) {
    let body = json!({"to": to.id, "body": {"text": "t".repeat(bytes)}});
    hub.post("/v1/messages", Some(&from.key), &body).await.expect(200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inbox_of_long_messages_is_read_in_answers_of_bounded_length() {
    let hub = TestHub::serve(&[]).await;
    let (from, to) = (hub.orchestrator("from").await, hub.orchestrator("to").await);
    for _ in 0..48 {
        tell(&hub, &from, &to, 60_000).await;
    }
    let members = ("/items", "/position", "/next_cursor", "cursor");
    let (positions, answers) = walk(&hub, "/v1/inbox?limit=200", Some(&to.key), members).await;
    assert_eq!(positions, (1..=48).map(Value::from).collect::<Vec<_>>());
    assert!(answers > 2, "{answers}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_of_long_messages_is_read_in_answers_of_bounded_length_and_in_order() {
    let hub = TestHub::serve(&[]).await;
    let join = async |name: &str| {
        let reply = hub.post("/relay/register", None, &json!({"agent_id": name})).await;
        let reply = reply.expect(201);
        (reply.str("/data/agent_id"), reply.str("/data/api_key"))
    };
    let (ada, ada_key) = join("ada").await;
    // Several recipients, since one pair of agents is soon rate-limited.
    let others = [join("bob").await, join("cid").await, join("dot").await];
    let mut sent = Vec::new();
    for turn in 0..60 {
        let (other, other_key) = &others[turn / 2 % others.len()];
        // Long messages one way and short ones the other, so that the two directions fill unevenly.
        let (from, to, key, text) = match turn % 2 {
            0 => (&ada, other, &ada_key, "l".repeat(50_000)),
            _ => (other, &ada, other_key, "s".to_owned()),
        };
        let body = message(from, to, &format!("{turn} {text}"));
        let reply = hub.post("/relay/messages", Some(key), &body).await;
        assert!(reply.status < 300, "{}", reply.text);
        sent.push(reply.at("/data/trace_id"));
    }
    let members = ("/data", "/trace_id", "/metadata/next_cursor", "cursor");
    let path = "/relay/agent/messages?since=2000-01-01T00:00:00Z&limit=500";
    let (found, answers) = walk(&hub, path, Some(&ada_key), members).await;
    assert_eq!(found, sent, "every message once, oldest first");
    assert!(answers > 1, "{answers}");
    let newest = hub.get("/relay/agent/messages?limit=500", Some(&ada_key)).await;
    assert_short(&newest, LIST, "the newest ones");
    let last = newest.at("/data").as_array().and_then(|all| all.last().cloned());
    assert_eq!(last.map(|last| last["trace_id"].clone()), sent.last().cloned());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn work_with_long_input_is_fetched_in_answers_of_bounded_length() {
    let hub = TestHub::serve(&[]).await;
    let (asks, works) =
        (hub.orchestrator("asks").await, hub.agent("works", "free", "0", None).await);
    for _ in 0..5 {
        let body = json!({"orchestrator_id": asks.id, "skill_name": "free", "budget": 0,
            "input_data": {"text": "i".repeat(400_000)}, "callback_url": null});
        let path = format!("/registry/agents/{}/jobs", works.id);
        hub.post(&path, Some(&asks.key), &body).await;
    }
    let mut known: Vec<String> = Vec::new();
    while known.len() < 5 {
        let path = format!("/v1/work?known={}", known.join(","));
        let reply = hub.get(&path, Some(&works.key)).await;
        assert_short(&reply, LIST, "/v1/work");
        let body = reply.json();
        let jobs = body["jobs"].as_array().expect("a list");
        assert!(!jobs.is_empty(), "{} of five", known.len());
        known.extend(jobs.iter().map(|job| job["id"].as_str().expect("an id").to_owned()));
        assert_eq!(body["more"], known.len() < 5, "{} of five", known.len());
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_market_lists_its_agents_in_pages_of_bounded_length_and_leaves_none_out() {
    const AGENTS: usize = 160;
    let hub = Clara::serve(&[]).await;
    let wallet = Wallet::of(1);
    let metadata = json!({"about": "m".repeat(15_000)}).to_string();
    let mut expected = BTreeSet::new();
    for number in 0..AGENTS {
        let id = format!("agent-{number:03}");
        let tags = [
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "10"),
            ("RedStone-Agent-Id", id.as_str()),
        ];
        assert_eq!(
            hub.act(&wallet, "Register-Agent-Profile", &tags, &metadata).await.actions(),
            ["Registered"]
        );
        expected.insert(id);
    }
    for action in ["List-Agents", "Dashboard-Data"] {
        let (mut found, mut cursor, mut answers) = (Vec::new(), String::new(), 0);
        loop {
            let mut tags = json!([{"name": "Action", "value": action},
                {"name": "Protocol", "value": "C.L.A.R.A."}]);
            if !cursor.is_empty() {
                let more = json!({"name": "Cursor", "value": cursor});
                tags.as_array_mut().expect("a list").push(more);
            }
            let path = format!("/clara/cu/dry-run?process-id={}", rialto_protocols::clara::PROCESS);
            let reply = hub.post(&path, None, &json!({"Tags": tags})).await;
            assert_short(&reply, MARKET_LIST, action);
            answers += 1;
            let data: Value = serde_json::from_str(&reply.str("/Messages/0/Data")).expect("JSON");
            let agents = if action == "List-Agents" { &data } else { &data["agents"] };
            let agents = agents.as_array().expect("a list").iter();
            found.extend(agents.map(|agent| agent["id"].as_str().expect("an id").to_owned()));
            let tags = reply.at("/Messages/0/Tags");
            let mut tags = tags.as_array().expect("a list").iter();
            match tags.find(|tag| tag["name"] == "Next-Cursor") {
                Some(next) => cursor = next["value"].as_str().expect("a text").to_owned(),
                None => break,
            }
        }
        let each: BTreeSet<String> = found.iter().cloned().collect();
        assert_eq!((&each, found.len(), answers), (&expected, AGENTS, 2), "{action}");
    }
    // The client library joins the pages.
    let market = rialto_client::clara::Server::discover(&hub.url).await.expect("a market");
    let board = market.agents().await.expect("a board");
    assert_eq!(board.agents().expect("agents").len(), AGENTS);
    let bad = hub.dry_run(&[("Action", "List-Agents"), ("Cursor", "x")], "").await;
    assert_eq!(
        bad.error.as_deref(),
        Some("Value Cursor must be the Next-Cursor of an earlier answer")
    );
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payments_of_a_job_are_found_by_looking_at_so_many_lines_and_no_more() {
    let hub = TestHub::serve(&[]).await;
    let (payer, payee) = (hub.orchestrator("payer").await, hub.orchestrator("payee").await);
    hub.grant("payer", "1000").await;
    let job = uuid::Uuid::from_u128(7).to_string();
    let pay = async |job: Option<&str>| {
        let mut body = json!({"from_owner": "payer", "to_owner": "payee", "amount": 0.01});
        if let Some(job) = job {
            body["job_id"] = job.into();
        }
        hub.post("/registry/transfer", Some(&payer.key), &body).await.expect(200);
    };
    pay(Some(&job)).await;
    // More rows than one page scans.
    for _ in 0..21 {
        futures_util::future::join_all((0..100).map(|_| pay(None))).await;
    }
    for (key, owner) in [
        (&payer.key, ""),
        (&payee.key, ""),
        (&hub.operator, ""),
        (&hub.operator, "&owner_id=payer"),
    ] {
        let (mut found, mut answers, mut from) = (0, 0, String::new());
        loop {
            let path = format!("/registry/audit?job_id={job}{owner}{from}");
            let body = hub.get(&path, Some(key)).await.expect(200).json();
            let page = body["transactions"].as_array().expect("a list");
            assert!(page.iter().all(|one| one["job_id"] == job.as_str()), "{page:?}");
            assert_eq!(body["total"], page.len());
            found += page.len();
            answers += 1;
            match body["next_from"].as_u64() {
                Some(next) => from = format!("&from={next}"),
                None => break,
            }
        }
        assert_eq!((found, answers), (1, 2), "{owner}");
    }
    hub.stop().await;
}
