//! Push configurations (R70–R72).

use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::kit::{TaskWorker, id, rpc, text_message};
use super::push::{SECRETS, Scene};

#[tokio::test(flavor = "multi_thread")]
async fn configurations_are_created_read_listed_and_deleted() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = id(&scene.hub.begin(base, key, text_message("m-1", "hi")).await);
    let mut create = scene.config("c-1");
    create["taskId"] = task.as_str().into();
    let made = scene.call(base, "CreateTaskPushNotificationConfig", create.clone()).await;
    assert_eq!(made, scene.shown("c-1", &task));
    // The same over HTTP+JSON, without an id of its own.
    let path = format!("{base}/tasks/{task}/pushNotificationConfigs");
    let mut body = scene.config("");
    body.as_object_mut().expect("an object").remove("id");
    let reply = scene.hub.request(("POST", &path), key, &[], &body.to_string()).await.expect(200);
    let own = id(&reply.json());
    assert!(own.parse::<uuid::Uuid>().is_ok(), "{own}");
    let one = json!({"taskId": task, "id": "c-1"});
    assert_eq!(scene.call(base, "GetTaskPushNotificationConfig", one.clone()).await, made);
    let reply = scene.hub.request(("GET", &format!("{path}/c-1")), key, &[], "").await.expect(200);
    assert_eq!(reply.json(), made);
    let all = json!({"configs": [scene.shown("c-1", &task), scene.shown(&own, &task)]});
    let of_task = json!({"taskId": task});
    assert_eq!(scene.call(base, "ListTaskPushNotificationConfigs", of_task.clone()).await, all);
    let reply = scene.hub.request(("GET", &path), key, &[], "").await.expect(200);
    assert_eq!(reply.json(), all);
    // One with the same id takes the place of the first.
    create["url"] = format!("{}/other", scene.hook.url).into();
    scene.call(base, "CreateTaskPushNotificationConfig", create).await;
    let listed = scene.call(base, "ListTaskPushNotificationConfigs", of_task.clone()).await;
    assert_eq!(listed["configs"].as_array().map(Vec::len), Some(2));
    assert_eq!(listed["configs"][0]["url"], format!("{}/other", scene.hook.url));
    for _ in 0..2 {
        let deleted = scene.call(base, "DeleteTaskPushNotificationConfig", one.clone()).await;
        assert_eq!(deleted, json!({}));
    }
    let listed = scene.call(base, "ListTaskPushNotificationConfigs", of_task).await;
    assert_eq!(listed, json!({"configs": [scene.shown(&own, &task)]}));
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_ended_task_takes_configurations_too_and_gets_nothing() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let base = worker.base.clone();
    let task = id(&scene.hub.begin(&base, &scene.client.key, text_message("m-1", "hi")).await);
    worker.work(json!({"text": "done"})).await;
    // After a restart the task is among those that have ended, and is stored a second time.
    let scene = restarted(scene).await;
    let mut create = scene.config("c-1");
    create["taskId"] = task.as_str().into();
    let made = scene.call(&base, "CreateTaskPushNotificationConfig", create).await;
    assert_eq!(made, scene.shown("c-1", &task));
    let scene = restarted(scene).await;
    let one = json!({"taskId": task, "id": "c-1"});
    assert_eq!(scene.call(&base, "GetTaskPushNotificationConfig", one.clone()).await, made);
    scene.call(&base, "DeleteTaskPushNotificationConfig", one).await;
    let scene = restarted(scene).await;
    let of_task = json!({"taskId": task});
    let listed = scene.call(&base, "ListTaskPushNotificationConfigs", of_task).await;
    assert_eq!(listed, json!({"configs": []}));
    assert!(scene.hook.got().is_empty());
    scene.hub.stop().await;
}

