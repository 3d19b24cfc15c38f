//! The hub as an agent: it finds and hires others (R83–R85).

use serde_json::{Value, json};

use super::kit::{Client, HIRE, HUB, TaskWorker, first_text, hire_message, state, text_message};
use crate::kit::{TestHub, eventually};

struct Scene {
    hub: TestHub,
    client: Client,
}

impl Scene {
    async fn set() -> Self {
        let hub = TestHub::serve(&[]).await;
        let client = hub.rich_client("client").await;
        Self { hub, client }
    }

    async fn send(&self, message: Value) -> Value {
        let params = json!({ "message": message });
        self.hub.result(HUB, &self.client.key, "SendMessage", params).await
    }

    /// The names of the agents that a search finds, and its sentence.
    async fn find(&self, filter: Value) -> (Vec<String>, Value) {
        let mut message = text_message("m", "");
        message["parts"] = json!([{"data": {"find": filter}}]);
        let answer = self.send(message).await;
        let data = answer["message"]["parts"][1]["data"].clone();
        let names = data["agents"].as_array().unwrap_or_else(|| panic!("{answer}")).iter();
        let names = names.map(|one| one["name"].as_str().expect("a name").to_owned());
        (names.collect(), data)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_text_searches_and_is_answered_with_a_sentence_and_the_agents() {
    let scene = Scene::set().await;
    let skills =
        json!([{"skill_name": "route", "description": "Plans routes", "cost_per_call": 0.25}]);
    let worker = TaskWorker::with_skills(&scene.hub, "Geo Route Planner", skills).await;
    TaskWorker::join(&scene.hub, "analyze_text", "0.10").await;
    let name = worker.base.rsplit_once('/').expect("a name").1.to_owned();
    for text in ["route", "please plan a ROUTE for me", "Geo"] {
        let answer = scene.send(text_message("m-1", text)).await;
        let message = &answer["message"];
        assert_eq!(message["role"], "ROLE_AGENT");
        assert_eq!(first_text(message), format!("1 agent: {name} does route for 0.25 credits"));
        let agent = json!({"name": name, "description": "Plans routes",
            "card": format!("{}{}/.well-known/agent-card.json", scene.hub.url, worker.base),
            "protocol": "registry", "skill": "route", "price": "0.25", "presence": "ready"});
        let part =
            json!({"data": {"agents": [agent], "total": 1}, "mediaType": "application/json"});
        assert_eq!(message["parts"][1], part, "{text}");
    }
    let answer = scene.send(text_message("m-2", "nothing of the kind")).await;
    assert_eq!(answer["message"]["parts"][1]["data"], json!({"agents": [], "total": 0}));
    // A stream has the same message, and nothing is stored.
    let events =
        scene.hub.follow(HUB, &scene.client.key, text_message("m", "route")).await.rest().await;
    assert_eq!(events.len(), 1);
    assert!(events[0].data["message"]["parts"][1]["data"]["agents"].is_array());
    let listed = scene.hub.result(HUB, &scene.client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 0);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_is_in_the_order_of_the_hubs_ranking_and_who_is_away_comes_last() {
    let scene = Scene::set().await;
    let mut workers = Vec::new();
    for owner in ["first", "second", "third"] {
        let skills = json!([{"skill_name": "route", "cost_per_call": 0.10}]);
        workers.push(TaskWorker::with_skills(&scene.hub, owner, skills).await);
    }
    // The third proves itself.
    let message = hire_message("m", "hi", json!({"budget": "0.10"}));
    let params = json!({ "message": message });
    let (_, _) = tokio::join!(
        scene.hub.result(&workers[2].base, &scene.client.key, "SendMessage", params),
        workers[2].work(json!({"text": "done"}))
    );
    let (found, data) = scene.find(json!({"skill": "route"})).await;
    let name = |worker: &TaskWorker<'_>| worker.base.rsplit_once('/').expect("a name").1.to_owned();
    assert_eq!(found, [name(&workers[2]), name(&workers[0]), name(&workers[1])]);
    assert_eq!(data["total"], 3);
    let ranked = scene.hub.get("/v1/agents?skill=route", None).await.expect(200);
    let ranked = ranked.at("/items");
    let ranked: Vec<String> = ranked
        .as_array()
        .expect("agents")
        .iter()
        .map(|one| one["names"]["a2a"].as_str().expect("a name").to_owned())
        .collect();
    assert_eq!(found, ranked);
    // Those that are away are listed after the others.
    scene.hub.pass(rialto_core::time::Millis::hours(1));
    scene.hub.get("/v1/work", Some(&workers[1].agent.key)).await.expect(200);
    // That it was seen is written behind.
    let expected = [1, 2, 0].map(|at| name(&workers[at]));
    eventually(async || scene.find(json!({"skill": "route"})).await.0 == expected).await;
    let (_, data) = scene.find(json!({"skill": "route"})).await;
    let presence: Vec<&Value> =
        data["agents"].as_array().expect("agents").iter().map(|one| &one["presence"]).collect();
    assert_eq!(presence, ["ready", "away", "away"]);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_narrows_a_search() {
    let scene = Scene::set().await;
    let cheap = TaskWorker::with_skills(
        &scene.hub,
        "Cheap",
        json!([
        {"skill_name": "route", "description": "Walks", "cost_per_call": 0.05},
        {"skill_name": "sum", "cost_per_call": 0.50}]),
    )
    .await;
    let dear = TaskWorker::with_skills(
        &scene.hub,
        "Dear",
        json!([
        {"skill_name": "route", "description": "Drives fast", "cost_per_call": 0.90}]),
    )
    .await;
    scene.hub.join("walker@chorus").await;
    let name = |worker: &TaskWorker<'_>| worker.base.rsplit_once('/').expect("a name").1.to_owned();
    let peer = scene.hub.a2a_name("relay", "walker@chorus");
    for (filter, expected) in [
        (json!({"skill": "route"}), vec![name(&cheap), name(&dear)]),
        (json!({"skill": "sum"}), vec![name(&cheap)]),
        (json!({"skill": "dance"}), vec![]),
        (json!({"skill": "route", "maxPrice": "0.10"}), vec![name(&cheap)]),
        (json!({"skill": "route", "maxPrice": 0.9}), vec![name(&cheap), name(&dear)]),
        (json!({"text": "drives"}), vec![name(&dear)]),
        (json!({"text": "drives fast"}), vec![name(&dear)]),
        (json!({"protocol": "relay"}), vec![peer]),
        (json!({"protocol": "clara"}), vec![]),
        (json!({"skill": "route", "minScore": 50}), vec![name(&cheap), name(&dear)]),
        (json!({"skill": "route", "minScore": "50.1"}), vec![]),
        (json!({"skill": "route", "limit": 1}), vec![name(&cheap)]),
    ] {
        let (found, data) = scene.find(filter.clone()).await;
        assert_eq!(found, expected, "{filter}");
        let total = if filter.get("limit").is_some() { 2 } else { expected.len() };
        assert_eq!(data["total"], total, "{filter}");
    }
    for bad in [
        json!("route"),
        json!({"maxPrice": "much"}),
        json!({"minScore": "high"}),
        json!({"limit": 0}),
        json!({"limit": 21}),
        json!({"skill": 7}),
    ] {
        let mut message = text_message("m", "");
        message["parts"] = json!([{"data": {"find": bad}}]);
        let params = json!({ "message": message });
        let refused = scene.hub.refusal(HUB, &scene.client.key, "SendMessage", params).await;
        assert_eq!(refused.0, -32602, "{bad}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_hires_the_agent_that_is_chosen_as_asked() {
    let scene = Scene::set().await;
    let skills = |price: f64| json!([{"skill_name": "route", "cost_per_call": price}]);
    let dear = TaskWorker::with_skills(&scene.hub, "Dear", skills(0.30)).await;
    let cheap = TaskWorker::with_skills(&scene.hub, "Cheap", skills(0.10)).await;
    // The dear one has proven itself.
    let message = hire_message("m", "hi", json!({"budget": "0.30"}));
    let params = json!({ "message": message });
    let (_, _) = tokio::join!(
        scene.hub.result(&dear.base, &scene.client.key, "SendMessage", params),
        dear.work(json!({"text": "done"}))
    );
    for (select, worker) in
        [(json!(null), &dear), (json!("best"), &dear), (json!("cheapest"), &cheap)]
    {
        let hire = json!({"skill": "route", "budget": "0.50", "select": select});
        let (done, _) = tokio::join!(
            scene.send(hire_message("m-1", "to Lugano", hire)),
            worker.work(json!({"text": "Take the A2."}))
        );
        let task = &done["task"];
        assert_eq!(state(task), "TASK_STATE_COMPLETED", "{select}");
        let name = worker.base.rsplit_once('/').expect("a name").1;
        assert_eq!(task["metadata"][HIRE]["worker"], name);
        assert_eq!(first_text(&task["artifacts"][0]), "Take the A2.");
        // It is a task of the hub, and not one of that agent.
        let own =
            scene.hub.result(HUB, &scene.client.key, "GetTask", json!({"id": task["id"]})).await;
        assert_eq!(own["id"], task["id"]);
        let params = json!({"id": task["id"]});
        let there = scene.hub.refusal(&worker.base, &scene.client.key, "GetTask", params).await;
        assert_eq!(there.1, "TASK_NOT_FOUND");
    }
    let hire = json!({"skill": "route", "select": "worst"});
    let params = json!({"message": hire_message("m", "hi", hire)});
    assert_eq!(scene.hub.refusal(HUB, &scene.client.key, "SendMessage", params).await.0, -32602);
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_take_turns_or_the_one_with_the_least_to_do_is_hired() {
    let scene = Scene::set().await;
    let mut workers = Vec::new();
    for owner in ["first", "second", "third"] {
        let skills = json!([{"skill_name": "route", "cost_per_call": 0}]);
        workers.push(TaskWorker::with_skills(&scene.hub, owner, skills).await);
    }
    let turn = ["roundRobin"; 4].into_iter().zip([0, 1, 2, 0]);
    // The first has two tasks now, and the others one each.
    let least = ["leastBusy"; 3].into_iter().zip([1, 2, 0]);
    for (select, chosen) in turn.chain(least) {
        let hire = json!({"skill": "route", "select": select});
        let task = scene.hub.begin(HUB, &scene.client.key, hire_message("m", "hi", hire)).await;
        let work = scene.hub.get("/v1/work", Some(&workers[chosen].agent.key)).await.expect(200);
        let jobs = work.at("/jobs");
        let has_it = jobs.as_array().expect("jobs").iter().any(|job| job["id"] == task["id"]);
        assert!(has_it, "{select}: {}", work.text);
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_auction_takes_the_lowest_offer() {
    let scene = Scene::set().await;
    let skills = |price: f64| json!([{"skill_name": "route", "cost_per_call": price}]);
    let one = TaskWorker::with_skills(&scene.hub, "One", skills(0.30)).await;
    let two = TaskWorker::with_skills(&scene.hub, "Two", skills(0.30)).await;
    let hire = json!({"skill": "route", "budget": "0.50", "select": "auction"});
    let task = scene.hub.begin(HUB, &scene.client.key, hire_message("m", "hi", hire)).await;
    let path = format!("/v1/jobs/{}/offers", task["id"].as_str().expect("an id"));
    for (worker, price) in [(&one, 0.25), (&two, 0.20)] {
        let offer = json!({"price": price});
        scene.hub.post(&path, Some(&worker.agent.key), &offer).await.expect(201);
    }
    scene.hub.pass(rialto_core::time::Millis::seconds(6));
    let job = two.work(json!({"text": "done"})).await;
    assert_eq!(job["id"], task["id"]);
    let done = scene.hub.result(HUB, &scene.client.key, "GetTask", json!({"id": task["id"]})).await;
    assert_eq!(done["metadata"][HIRE]["paid"], "0.20", "{done}");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_that_nobody_offers_is_refused_in_a_message() {
    let scene = Scene::set().await;
    TaskWorker::join(&scene.hub, "route", "0.30").await;
    for (hire, code) in [
        (json!({"skill": "dance"}), "NO_SUCH_SKILL"),
        (json!({"skill": "route"}), "BUDGET_TOO_LOW"),
        (json!({"skill": "route", "budget": "0.10"}), "BUDGET_TOO_LOW"),
    ] {
        let answer = scene.send(hire_message("m", "hi", hire.clone())).await;
        assert_eq!(answer["message"]["metadata"][HIRE]["refused"], code, "{hire}: {answer}");
        if code == "NO_SUCH_SKILL" {
            let text =
                format!("no agent offers \"dance\"; GET {}/a2a/agents lists all", scene.hub.url);
            assert_eq!(first_text(&answer["message"]), text);
        }
    }
    // Nor one whose agents are all away.
    scene.hub.pass(rialto_core::time::Millis::hours(2));
    let hire = json!({"skill": "route", "budget": "0.30"});
    let answer = scene.send(hire_message("m", "hi", hire)).await;
    let told = &answer["message"]["metadata"][HIRE];
    assert_eq!(
        (&told["refused"], &told["retryable"]),
        (&json!("OFFLINE"), &json!(true)),
        "{answer}"
    );
    scene.hub.stop().await;
}
