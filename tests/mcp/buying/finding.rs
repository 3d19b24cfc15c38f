//! `find_agents`, `describe_agent`, `explain_reputation`, and how agents are named.

use rialto_core::time::Millis;
use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::market::Market;

fn names(found: &Value) -> Vec<String> {
    let agents = found["agents"].as_array().expect("agents");
    agents.iter().map(|agent| agent["name"].as_str().expect("a name").to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_ranked_as_v1_ranks_them_and_filtered_before_they_are_paged() {
    let market = Market::open().await;
    let mut workers = Vec::new();
    for (name, price) in [("new", "0.05"), ("proven", "0.07"), ("dear", "0.50"), ("third", "0.06")]
    {
        workers.push(market.worker(name, "sum", price, json!({"words": 1})).await);
    }
    let client = market.buyer(Era::New);
    client.ok("hire", json!({"skill": "sum", "input": {}, "budget": "1", "agent": "proven"})).await;
    let ranked = market.hub.get("/v1/agents?skill=sum", None).await.expect(200).json();
    let ranked: Vec<String> = ranked["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|agent| agent["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(ranked[0], "proven");
    // Anyone may look.
    let anonymous = McpClient::new(&market.hub, "/mcp", None, Era::New);
    let found = anonymous.ok("find_agents", json!({"skill": "sum"})).await;
    assert_eq!(names(&found), ranked);
    assert_eq!(
        found["untrusted"],
        json!(["/agents/*/name", "/agents/*/skills/*/name", "/agents/*/skills/*/about"])
    );
    let first = &found["agents"][0];
    assert_eq!(first["agent"], market.address(&workers[1].0).await);
    assert_eq!(first["skills"], json!([{"name": "sum", "price": "0.07", "about": "Does sum"}]));
    assert_eq!((&first["online"], &first["jobs_done"]), (&json!(true), &json!(1)));
    // Pages of the cheap ones, one at a time.
    let (mut paged, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let arguments = json!({"skill": "sum", "max_price": 0.07, "limit": 1, "cursor": cursor});
        let page = client.ok("find_agents", arguments).await;
        assert!(names(&page).len() <= 1);
        paged.extend(names(&page));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    let cheap: Vec<&String> = ranked.iter().filter(|name| *name != "dear").collect();
    assert_eq!(paged.iter().collect::<Vec<_>>(), cheap);
    let trusted = client.ok("find_agents", json!({"skill": "sum", "min_score": 50.5})).await;
    assert_eq!(names(&trusted), ["proven"]);
    let text =
        client.fail("find_agents", json!({"skill": "sum", "cursor": "x"}), "malformed").await;
    assert!(text.contains("next_cursor"), "{text}");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_searches_names_skills_and_descriptions_and_only_agents_that_are_there_count() {
    let market = Market::open().await;
    let body = |name: &str, skill: &str, about: &str| {
        json!({"agent_name": name, "owner_id": name, "version": "0.1", "skills": [
            {"skill_name": skill, "cost_per_call": 0.1, "description": about}]})
    };
    let by_name = market.hub.enrol(&body("Translator", "x", "x"), None).await;
    let by_skill = market.hub.enrol(&body("b", "translate_text", "x"), None).await;
    let by_text = market.hub.enrol(&body("c", "y", "Will TRANSLATE for you"), None).await;
    // They were there when they registered, and do not come back by themselves.
    market.pass(Millis::hours(1));
    let client = market.buyer(Era::New);
    let away = client.ok("find_agents", json!({"query": "translat"})).await;
    assert_eq!(names(&away), Vec::<String>::new());
    assert!(away.get("untrusted").is_none(), "{away}");
    let all = client.ok("find_agents", json!({"query": "translat", "online": "false"})).await;
    assert_eq!(names(&all), ["Translator", "b", "c"]);
    for agent in [&by_name, &by_skill, &by_text] {
        market.beat(agent).await;
    }
    // Without a query, agents that nobody can hire are left out.
    assert_eq!(names(&client.ok("find_agents", json!({})).await), ["Translator", "b", "c"]);
    assert_eq!(
        names(&client.ok("find_agents", json!({"query": "ada's"})).await),
        ["ada's orchestrator"]
    );
    let there = client.ok("find_agents", json!({"query": "TRANSLAT"})).await;
    assert_eq!(names(&there), ["Translator", "b", "c"]);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lists_and_descriptions_stay_short_whatever_agents_write() {
    let market = Market::open().await;
    let skill = |n: usize| {
        json!({"skill_name": format!("skill_{n}"), "cost_per_call": 0.1,
            "description": format!("\u{202E}\u{200B}{}", "long \"words\" ".repeat(40)),
            "input_schema": {"text": "string"}})
    };
    for n in 0..25 {
        let skills: Vec<Value> = (0..12).map(skill).collect();
        let body = json!({"agent_name": format!("agent {n}"), "owner_id": format!("o{n}"), "version": "0.1",
            "skills": skills, "api_endpoint": "http://127.0.0.1:9/"});
        market.hub.enrol(&body, None).await;
    }
    let client = market.buyer(Era::New);
    let found = client.ok("find_agents", json!({})).await;
    assert_eq!(names(&found).len(), 10, "10 by default");
    let text = found.to_string();
    assert!(text.chars().count() <= 24_000, "{}", text.chars().count());
    let agent = &found["agents"][0];
    assert_eq!(agent["skills"].as_array().unwrap().len(), 5);
    assert_eq!(agent["more_skills"], 7);
    let about = agent["skills"][0]["about"].as_str().unwrap();
    assert!(about.chars().count() <= 160 && !about.contains(['\u{202E}', '\u{200B}']), "{about}");
    let (mut seen, mut cursor) = (0, Value::Null);
    loop {
        let page = client.call("find_agents", json!({"limit": 20, "cursor": cursor})).await;
        let text = page["content"][0]["text"].as_str().unwrap();
        assert!(text.chars().count() <= 24_000, "{}", text.chars().count());
        seen += names(&page["structuredContent"]).len();
        cursor = page["structuredContent"]["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(seen, 25, "and none is left out");
    let one = client.ok("describe_agent", json!({"agent": "agent 3"})).await;
    assert_eq!(one["skills"].as_array().unwrap().len(), 12);
    assert!(one["skills"][0]["about"].as_str().unwrap().chars().count() <= 300);
    assert!(one.to_string().chars().count() <= 24_000);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_described_with_its_names_and_json_schemas() {
    let market = Market::open().await;
    let (agent, _worker) = market.worker("word-counter", "count_words", "0.05", json!({})).await;
    let address = market.address(&agent).await;
    let client = McpClient::new(&market.hub, "/mcp", None, Era::Old);
    let shown =
        client.ok("describe_agent", json!({"agent": "word-counter", "skill": "count_words"})).await;
    assert_eq!((&shown["agent"], &shown["name"]), (&json!(address), &json!("word-counter")));
    assert_eq!(shown["names"]["registry"], json!(agent.id));
    assert_eq!(shown["owner"], "owner of word-counter");
    let schema = &shown["skills"][0]["input_schema"];
    assert_eq!(schema["properties"]["text"]["type"], "string");
    assert_eq!(schema["required"], json!(["text"]));
    client
        .fail("describe_agent", json!({"agent": "word-counter", "skill": "x"}), "no_such_skill")
        .await;

    let explained = client.ok("explain_reputation", json!({"agent": address})).await;
    assert_eq!(explained["agent"], json!(address));
    assert_eq!(explained["registry"]["successes"], 0);
    let explanation = explained["explanation"].as_str().unwrap();
    assert!(explanation.contains("registry: from 0 to 100"), "{explanation}");
    assert!(explanation.contains("openclaw: from 0 to 1"), "{explanation}");
    assert!(!explained.to_string().contains("null"), "{explained}");
    let own = market.buyer(Era::New).ok("explain_reputation", json!({})).await;
    assert_eq!(own["agent"], market.address(&market.buyer).await);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_are_named_by_address_number_id_or_a_name_that_only_one_has() {
    let market = Market::open().await;
    let (agent, _worker) = market.worker("solo", "sum", "0.05", json!({})).await;
    let number =
        market.hub.get(&format!("/v1/agents/{}", agent.id), None).await.expect(200).at("/id");
    let address = market.address(&agent).await;
    let client = market.buyer(Era::New);
    let registry = format!("registry:{}", agent.id);
    for name in [
        json!(address),
        number.clone(),
        json!(number.to_string()),
        json!(registry),
        json!("solo"),
        json!(agent.id),
    ] {
        let found = client.ok("describe_agent", json!({"agent": name})).await;
        assert_eq!(found["agent"], json!(address), "{name}");
    }
    let mut twins = Vec::new();
    for owner in ["a", "b", "c", "d", "e", "f"] {
        let body = json!({"agent_name": "twin", "owner_id": owner, "version": "0.1", "skills": []});
        let twin = market.hub.enrol(&body, None).await;
        twins.push(market.address(&twin).await);
    }
    let text = client.fail("describe_agent", json!({"agent": "twin"}), "ambiguous").await;
    let shown = twins.iter().filter(|address| text.contains(address.as_str())).count();
    assert_eq!(shown, 5, "{text}");
    let text =
        client.fail("describe_agent", json!({"agent": "nobody\u{202E}\n"}), "not_found").await;
    assert!(text.contains(r#"no agent is called "nobody ""#), "{text}");
    // A name that another agent has as its id is not guessed.
    let taken = format!("registry:{}", agent.id);
    let body = json!({"agent_name": taken, "owner_id": "thief", "version": "0.1", "skills": []});
    market.hub.enrol(&body, None).await;
    let found = client.ok("describe_agent", json!({"agent": taken})).await;
    assert_eq!(found["agent"], json!(address));
    // An agent that has left has no display name.
    market.hub.call("DELETE", "/v1/me", Some(&agent.key), None).await;
    market.hub.stop().await;
}
