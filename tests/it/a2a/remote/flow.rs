//! The ninth worked exchange of the requirements (section 7), compared whole.

use serde_json::{Value, json};

use super::server::Puppet;
use crate::a2a::flows::{printed, renamed, same};
use crate::kit::TestHub;

#[tokio::test]
async fn flow_9_a_server_is_registered_proven_and_hired() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let [register, refresh, hire, sent] = [0, 1, 2, 3].map(|number| printed("9_worker", number));
    let card_url = puppet.card_url();
    let names = [
        ("https://geo.example/.well-known/agent-card.json", card_url.as_str()),
        ("https://geo.example/a2a", puppet.url.as_str()),
        ("https://hub.example", hub.url.as_str()),
    ];
    let here = |value: &Value| renamed(value, &names);
    let mut body = here(&register["request"]["body"]);
    body["auth"]["token"] = "throw-away".into();
    let reply = hub.register_card(None, &body).await.expect(201);
    let mut expected = here(&register["response"]["body"]);
    let (key, token) = (reply.str("/api_key"), reply.str("/proof/params/token"));
    assert!(key.starts_with("rk_") && token.starts_with("po_"), "{}", reply.text);
    expected["api_key"] = key.as_str().into();
    expected["proof"]["params"]["token"] = token.into();
    let mut registered = reply.json();
    // It also says what to do with the proof, which the exchange leaves to the documentation.
    let next = registered.as_object_mut().and_then(|members| members.remove("next"));
    let next = next.expect("the next step").to_string();
    assert!(next.contains("/a2a/agents/geo-route-planner/refresh"), "{next}");
    assert_eq!(registered, expected);
    puppet.change_card(|card| card["capabilities"]["extensions"] = json!([reply.at("/proof")]));
    let refreshed = hub.refresh("geo-route-planner", &key).await.expect(200);
    assert_eq!(refreshed.json(), here(&refresh["response"]["body"]));

    let body = &hire["request"]["body"];
    let by = json!({"agent_id": body["orchestrator_id"], "agent_name": "Orchestrator",
        "owner_id": "acme", "skills": []});
    let by = hub.enrol(&by, None).await;
    hub.grant("acme", "10.00").await;
    let path = hire["request"]["path"].as_str().expect("a path");
    let (reply, ()) = tokio::join!(hub.post(path, Some(&by.key), body), async {
        let task = puppet.task().await;
        puppet.status(&task, "TASK_STATE_WORKING", None);
        let artifact = json!({"artifactId": "x", "parts": [{"text": "Take the A2."}]});
        puppet.artifact(&task, artifact, false);
        puppet.status(&task, "TASK_STATE_COMPLETED", None);
    });
    let reply = reply.expect(200);
    let mut expected = hire["response"]["body"].clone();
    for measured in ["execution_time_ms", "timestamp_utc"] {
        expected[measured] = reply.at(&format!("/{measured}"));
    }
    assert_eq!(reply.json(), expected);
    let job = reply.header("rialto-job").expect("the hub's id");

    let sends: Vec<_> = puppet.seen().into_iter().filter(|seen| seen.is_send()).collect();
    let [real] = &sends[..] else { panic!("{sends:?}") };
    let headers = sent["request"]["headers"].as_object().expect("headers");
    for (name, value) in headers {
        let value =
            if name == "Authorization" { "Bearer throw-away" } else { value.as_str().unwrap() };
        assert_eq!(real.header(name), Some(value), "{name}");
    }
    same(&sent["request"]["body"], &real.body);
    assert_eq!(real.body["params"]["message"]["messageId"], format!("{job}-1"));
    hub.stop().await;
}
