//! Tests of finding and showing agents.

use rialto_core::command::Command;
use rialto_core::job::Selection;

use super::kit::{Agent, Hub};

/// The worker completes one job for the client.
async fn succeeds(hub: &Hub, client: &Agent, worker: &Agent) {
    let job = hub.hire(client, "sum", "0.10", Selection::Direct(worker.id)).await;
    hub.report(&job, true).await;
}

/// An item's position in the ranking, from the numbers it shows.
fn place(item: &serde_json::Value) -> impl Ord + use<> {
    let number = |name: &str| (item[name].as_f64().expect("a number") * 1e6).round() as u64;
    let settled = number("jobs_settled");
    let shaded = settled == 0 && number("owner_failures") > 0;
    let better = ["rank_score", "counterparties", "credits_paid", "score", "jobs_settled"];
    let better = better.map(|name| std::cmp::Reverse(number(name)));
    (settled == 0, shaded, better, number("id"))
}

fn names(items: &[serde_json::Value]) -> Vec<&str> {
    items.iter().map(|item| item["name"].as_str().expect("a name")).collect()
}

#[tokio::test]
async fn a_skill_ranks_the_proven_before_the_new_and_says_by_what_numbers() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let _idle = hub.enrol("idle", "acme", Some(("sum", "0.01"))).await;
    let _proven = hub.enrol("proven", "globex", Some(("sum", "0.05"))).await;
    // Of two new agents the hub prefers the cheaper one; once it has left, the other gets the job.
    hub.engine.run(Command::Remove { agent: _idle.id, by_operator: false }).await.expect("gone");
    let job = hub.open(&client, "sum", "1.00").await;
    hub.succeed(&job).await;
    hub.enrol("new", "initech", Some(("sum", "0.01"))).await;
    hub.enrol("other", "initech", Some(("other", "0.01"))).await;
    hub.clock.advance(rialto_core::time::Millis::seconds(90));

    let got = hub.get("/v1/agents?skill=sum", "").await;
    assert_eq!(got.status, 200);
    let items = got.body["items"].as_array().expect("items");
    assert_eq!(names(items), ["proven", "new"]);
    assert_eq!(
        (items[0]["jobs_settled"].as_u64(), items[0]["age_seconds"].as_u64()),
        (Some(1), Some(90))
    );
    assert_eq!(items[0]["counterparties"], 1);
    assert_eq!(items[0]["owner_failures"], 0);
    assert!(got.text.contains(r#""credits_paid":0.05"#), "{}", got.text);
    assert!(got.text.contains(r#""rank_score":51.0"#), "{}", got.text);
    assert!(got.text.contains(r#""score":51.0"#), "{}", got.text);
    assert!(got.text.contains(r#""price":0.05"#), "{}", got.text);
    assert_eq!(items[0]["registered_at"], "2026-02-11T12:00:00.000Z");
    assert_eq!(items[0]["owner"], "globex");
    assert_eq!(items[0]["online"], true);
    assert_eq!(names(&hub.all("/v1/agents?skill=sum", "", 1).await), ["proven", "new"]);
}

#[tokio::test]
async fn all_pages_together_are_the_whole_ranking() {
    let hub = Hub::start().await;
    hub.grant("rich", "100.00").await;
    let mut clients = vec![hub.enrol("client", "rich", None).await];
    for n in 0..3 {
        let owner = format!("rich{n}");
        hub.grant(&owner, "10.00").await;
        clients.push(hub.enrol(&format!("client{n}"), &owner, None).await);
    }
    for n in 0_u64..40 {
        let price = ["0.01", "0.02", "0.03"][(n % 3) as usize];
        let worker =
            hub.enrol(&format!("a{n}"), &format!("o{}", n % 20), Some(("sum", price))).await;
        for turn in 0..n % 5 {
            let only = Selection::Direct(worker.id);
            let client = &clients[(turn % (1 + n % 4)) as usize];
            let job = hub.hire(client, "sum", "0.10", only).await;
            hub.report(&job, (n * 7 + turn) % 3 != 0).await;
        }
    }
    let whole = hub.all("/v1/agents?skill=sum", "", 200).await;
    assert_eq!(whole.len(), 40);
    assert!(whole.is_sorted_by_key(place));
    for limit in [1, 3, 7, 39, 40] {
        assert_eq!(hub.all("/v1/agents?skill=sum", "", limit).await, whole, "{limit}");
    }
}

#[tokio::test]
async fn two_owners_that_hire_each_other_rank_below_agents_with_more_requesters() {
    let hub = Hub::start().await;
    let ring = hub.enrol("ring", "ring", Some(("sum", "0.01"))).await;
    hub.grant("friend", "10.00").await;
    // One owner is one counterparty, however many agents it has.
    for n in 0..12 {
        let friend = hub.enrol(&format!("friend{n}"), "friend", None).await;
        succeeds(&hub, &friend, &ring).await;
    }
    let liked = hub.enrol("liked", "liked", Some(("sum", "0.01"))).await;
    for n in 0..6 {
        let owner = format!("rich{n}");
        hub.grant(&owner, "1.00").await;
        succeeds(&hub, &hub.enrol(&owner, &owner, None).await, &liked).await;
    }
    // Work between agents of one owner does not count.
    hub.grant("liked", "1.00").await;
    succeeds(&hub, &hub.enrol("own", "liked", None).await, &liked).await;
    let items = hub.all("/v1/agents?skill=sum", "", 1).await;
    assert_eq!(names(&items), ["liked", "ring"], "although the ring has the higher score");
    let shown = |item: &serde_json::Value| {
        let number = |name: &str| item[name].as_f64().expect("a number");
        ["score", "rank_score", "counterparties", "jobs_settled"].map(number)
    };
    assert_eq!(shown(&items[0]), [56.0, 56.0, 6.0, 6.0]);
    assert_eq!(shown(&items[1]), [62.0, 55.0, 1.0, 12.0]);
    assert_eq!(items[0]["credits_paid"].to_string(), "0.06");
}

#[tokio::test]
async fn the_next_id_of_an_owner_that_failed_is_no_clean_newcomer() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let bad = hub.enrol("bad", "shady", Some(("sum", "0.01"))).await;
    for _ in 0..2 {
        let job = hub.hire(&client, "sum", "0.10", Selection::Direct(bad.id)).await;
        hub.report(&job, false).await;
    }
    hub.engine.run(Command::Remove { agent: bad.id, by_operator: false }).await.expect("gone");
    let again = hub.enrol("again", "shady", Some(("sum", "0.01"))).await;
    hub.enrol("clean", "honest", Some(("sum", "0.01"))).await;
    let ranked = async |hub: &Hub| {
        let items = hub.all("/v1/agents?skill=sum", "", 1).await;
        let shown = |item: &serde_json::Value| {
            let worth = item["rank_score"].as_f64().expect("a number");
            (item["name"].to_string(), worth, item["owner_failures"].as_u64())
        };
        items.iter().map(shown).collect::<Vec<_>>()
    };
    let clean = ("\"clean\"".to_owned(), 50.0, Some(0));
    let shaded = [clean.clone(), ("\"again\"".to_owned(), 41.0, Some(2))];
    assert_eq!(
        ranked(&hub).await,
        shaded,
        "an earlier agent with a penalty is behind a new one without"
    );
    // One completed job proves it, and offsets one of the failures.
    succeeds(&hub, &client, &again).await;
    assert_eq!(ranked(&hub).await, [("\"again\"".to_owned(), 45.5, Some(2)), clean]);
    // The protocols' own rankings and the score itself are not affected.
    let shown = hub.get(&format!("/v1/agents/{}", again.id), "").await;
    assert!(shown.text.contains(r#""score":51.0"#), "{}", shown.text);
}

#[tokio::test]
async fn lists_go_by_age_and_can_be_narrowed() {
    let hub = Hub::start().await;
    for n in 0..7 {
        let skill = format!("Skill-{}", n % 2);
        hub.enrol(&format!("Agent-{n}"), "acme", Some((&skill, "1"))).await;
    }
    let gone = hub.enrol("gone", "acme", None).await;
    hub.engine.run(Command::Remove { agent: gone.id, by_operator: false }).await.expect("gone");
    let all = hub.all("/v1/agents", "", 2).await;
    assert_eq!(all.len(), 7, "no agent that has left");
    assert_eq!(names(&all)[..2], ["Agent-0", "Agent-1"]);
    assert_eq!(hub.all("/v1/agents?q=skill-1", "", 2).await.len(), 3);
    assert_eq!(names(&hub.all("/v1/agents?q=AGENT-3", "", 2).await), ["Agent-3"]);
    assert_eq!(hub.all("/v1/agents?skill=Skill-0&q=agent-4", "", 1).await.len(), 1);
    assert_eq!(hub.all("/v1/agents?online=false", "", 2).await.len(), 0);
    assert_eq!(hub.all("/v1/agents?skill=Skill-0&online=false", "", 2).await.len(), 0);
    assert_eq!(hub.all("/v1/agents?protocol=registry&online=true", "", 3).await.len(), 7);
    assert_eq!(hub.all("/v1/agents?q=nobody", "", 3).await.len(), 0);
}

#[tokio::test]
async fn a_cursor_survives_rows_that_arrive_in_between() {
    let hub = Hub::start().await;
    for n in 0..4 {
        hub.enrol(&format!("a{n}"), "acme", Some(("sum", "1"))).await;
    }
    for path in ["/v1/agents?limit=2", "/v1/agents?limit=2&skill=sum"] {
        let first = hub.get(path, "").await;
        hub.enrol("late", "acme", Some(("sum", "1"))).await;
        let next = first.body["next_cursor"].as_str().expect("there is more");
        let second = hub.get(&format!("{path}&cursor={next}"), "").await;
        let names = names(second.body["items"].as_array().expect("items"))[..2].to_vec();
        assert_eq!(names, ["a2", "a3"]);
    }
}

#[tokio::test]
async fn an_agent_is_found_by_number_and_by_any_name() {
    let hub = Hub::start().await;
    let ada = hub.enrol("Ada", "acme", Some(("sum", "0.000001"))).await;
    let paths = [
        ada.id.to_string(),
        ada.native.clone(),
        ada.native.to_uppercase(),
        format!("registry:{}", ada.native),
    ];
    for name in paths {
        let got = hub.get(&format!("/v1/agents/{name}"), "").await;
        assert_eq!((got.status, got.body["id"].as_u64()), (200, Some(ada.id.0)), "{name}");
        assert_eq!(got.body["names"]["registry"], ada.native);
        assert!(got.text.contains(r#""price":0.000001"#));
        assert!(got.text.contains(r#""input_schema":{"text":"string"}"#));
        assert!(!got.text.contains("s3cret") && !got.text.contains("secret.example"));
    }
    hub.engine.run(Command::Remove { agent: ada.id, by_operator: false }).await.expect("gone");
    let unknown = hub.get("/v1/agents/99", "").await;
    unknown.is_problem(404, "not_found");
    for name in [ada.id.to_string(), ada.native, "0".to_owned(), "%FF".to_owned(), "01".to_owned()]
    {
        assert_eq!(hub.get(&format!("/v1/agents/{name}"), "").await.text, unknown.text, "{name}");
    }
}

#[tokio::test]
async fn bad_questions_are_told_what_is_wrong_with_them() {
    let hub = Hub::start().await;
    for (query, field) in [
        ("limit=0", "?limit"),
        ("limit=201", "?limit"),
        ("cursor=xyz", "?cursor"),
        ("cursor=", "?cursor"),
        ("online=yes", "?online"),
        ("protocol=smtp", "?protocol"),
        ("q=", "?q"),
        ("skill=", "?skill"),
        ("q=a&q=b", "?q"),
        ("skll=sum", "?skll"),
    ] {
        let got = hub.get(&format!("/v1/agents?{query}"), "").await;
        got.is_problem(400, "malformed");
        assert_eq!(got.body["field"], field, "{query}");
    }
    let misspelt = hub.get("/v1/agents?skll=sum", "").await;
    assert_eq!(misspelt.body["detail"], "skll is an unknown parameter: did you mean skill?");
    assert!(misspelt.body.get("example").is_none(), "{}", misspelt.text);
    let listed = hub.get("/v1/agents?cursor=YS41", "").await;
    assert_eq!(listed.status, 200, "a.5");
    hub.get("/v1/agents?skill=sum&cursor=YS41", "").await.is_problem(400, "malformed");
}

#[tokio::test]
async fn many_agents_are_listed_whole_though_each_page_looks_at_few() {
    let hub = Hub::start().await;
    for n in 0..1_300 {
        hub.enrol(&format!("a{n}"), "acme", None).await;
    }
    hub.enrol("needle", "acme", None).await;
    assert_eq!(hub.all("/v1/agents", "", 200).await.len(), 1_301);
    let got = hub.get("/v1/agents?q=needle", "").await;
    assert_eq!(names(got.body["items"].as_array().expect("items")), ["needle"]);
}
