//! Keys and their callers (R76–R79, and C5 for the names of clients).

use serde_json::{Value, json};

use super::kit::{HUB, TaskWorker, id, rpc, state, text_message};
use crate::kit::{TestHub, counted};
use crate::openclaw::kit::Hub;

/// Every operation of a base with a body that would be accepted, but for its task.
fn operations(base: &str, task: &str) -> Vec<(&'static str, String, String)> {
    let message = json!({"message": text_message("m", "hi"),
        "configuration": {"returnImmediately": true}});
    let follow_up = json!({"message": {"messageId": "m", "role": "ROLE_USER", "taskId": task,
        "parts": [{"text": "hi"}]}});
    let push = json!({"url": "https://client.example/hook"});
    let configs = format!("{base}/tasks/{task}/pushNotificationConfigs");
    vec![
        ("POST", base.to_owned(), rpc(1, "ListTasks", json!({})).to_string()),
        ("POST", format!("{base}/"), rpc(1, "GetTask", json!({"id": task})).to_string()),
        ("POST", format!("{base}/message:send"), message.to_string()),
        ("POST", format!("{base}/message:stream"), follow_up.to_string()),
        ("GET", format!("{base}/tasks"), String::new()),
        ("GET", format!("{base}/tasks/{task}"), String::new()),
        ("POST", format!("{base}/tasks/{task}:cancel"), String::new()),
        ("POST", format!("{base}/tasks/{task}:subscribe"), String::new()),
        ("GET", format!("{base}/tasks/{task}:subscribe"), String::new()),
        ("POST", configs.clone(), push.to_string()),
        ("GET", configs.clone(), String::new()),
        ("GET", format!("{configs}/c"), String::new()),
        ("DELETE", format!("{configs}/c"), String::new()),
        ("GET", format!("{base}/extendedAgentCard"), String::new()),
    ]
}

const UNKNOWN: &str = "00000000-0000-4000-8000-000000000000";