async fn restarted(Scene { hub, client, hook }: Scene) -> Scene {
    Scene { hub: hub.restart(Profile::Serve, &[]).await, client, hook }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_configuration_or_task_is_not_found() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = id(&scene.hub.begin(base, key, text_message("m-1", "hi")).await);
    let unknown = "00000000-0000-4000-8000-000000000000";
    let not_found = (-32001, "TASK_NOT_FOUND".to_owned());
    let mut create = scene.config("c");
    create["taskId"] = unknown.into();
    for (method, params) in [
        ("CreateTaskPushNotificationConfig", create),
        ("GetTaskPushNotificationConfig", json!({"taskId": task, "id": "x"})),
        ("GetTaskPushNotificationConfig", json!({"taskId": unknown, "id": "x"})),
        ("ListTaskPushNotificationConfigs", json!({"taskId": unknown})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": unknown, "id": "x"})),
    ] {
        assert_eq!(scene.hub.refusal(base, key, method, params).await, not_found, "{method}");
    }
    let reply = scene
        .hub
        .request(("GET", &format!("{base}/tasks/{task}/pushNotificationConfigs/x")), key, &[], "")
        .await
        .expect(404);
    assert_eq!(reply.str("/error/details/0/reason"), "TASK_NOT_FOUND");
    for (method, params) in [
        ("CreateTaskPushNotificationConfig", scene.config("c")),
        ("GetTaskPushNotificationConfig", json!({"taskId": task})),
        ("DeleteTaskPushNotificationConfig", json!({"taskId": task})),
        ("ListTaskPushNotificationConfigs", json!({})),
    ] {
        assert_eq!(scene.hub.refusal(base, key, method, params).await.0, -32602, "{method}");
    }
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_needs_a_url_that_may_be_called_and_texts_that_fit_a_header() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = id(&scene.hub.begin(base, key, text_message("m-1", "hi")).await);
    let good = scene.config("c");
    for (name, value, place) in [
        ("url", json!("http://10.0.0.1/hook"), "url"),
        ("url", json!("https://user@client.example/hook"), "url"),
        ("url", json!("ftp://client.example/hook"), "url"),
        ("url", json!("client.example"), "url"),
        ("url", json!(""), "url"),
        ("url", json!(format!("https://client.example/{}", "x".repeat(2_048))), "url"),
        ("token", json!("a\r\nb: c"), "token"),
        (
            "authentication",
            json!({"scheme": "Bearer\n", "credentials": "x"}),
            "authentication.scheme",
        ),
        (
            "authentication",
            json!({"scheme": "Bearer", "credentials": "x\ny"}),
            "authentication.credentials",
        ),
        ("id", json!("a\u{0}b"), "id"),
        ("id", json!("a\u{202e}b"), "id"),
        ("id", json!("x".repeat(257)), "id"),
    ] {
        let mut config = good.clone();
        config[name] = value.clone();
        let inline = json!({"message": text_message("m-2", "hi"), "configuration":
            {"returnImmediately": true, "taskPushNotificationConfig": config}});
        let refused = scene.hub.rpc(base, key, "SendMessage", inline).await;
        assert_eq!(refused.at("/error/code"), -32602, "{name} {value}");
        let field = format!("configuration.taskPushNotificationConfig.{place}");
        assert_eq!(refused.at("/error/data/1/fieldViolations/0/field"), field, "{value}");
        config["taskId"] = task.as_str().into();
        let method = "CreateTaskPushNotificationConfig";
        let refused = scene.hub.rpc(base, key, method, config).await;
        assert_eq!(refused.at("/error/code"), -32602, "{name} {value}");
        assert_eq!(refused.at("/error/data/1/fieldViolations/0/field"), place, "{value}");
    }
    let listed = scene.call("/a2a", "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], 1, "a refused send opens nothing");
    scene.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_0_3_a_configuration_stands_beside_its_task_and_the_oldest_needs_no_id() {
    let scene = Scene::set().await;
    let worker = TaskWorker::join(&scene.hub, "echo", "0").await;
    let (base, key) = (worker.base.as_str(), scene.client.key.as_str());
    let task = id(&scene.hub.begin(base, key, text_message("m-1", "hi")).await);
    let bearer = format!("Bearer {key}");
    let call = async |method: &str, params: Value| -> Value {
        let body = rpc(1, &format!("tasks/pushNotificationConfig/{method}"), params).to_string();
        let headers = [("authorization", bearer.as_str())];
        scene.hub.send("POST", base, &headers, body.as_bytes()).await.expect(200).json()
    };
    let none = call("get", json!({"id": task})).await;
    assert_eq!(none["error"]["code"], -32001);
    let config = json!({"url": scene.hook.url, "token": SECRETS[0],
        "authentication": {"schemes": ["Bearer", "Basic"], "credentials": SECRETS[1]}});
    let set = json!({"taskId": task, "pushNotificationConfig": config});
    let shown = |id: &str| {
        json!({"taskId": task, "pushNotificationConfig":
            {"id": id, "url": scene.hook.url, "authentication": {"schemes": ["Bearer"]}}})
    };
    // What is wrong has its place of 0.3.
    let mut wrong = set.clone();
    wrong["pushNotificationConfig"]["token"] = "a\nb".into();
    wrong["pushNotificationConfig"]["authentication"]["schemes"] = json!(["Bearer\n"]);
    let refused = call("set", wrong).await["error"]["data"]["fieldViolations"].clone();
    assert_eq!(refused[0]["field"], "pushNotificationConfig.token", "{refused}");
    assert_eq!(refused[1]["field"], "pushNotificationConfig.authentication.schemes", "{refused}");
    // Without an id it has that of the task.
    assert_eq!(call("set", set.clone()).await["result"], shown(&task));
    let mut second = set.clone();
    second["pushNotificationConfig"]["id"] = "second".into();
    assert_eq!(call("set", second).await["result"], shown("second"));
    assert_eq!(call("get", json!({"id": task})).await["result"], shown(&task));
    let named = json!({"id": task, "pushNotificationConfigId": "second"});
    assert_eq!(call("get", named.clone()).await["result"], shown("second"));
    assert_eq!(
        call("list", json!({"id": task})).await["result"],
        json!([shown(&task), shown("second")])
    );
    for _ in 0..2 {
        let deleted = call("delete", named.clone()).await;
        assert_eq!(deleted, json!({"jsonrpc": "2.0", "id": 1, "result": null}));
    }
    assert_eq!(call("list", json!({"id": task})).await["result"], json!([shown(&task)]));
    scene.hub.stop().await;
}
