//! Every field of a registration with invalid values (R15, and the table of section 2.2). Each
//! refusal's example is tested, too: the body corrected by it is valid.

use serde_json::{Value, json};

use super::forms::{both_modes, registration, with};
use crate::kit::{TestHub, assert_malformed, assert_refused, counted, repaired, snapshot};

/// Posts the body at both paths, and the corrected one; only the last has an effect.
async fn refuse(hub: &TestHub, body: &Value, field: &str) {
    let before = counted(hub);
    let reply = hub.post("/registry/register", None, body).await;
    assert_malformed(&reply, field);
    assert_eq!(hub.post("/register", None, body).await.text, reply.text, "the same at the root");
    assert_eq!(counted(hub), before, "{body}");
    let better = repaired(body, &reply);
    // As the operator, who may use any owner's name.
    let again = hub.post("/registry/register", Some(&hub.operator), &better).await;
    assert_ne!(again.status, 400, "{field} repaired to {better}: {}", again.text);
}

/// All invalid values for a field of that kind.
fn wrong_names() -> Vec<Option<Value>> {
    let unseen =
        ["a\u{0}b", "a\nb", "\u{202e}ba", "a\u{200b}b", "\u{feff}a", "a\u{2066}b", "a\u{7f}"];
    let texts = unseen.map(str::to_owned).into_iter().chain([String::new(), "界".repeat(129)]);
    let kinds = [json!(7), json!(true), json!(["a"]), json!({"a": 1}), Value::Null];
    texts.map(Value::from).chain(kinds).map(Some).chain([None]).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_without_a_proper_agent_name_is_refused() {
    let hub = TestHub::serve(&[]).await;
    for wrong in wrong_names() {
        refuse(&hub, &with(&registration("new"), "/agent_name", wrong), "/agent_name").await;
    }
    for (n, fine) in
        ["x".to_owned(), "界".repeat(128), "Ünï çödé 🦜".to_owned()].into_iter().enumerate()
    {
        let body = with(&registration(&format!("o{n}")), "/agent_name", Some(json!(fine)));
        hub.post("/register", None, &body).await.expect(201);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_without_a_proper_owner_is_refused() {
    for hub in both_modes().await {
        for wrong in wrong_names() {
            refuse(&hub, &with(&registration("x"), "/owner_id", wrong), "/owner_id").await;
        }
        // Prefixes that the hub uses for owners of other protocols.
        for prefix in ["relay:", "openclaw:", "clara:", "agora:", "a2a:", "hub:"] {
            for owner in
                [prefix.to_owned(), format!("{prefix}alice@chorus"), format!("{prefix}issuance")]
            {
                refuse(&hub, &registration(&owner), "/owner_id").await;
                let body = registration(&owner);
                let reply = hub.post("/registry/register", Some(&hub.operator), &body).await;
                assert_malformed(&reply, "/owner_id");
            }
        }
        for fine in
            ["o".repeat(128), "registry:o".to_owned(), "relays:o".to_owned(), "a relay:".to_owned()]
        {
            hub.post("/register", None, &registration(&fine)).await.expect(201);
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_with_a_wrong_endpoint_is_refused() {
    let hub = TestHub::serve(&[]).await;
    for wrong in [
        json!(7),
        json!(["https://agent.example"]),
        json!("https://"),
        json!("http:agent.example"),
        json!("https://agent-host:port/jobs"),
        json!("https://user:word@agent.example/"),
        json!("https://agent.example:0/"),
        json!("http://10.0.0.1/jobs"),
        json!("https://169.254.169.254/latest/meta-data"),
        json!("https://[fe80::1]/"),
        json!("HTTPS://0x0a000001/"),
    ] {
        let body = with(&registration("new"), "/api_endpoint", Some(wrong));
        refuse(&hub, &body, "/api_endpoint").await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_never_called_means_that_the_agent_polls() {
    let hub = TestHub::serve(&[]).await;
    for (n, endpoint) in
        ["local://memory", "local://", "ftp://agent.example/", "", "me"].into_iter().enumerate()
    {
        let body = with(&registration(&format!("o{n}")), "/api_endpoint", Some(json!(endpoint)));
        let id = hub.post("/register", None, &body).await.expect(201).str("/agent_id");
        let agent = hub.get(&format!("/registry/agents/{id}"), None).await.expect(200);
        assert_eq!(agent.str("/api_endpoint"), format!("{}/registry/agents/{id}", hub.url));
        let asking = hub.orchestrator(&format!("a{n}")).await;
        hub.grant(&asking.owner, "1").await;
        let ask = json!({"agent_id": id, "skill_name": "analyze_text", "budget": 0.10});
        let asked = hub.post("/registry/jobs", Some(&asking.key), &ask).await.expect(202);
        assert_eq!(asked.str("/status"), "PENDING", "{endpoint}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_registration_with_wrong_skills_is_refused_by_the_field_that_is_wrong() {
    for hub in both_modes().await {
        let one = registration("new");
        let first = with(&one["skills"][0], "/skill_name", Some(json!("s")));
        let two =
            with(&one, "/skills", Some(json!([first, {"skill_name": "t", "cost_per_call": 1}])));
        for wrong in [json!("analyze_text"), json!({}), json!(1), Value::from(vec![json!({}); 65])]
        {
            refuse(&hub, &with(&two, "/skills", Some(wrong)), "/skills").await;
        }
        for wrong in [json!("analyze_text"), json!(1), json!([]), Value::Null] {
            refuse(&hub, &with(&two, "/skills/1", Some(wrong)), "/skills/1").await;
        }
        for wrong in wrong_names() {
            refuse(&hub, &with(&two, "/skills/1/skill_name", wrong), "/skills/1/skill_name").await;
        }
        let twice = with(&two, "/skills/0/skill_name", Some(json!("t")));
        refuse(&hub, &twice, "/skills/1/skill_name").await;
        for wrong in
            [None, Some(Value::Null), Some(json!(-0.01)), Some(json!("0.10")), Some(json!(0.001))]
        {
            let body = with(&two, "/skills/1/cost_per_call", wrong);
            refuse(&hub, &body, "/skills/1/cost_per_call").await;
        }
        for wrong in [json!(1), json!(["a"]), json!({}), json!("x".repeat(4_097))] {
            let body = with(&two, "/skills/0/description", Some(wrong));
            refuse(&hub, &body, "/skills/0/description").await;
        }
        for name in ["input_schema", "output_schema"] {
            for wrong in [json!("string"), json!(["text"]), json!(1), json!(false)] {
                let at = format!("/skills/0/{name}");
                refuse(&hub, &with(&two, &at, Some(wrong)), &at).await;
            }
        }
        hub.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rest_of_a_registration_is_checked_as_well() {
    let hub = TestHub::serve(&[]).await;
    for (field, wrong) in [
        ("/timestamp_utc", json!("today")),
        ("/timestamp_utc", json!(0)),
        ("/version", json!("2.0")),
        ("/rotate_key", json!("yes")),
        ("/rotate_key", json!(1)),
        ("/agent_id", json!("bob")),
    ] {
        refuse(&hub, &with(&registration("new"), field, Some(wrong)), field).await;
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_update_leaves_the_agent_as_it_was() {
    for hub in both_modes().await {
        let agent = hub.enrol(&registration("acme"), None).await;
        let before = snapshot(&hub).await;
        let body = with(&registration("acme"), "/agent_id", Some(json!(agent.id)));
        let changed = with(&body, "/agent_name", Some(json!("another name")));
        for (field, wrong) in [
            ("/skills/0/cost_per_call", Some(json!(0.005))),
            ("/skills/0/skill_name", None),
            ("/version", Some(json!("9"))),
            ("/api_endpoint", Some(json!("https://192.168.0.1/"))),
        ] {
            let reply =
                hub.post("/register", Some(&agent.key), &with(&changed, field, wrong)).await;
            assert_malformed(&reply, field);
        }
        let other = with(&changed, "/owner_id", Some(json!("globex")));
        let reply = hub.post("/register", Some(&agent.key), &other).await;
        assert_refused(&reply, 403, "FORBIDDEN");
        assert_eq!(snapshot(&hub).await, before);
        hub.stop().await;
    }
}
