//! Work as models do it: taking jobs, reporting them, offers, and what they say of themselves.

use std::time::{Duration, Instant};

use rialto_core::time::Millis;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::{Reply, TestHub};
use crate::party::{Party, content_agent};

/// A hub, a requester with credits, and a worker.
async fn scene() -> (TestHub, Party, Party) {
    let hub = TestHub::serve(&[]).await;
    hub.grant("ann", "10").await;
    let ann = Party::join(&hub, "ann", None).await;
    let bob = Party::join(&hub, "bob", Some(("sum", "0.5"))).await;
    (hub, ann, bob)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_job_is_handed_over_until_it_is_reported() {
    let (hub, ann, bob) = scene().await;
    let first = ann.hire(&hub, &bob, "sum", &json!({"a": 1.50, "text": "add"})).await;
    let second = ann.hire(&hub, &bob, "sum", &json!({"a": 2})).await;
    let taken = bob.mcp.ok("next_job", json!({})).await;
    let job = &taken["job"];
    assert_eq!((&job["job_id"], &job["epoch"]), (&json!(first), &json!(1)));
    assert_eq!((&job["skill"], &job["price"]), (&json!("sum"), &json!("0.50")));
    assert_eq!((&job["requester"], &taken["more"]), (&json!(ann.address), &json!(true)));
    assert_eq!(job["input"]["a"].to_string(), "1.5");
    assert_eq!(taken["untrusted"], json!(["/job/input"]));
    assert!(job["deadline"].as_str().is_some_and(|time| time.ends_with('Z')));
    // The same again: it was not reported.
    assert_eq!(bob.mcp.ok("next_job", json!({})).await["job"]["job_id"], first);
    let other = bob.mcp.ok("next_job", json!({"except": [first]})).await;
    assert_eq!((&other["job"]["job_id"], &other["more"]), (&json!(second), &json!(false)));
    let none = bob.mcp.ok("next_job", json!({"except": [first, second], "wait_seconds": 0})).await;
    assert!(none.get("job").is_none() && none["more"] == false && none["next"].is_string());
    assert_eq!(bob.mcp.ok("whoami", json!({})).await["jobs_in_hand"], 2);
    bob.mcp.fail("next_job", json!({"except": ["x"]}), "malformed").await;

    let report = json!({"job_id": first, "epoch": 1, "output": {"r": 1.500}});
    let done = bob.mcp.ok("submit_result", report.clone()).await;
    assert_eq!(done, json!({"job_id": first, "state": "completed", "paid": "0.50"}));
    let again = bob.mcp.ok("submit_result", report).await;
    assert_eq!((&again["repeated"], &again["paid"]), (&json!(true), &json!("0.50")));
    assert_eq!(hub.balance("bob").await.0, "0.50");
    assert_eq!(bob.mcp.ok("next_job", json!({})).await["job"]["job_id"], second);
    let key = Some(ann.agent.key.as_str());
    let shown = hub.get(&format!("/v1/jobs/{first}"), key).await.expect(200);
    assert_eq!(shown.at("/result/output"), json!({"r": 1.5}));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn input_and_output_keep_their_digits() {
    let (hub, ann, bob) = scene().await;
    let body = format!(
        r#"{{"skill":"sum","input":{{"a":1.500,"b":12345678901234567890}},"budget":1,"to":"{}"}}"#,
        bob.address
    );
    let key = Some(ann.agent.key.as_str());
    let job = hub.call("POST", "/v1/jobs", key, Some(&body)).await.expect(201).str("/id");
    let taken = bob.mcp.call("next_job", json!({})).await;
    let text = taken["content"][0]["text"].as_str().expect("a text");
    assert!(text.contains(r#""input":{"a":1.500,"b":12345678901234567890}"#), "{text}");
    let arguments = json!({"job_id": job, "epoch": 1, "output": {"r": 7}});
    let params = json!({"name": "submit_result", "arguments": arguments});
    let (message, _) = bob.mcp.message("tools/call", params.clone());
    let message = message.to_string().replace(r#"{"r":7}"#, r#"{"r":7.000e-1}"#);
    let sent = bob.mcp.request("tools/call", params).body(message);
    assert!(Reply::to(sent).await.expect(200).text.contains(r#"\"paid\":\"0.50\""#));
    let shown = hub.get(&format!("/v1/jobs/{job}"), key).await.expect(200);
    assert!(shown.text.contains(r#""output":{"r":7.000e-1}"#), "{}", shown.text);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_needs_the_epoch_of_the_assignment_and_its_own_job() {
    let (hub, ann, bob) = scene().await;
    let eve = Party::join(&hub, "eve", None).await;
    let job = ann.hire(&hub, &bob, "sum", &json!({})).await;
    bob.mcp.ok("next_job", json!({})).await;
    let report = |epoch: Value| json!({"job_id": job, "epoch": epoch, "output": {}});
    bob.mcp.fail("submit_result", json!({"job_id": job, "output": {}}), "malformed").await;
    bob.mcp.fail("submit_result", report(json!(2)), "wrong_state").await;
    bob.mcp.fail("decline_job", json!({"job_id": job, "epoch": 2}), "wrong_state").await;
    bob.mcp.fail("submit_result", json!({"job_id": job, "epoch": 1}), "malformed").await;
    let both = json!({"job_id": job, "epoch": 1, "output": {}, "error": "x"});
    bob.mcp.fail("submit_result", both, "malformed").await;
    let strange = eve.mcp.fail("submit_result", report(json!(1)), "not_found").await;
    let unknown =
        json!({"job_id": "00000000-0000-4000-8000-000000000000", "epoch": 1, "output": {}});
    assert_eq!(eve.mcp.fail("submit_result", unknown, "not_found").await, strange);
    eve.mcp.fail("decline_job", json!({"job_id": job, "epoch": 1}), "not_found").await;
    assert_eq!(bob.mcp.ok("next_job", json!({})).await["job"]["job_id"], job);
    bob.mcp.ok("submit_result", report(json!("1"))).await;
    // Another report about it comes too late.
    let other = json!({"job_id": job, "epoch": 1, "error": "no"});
    bob.mcp.fail("submit_result", other, "wrong_state").await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failure_says_whose_it_is_and_a_job_can_be_handed_back() {
    let (hub, ann, bob) = scene().await;
    let before = hub.score(&bob.agent).await;
    let job = ann.hire(&hub, &bob, "sum", &json!({})).await;
    bob.mcp.ok("next_job", json!({})).await;
    let failed =
        json!({"job_id": job, "epoch": 1, "error": "a is missing", "cause": "invalid_input"});
    let failed = bob.mcp.ok("submit_result", failed).await;
    assert_eq!((&failed["state"], &failed["paid"]), (&json!("failed"), &json!("0.00")));
    assert_eq!(hub.score(&bob.agent).await, before, "the requester's mistake");
    let key = Some(ann.agent.key.as_str());
    let shown = hub.get(&format!("/v1/jobs/{job}"), key).await.expect(200);
    assert_eq!(shown.str("/result/text"), "a is missing");

    let job = ann.hire(&hub, &bob, "sum", &json!({})).await;
    bob.mcp.ok("next_job", json!({})).await;
    let back = json!({"job_id": job, "epoch": 1, "reason": "busy"});
    let back = bob.mcp.ok("decline_job", back).await;
    assert_eq!(back["job_id"], job);
    assert_ne!(back["state"], "running");
    assert_eq!(hub.score(&bob.agent).await, before);
    let none = bob.mcp.ok("next_job", json!({"wait_seconds": 0})).await;
    assert!(none.get("job").is_none(), "{none}");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_waits_for_work_and_gets_it_when_it_comes() {
    let (hub, ann, bob) = scene().await;
    let begun = Instant::now();
    let none = bob.mcp.ok("next_job", json!({"wait_seconds": 1})).await;
    assert!(none.get("job").is_none() && begun.elapsed() >= Duration::from_secs(1));
    let begun = Instant::now();
    // Without a number it waits for 25 seconds.
    let (taken, job) = tokio::join!(bob.mcp.ok("next_job", json!({})), async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        ann.hire(&hub, &bob, "sum", &json!({})).await
    });
    assert_eq!(taken["job"]["job_id"], job);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_input_comes_in_parts_and_every_result_stays_short() {
    let (hub, ann, bob) = scene().await;
    let input = json!({"text": "\"é\n".repeat(9_000)});
    ann.hire(&hub, &bob, "sum", &input).await;
    let result = bob.mcp.call("next_job", json!({})).await;
    let text = result["content"][0]["text"].as_str().expect("a text");
    assert!(text.chars().count() <= 24_000, "{}", text.chars().count());
    let taken = &result["structuredContent"];
    assert!(taken["job"].get("input").is_none());
    assert_eq!(taken["untrusted"], json!(["/job/part/text"]));
    let part = &taken["job"]["part"];
    let whole = input.to_string();
    let end = part["to"].as_u64().expect("a number") as usize;
    let begin: String = whole.chars().take(end).collect();
    assert_eq!((&part["of"], &part["from"]), (&json!("input"), &json!(0)));
    assert_eq!(
        (part["text"].as_str(), part["total"].as_u64()),
        (Some(&*begin), Some(whole.chars().count() as u64))
    );
    assert!(taken["next"].as_str().is_some_and(|next| next.contains("get_job")));
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn any_call_is_a_sign_of_life() {
    let hub = TestHub::serve(&[("registry.heartbeat_ttl", "90s")]).await;
    let bob = Party::join(&hub, "bob", Some(("sum", "0.5"))).await;
    let online = async || {
        let path = format!("/v1/agents/{}", bob.address);
        hub.get(&path, None).await.expect(200).at("/online")
    };
    bob.mcp.ok("whoami", json!({})).await;
    hub.pass(Millis::seconds(89));
    assert_eq!(online().await, true);
    hub.pass(Millis::seconds(2));
    assert_eq!(online().await, false, "silent for longer than the setting");
    bob.mcp.ok("next_job", json!({"wait_seconds": 0})).await;
    assert_eq!(online().await, true);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_binds_its_maker_until_it_runs_out() {
    let (hub, ann, bob) = scene().await;
    let body = json!({"skill": "sum", "input": {}, "budget": 1, "select": "offers"});
    let key = Some(ann.agent.key.as_str());
    let job = hub.post("/v1/jobs", key, &body).await.expect(201).str("/id");
    let news = bob.inbox().await;
    assert_eq!((&news[0]["kind"], &news[0]["job_id"]), (&json!("offers_wanted"), &json!(job)));
    let made = bob.mcp.ok("make_offer", json!({"job_id": job, "price": 0.25})).await;
    assert_eq!((&made["job_id"], &made["price"]), (&json!(job), &json!("0.25")));
    assert!(made["valid_until"].as_str().is_some_and(|time| time.ends_with('Z')));
    let offers = hub.get(&format!("/v1/jobs/{job}/offers"), key).await.expect(200);
    assert_eq!(offers.at("/offers/0/price"), json!(0.25));
    assert_eq!(offers.at("/offers/0/valid_until"), made["valid_until"]);
    let inbox = ann.inbox().await;
    let news = inbox.iter().find(|item| item["kind"] == "offered").expect("an offer");
    assert_eq!(news["from"], bob.address);
    bob.mcp
        .fail(
            "make_offer",
            json!({"job_id": job, "price": "0.10", "valid_seconds": 0}),
            "malformed",
        )
        .await;
    let unknown = json!({"job_id": "00000000-0000-4000-8000-000000000000", "price": "1"});
    bob.mcp.fail("make_offer", unknown, "not_found").await;
    let eve = Party::join(&hub, "eve", None).await;
    eve.mcp.fail("make_offer", json!({"job_id": job, "price": "0.01"}), "not_found").await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_profile_keeps_what_is_not_named_and_replaces_all_skills() {
    let (hub, _, bob) = scene().await;
    let before = bob.mcp.ok("update_profile", json!({})).await;
    assert_eq!(
        before,
        json!({"agent": bob.address, "name": "bob's agent", "status": "online",
        "skills": [{"name": "sum", "price": "0.50"}]})
    );
    let skills = json!([
        {"name": "haiku", "price": "0.20", "about": "Writes a haiku",
         "input_schema": {"type": "object", "properties": {"topic": {"type": "string"}}}},
        {"name": "sum", "price": 0.1},
    ]);
    let after = bob.mcp.ok("update_profile", json!({"skills": skills, "status": "busy"})).await;
    assert_eq!(
        after["skills"],
        json!([
            {"name": "haiku", "price": "0.20", "about": "Writes a haiku"},
            {"name": "sum", "price": "0.10"},
        ])
    );
    assert_eq!((&after["name"], &after["status"]), (&json!("bob's agent"), &json!("busy")));
    let renamed = bob.mcp.ok("update_profile", json!({"name": "Bob II"})).await;
    assert_eq!(renamed["skills"], after["skills"]);
    assert_eq!((&renamed["name"], &renamed["agent"]), (&json!("Bob II"), &json!(bob.address)));
    let shown = hub.get(&format!("/v1/agents/{}", bob.address), None).await.expect(200);
    assert_eq!(shown.at("/skills/0/input_schema/properties/topic/type"), "string");
    assert_eq!(bob.mcp.ok("whoami", json!({})).await["skills"], after["skills"]);

    // What is refused changes nothing.
    let deep = format!("{}{{}}{}", r#"{"not":"#.repeat(40), "}".repeat(40));
    let deep: Value = serde_json::from_str(&deep).expect("JSON");
    let far = json!({"$ref": "https://example.com/s"});
    for (bad, field) in [
        (json!([{"name": "a", "price": "1"}, {"name": "a", "price": "2"}]), "/skills/1/name"),
        (json!([{"name": "a\u{202e}b", "price": "1"}]), "/skills/0/name"),
        (json!([{"name": "a", "price": "1", "input_schema": deep}]), "/skills/0/input_schema"),
        (json!([{"name": "a", "price": "1", "output_schema": far}]), "/skills/0/output_schema"),
        (json!([{"name": "a", "price": "1", "endpoint": "x"}]), "/skills/0/endpoint"),
        (json!([{"name": "a"}]), "/skills/0/price"),
    ] {
        let text =
            bob.mcp.fail("update_profile", json!({"skills": bad, "name": "X"}), "malformed").await;
        assert!(text.contains(field), "{text}");
    }
    assert_eq!(bob.mcp.ok("update_profile", json!({})).await["name"], "Bob II");
    let gone = bob.mcp.ok("update_profile", json!({"skills": [], "status": "offline"})).await;
    assert_eq!((&gone["skills"], &gone["status"]), (&json!([]), &json!("offline")));
    assert_eq!(hub.get(&format!("/v1/agents/{}", bob.address), None).await.at("/online"), false);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_every_protocol_change_their_profile_by_its_rules() {
    let hub = TestHub::serve(&[]).await;
    let zoe = hub.join("zoe@chorus").await;
    let zoe = McpClient::new(&hub, "/mcp", Some(&zoe.key), Era::New);
    let skills = json!([{"name": "translate", "price": "0.20"}]);
    let changed = zoe.ok("update_profile", json!({"skills": skills})).await;
    let names: Vec<_> =
        changed["skills"].as_array().expect("skills").iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["message", "translate"], "it always takes messages");
    zoe.fail("update_profile", json!({"name": "yan"}), "malformed").await;

    let published =
        hub.post("/openclaw/identity", None, &content_agent("chimera-otto")).await.expect(201);
    let otto = McpClient::new(&hub, "/mcp", Some(&published.str("/api_key")), Era::New);
    let skills = json!([
        {"name": "sum", "price": "0.30", "about": "adds again", "input_schema": {"type": "object", "required": ["b"]}},
        {"name": "draft_post", "price": "0"},
    ]);
    let changed = otto.ok("update_profile", json!({"skills": skills, "status": "busy"})).await;
    assert_eq!((&changed["name"], &changed["status"]), (&json!("chimera-otto"), &json!("busy")));
    let id = published.str("/agent_id");
    let entry = hub.get(&format!("/openclaw/agents/{id}"), None).await.expect(200);
    let text = &entry.text;
    for kept in [
        r#""x_note":"kept""#,
        r#""capability_name":"Sums""#,
        "trend_analysis",
        r#""required":["b"]"#,
        "draft_post",
    ] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
    assert!(!text.contains(r#""required":["a"]"#), "{text}");
    otto.fail(
        "update_profile",
        json!({"skills": [{"name": "x", "price": "1", "input_schema": {"type": 5}}]}),
        "malformed",
    )
    .await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoami_shows_the_agent_its_money_and_its_work() {
    let (hub, ann, bob) = scene().await;
    ann.hire(&hub, &bob, "sum", &json!({})).await;
    let shown = ann.mcp.ok("whoami", json!({})).await;
    assert_eq!((&shown["name"], &shown["owner"]), (&json!("ann's orchestrator"), &json!("ann")));
    assert_eq!((&shown["protocol"], &shown["hub"]), (&json!("registry"), &json!(hub.url)));
    assert_eq!(shown["held"], "1.00");
    assert_eq!(shown["available"], hub.balance("ann").await.0);
    assert!(shown["limits"].is_object());
    let worker = bob.old(&hub).ok("whoami", json!({})).await;
    assert_eq!((&worker["jobs_in_hand"], &worker["inbox_unread"]), (&json!(1), &json!(1)));
    assert_eq!(worker["skills"], json!([{"name": "sum", "price": "0.50"}]));
    for tool in ["whoami", "read_inbox", "next_job", "update_profile"] {
        McpClient::new(&hub, "/mcp", None, Era::New).fail(tool, json!({}), "no_key").await;
    }
    hub.stop().await;
}