#[tokio::test(flavor = "multi_thread")]
async fn without_a_good_key_everything_but_cards_lists_and_registration_is_401() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let former = hub.a2a_client("former").await;
    hub.call("DELETE", "/v1/keys", Some(&former.key), None).await.expect(200);
    for base in [HUB, &worker.base, &format!("{HUB}/some-tenant")] {
        for (method, path, _) in operations(base, UNKNOWN) {
            for key in ["", "rk_wrong", former.key.as_str()] {
                if base.ends_with("some-tenant") && (path == base || path.ends_with('/')) {
                    continue;
                }
                // A body that is not even JSON is not looked at.
                let reply = hub.request((method, &path), key, &[], "{not json").await.expect(401);
                assert_eq!(reply.header("www-authenticate"), Some("Bearer"), "{method} {path}");
                assert!(reply.text.contains("UNAUTHENTICATED"), "{}", reply.text);
                let why = match key {
                    "" => "authentication required",
                    _ => "this key is not known here",
                };
                let next = format!("POST {}/a2a/agents", hub.url);
                assert!(reply.text.contains(why) && reply.text.contains(&next), "{}", reply.text);
            }
        }
    }
    for (method, path) in [("POST", "/a2a/agents/former/refresh"), ("DELETE", "/a2a/agents/former")]
    {
        hub.request((method, path), "", &[], "{not json").await.expect(401);
    }
    for path in [HUB, &worker.base, "/a2a/jwks.json", "/a2a/agents", "/.well-known/ai-catalog.json"]
    {
        hub.get(path, None).await.expect(200);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_key_acts_for_no_agent() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let before = counted(&hub);
    for base in [HUB, worker.base.as_str()] {
        for (method, path, body) in operations(base, UNKNOWN) {
            let reply = hub.request((method, &path), &hub.operator, &[], &body).await.expect(403);
            assert!(reply.text.contains("FORBIDDEN"), "{method} {path}: {}", reply.text);
        }
    }
    assert_eq!(counted(&hub), before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_an_agent_of_any_protocol_is_that_agent() {
    let hub = Hub::serve(&[]).await;
    let node = hub.node("summer").await;
    let hub = hub.0;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let boss = hub.orchestrator("boss").await;
    let peer = hub.join("alice@chorus").await;
    let client = hub.a2a_client("client").await;
    for (key, requester) in [
        (&boss.key, hub.a2a_name("registry", &boss.id)),
        (&peer.key, hub.a2a_name("relay", "alice@chorus")),
        (&node.key, hub.a2a_name("openclaw", &node.id)),
        (&client.key, "client".to_owned()),
    ] {
        let task = hub.begin(&worker.base, key, text_message("m", "hi")).await;
        let shown = hub.get(&format!("/v1/jobs/{}", id(&task)), Some(key)).await.expect(200);
        let job = hub.engine.with_world(|world| {
            let uuid = id(&task).parse().expect("an id");
            let job = world.job_by_uuid(uuid).expect("a job");
            let agent = match job.request.requester {
                rialto_core::job::Requester::Agent(agent) => agent,
                ref guest => panic!("{guest:?}"),
            };
            world.alias_of(agent, rialto_protocols::a2a::ID).expect("an alias").to_owned()
        });
        assert_eq!(job, requester, "{}", shown.text);
        let listed = hub.result(HUB, key, "ListTasks", json!({})).await;
        assert_eq!(listed["totalSize"], 1);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_another_caller_is_not_found_in_every_operation() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let (owner, other) = (hub.a2a_client("owner").await, hub.a2a_client("other").await);
    let task = id(&hub.begin(&worker.base, &owner.key, text_message("m", "hi")).await);
    let mut create = json!({"url": "https://client.example/hook", "id": "c"});
    create["taskId"] = task.as_str().into();
    hub.result(&worker.base, &owner.key, "CreateTaskPushNotificationConfig", create).await;
    let before = counted(&hub);
    // The worker of a task is not its requester either.
    for key in [&other.key, &worker.agent.key] {
        for base in [HUB, worker.base.as_str()] {
            let about = operations(base, &task).into_iter().zip(operations(base, UNKNOWN));
            for ((method, path, body), (_, unknown_path, unknown_body)) in about {
                let opens = path.ends_with("message:send");
                let names_task = path.contains(&task) || body.contains(&task);
                if opens || !names_task {
                    continue;
                }
                let reply = hub.request((method, &path), key, &[], &body).await;
                let unknown = hub.request((method, &unknown_path), key, &[], &unknown_body).await;
                assert!(reply.text.contains("TASK_NOT_FOUND"), "{method} {path}: {}", reply.text);
                assert_eq!(reply.status, unknown.status, "{method} {path}");
                assert_eq!(reply.text, unknown.text.replace(UNKNOWN, &task), "{method} {path}");
            }
        }
    }
    assert_eq!(counted(&hub), before);
    let mine = hub.get_task(&worker.base, &owner.key, &task).await;
    assert_eq!(state(&mine), "TASK_STATE_SUBMITTED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_registers_with_a_name_and_gets_a_key_and_an_account() {
    let hub = TestHub::serve(&[("ledger.welcome_grant", "5.00")]).await;
    let reply = hub.post("/a2a/agents", None, &json!({"name": "my-client"})).await.expect(201);
    let key = reply.str("/api_key");
    assert!(key.starts_with("rk_") && key.len() == 51, "{key}");
    let expected = json!({"status": "registered", "name": "my-client",
        "url": format!("{}/a2a/agents/my-client", hub.url), "owner": "a2a:my-client",
        "api_key": key, "skills": []});
    assert_eq!(reply.json(), expected);
    assert_eq!(hub.balance("a2a:my-client").await.0, "5.00");
    // Its own key updates it; the key stays unless another one is asked for.
    let again = hub.post("/a2a/agents", Some(&key), &json!({"name": "my-client"})).await;
    assert_eq!(again.expect(200).str("/api_key"), key);
    let rotate = json!({"name": "my-client", "rotate_key": true});
    let rotated = hub.post("/a2a/agents", Some(&key), &rotate).await.expect(200).str("/api_key");
    assert_ne!(rotated, key);
    for key in [&key, &rotated] {
        hub.result(HUB, key, "ListTasks", json!({})).await;
    }
    hub.pass(rialto_core::time::Millis::minutes(11));
    hub.rpc(HUB, &key, "ListTasks", json!({})).await.expect(401);
    hub.result(HUB, &rotated, "ListTasks", json!({})).await;
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_belongs_to_its_key_for_ever() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("mine").await;
    let other = hub.a2a_client("other").await;
    let name = json!({"name": "mine"});
    let before = counted(&hub);
    let reply = hub.post("/a2a/agents", None, &name).await.expect(409);
    assert_eq!(reply.str("/error/details/0/reason"), "CONFLICT");
    assert!(!reply.text.contains(&client.key));
    assert!(reply.str("/error/message").starts_with("\"mine\" is taken"), "{}", reply.text);
    hub.post("/a2a/agents", Some(&other.key), &name).await.expect(401);
    for path in ["/a2a/agents/mine", "/a2a/agents/no-such"] {
        let reply = hub.call("DELETE", path, Some(&other.key), None).await.expect(401);
        assert_eq!(reply.str("/error/message"), "this is not the key of this agent");
        let reply = hub.call("DELETE", path, None, None).await.expect(401);
        assert!(reply.text.contains("authentication required"), "{}", reply.text);
    }
    assert_eq!(counted(&hub), before);
    let gone = hub.call("DELETE", "/a2a/agents/mine", Some(&client.key), None).await.expect(200);
    assert_eq!(gone.json(), json!({"status": "unregistered", "name": "mine"}));
    hub.rpc(HUB, &client.key, "ListTasks", json!({})).await.expect(401);
    hub.get("/a2a/agents/mine", None).await.expect(404);
    // Only the former key brings it back.
    hub.post("/a2a/agents", None, &name).await.expect(409);
    hub.post("/a2a/agents", Some(&other.key), &name).await.expect(401);
    hub.post("/a2a/agents", Some(&client.key), &name).await.expect(200);
    hub.result(HUB, &client.key, "ListTasks", json!({})).await;
    hub.call("DELETE", "/a2a/agents/mine", Some(&hub.operator), None).await.expect(200);
    hub.call("DELETE", "/a2a/agents/nobody", Some(&hub.operator), None).await.expect(404);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_other_protocols_are_unregistered_there() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    for key in [&worker.agent.key, &hub.operator] {
        hub.call("DELETE", &worker.base, Some(key), None).await.expect(409);
    }
    let name = worker.base.rsplit_once('/').expect("a name").1;
    // Nor can their names be taken.
    hub.post("/a2a/agents", None, &json!({"name": name})).await.expect(400);
    hub.get(&worker.base, None).await.expect(200);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_has_lower_case_letters_digits_and_dashes_and_is_not_reserved() {
    let hub = TestHub::serve(&[]).await;
    let long = "x".repeat(65);
    for name in [
        "",
        "-a",
        "a-",
        "A",
        "a_b",
        "a.b",
        "é",
        "a b",
        &long,
        "agents",
        "tasks",
        "callbacks",
        "v1",
        "hub",
        "guest",
        "name-0123abcd",
        "name-0123456789abcdef",
    ] {
        let reply = hub.post("/a2a/agents", None, &json!({"name": name})).await.expect(400);
        let field = reply.str("/error/details/1/fieldViolations/0/field");
        assert_eq!(field, "name", "{name}: {}", reply.text);
    }
    for bad in [json!({}), json!([]), json!({"name": 7}), json!({"name": "a", "rotate_key": "yes"})]
    {
        hub.post("/a2a/agents", None, &bad).await.expect(400);
    }
    let longest = "x".repeat(64);
    for name in ["a", "0", "a-b-c", "name-0123abc", "name-0123abcg", "agents-2", &longest] {
        hub.post("/a2a/agents", None, &json!({"name": name})).await.expect(201);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_keys_all_callers_are_one_guest_and_a_key_is_still_its_agent() {
    let hub = TestHub::open(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    let by_guest = hub.begin(&worker.base, "", text_message("m-1", "hi")).await;
    let by_client = hub.begin(&worker.base, &client.key, text_message("m-2", "hi")).await;
    let ids = async |key: &str| -> Vec<Value> {
        let listed = hub.result(&worker.base, key, "ListTasks", json!({})).await;
        listed["tasks"].as_array().expect("tasks").iter().map(|task| task["id"].clone()).collect()
    };
    // Another guest sees the same tasks.
    assert_eq!(ids("").await, [by_guest["id"].clone()]);
    assert_eq!(ids(&client.key).await, [by_client["id"].clone()]);
    let params = json!({"id": by_client["id"]});
    assert_eq!(hub.refusal(&worker.base, "", "GetTask", params).await.1, "TASK_NOT_FOUND");
    // A wrong key is refused here, too.
    hub.rpc(HUB, "rk_wrong", "ListTasks", json!({})).await.expect(401);
    // A guest answers questions and cancels.
    let job = worker.take_task(&id(&by_guest)).await;
    worker.ask(&job, "which?").await;
    let mut answer = text_message("m-3", "that");
    answer["taskId"] = by_guest["id"].clone();
    let told = hub.begin(&worker.base, "", answer).await;
    assert_eq!(state(&told), "TASK_STATE_WORKING");
    let canceled = hub.result(&worker.base, "", "CancelTask", json!({"id": by_guest["id"]})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_suspended_agent_is_forbidden() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    hub.result(HUB, &client.key, "ListTasks", json!({})).await;
    let owner = "/v1/operator/owners/a2a:client/suspend";
    hub.post(owner, Some(&hub.operator), &json!({"reason": "spam"})).await.expect(200);
    let reply = hub.rpc(HUB, &client.key, "ListTasks", json!({})).await.expect(403);
    assert_eq!(reply.at("/error/code"), -32051);
    let reply = hub.request(("GET", "/a2a/tasks"), &client.key, &[], "").await.expect(403);
    assert_eq!(reply.str("/error/status"), "PERMISSION_DENIED");
    hub.stop().await;
}
