//! Traces of A2A tasks: what came, in both versions and spellings, and what a worker of another
//! protocol reports and asks on the way.

use serde_json::{Value, json};

use super::kit::{Hub, assert_accounted, assert_fate, assert_hop, assert_renamed, message, opened};
use crate::a2a::kit::{Client, HIRE, rpc};
use crate::kit::{Agent, Reply};

/// A client with credits, a worker, and the path at which the worker is called.
struct Scene {
    client: Client,
    worker: Agent,
    path: String,
}

impl Scene {
    async fn on(hub: &Hub) -> Self {
        let client = hub.a2a_client("asker").await;
        hub.grant("a2a:asker", "10").await;
        let worker = hub.agent("acme", "sum", "0.25", None).await;
        let path = hub.a2a_path("registry", &worker.id);
        Self { client, worker, path }
    }

    /// Sends the parameters as they are.
    async fn send(&self, hub: &Hub, method: &str, params: &str) -> Reply {
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#);
        hub.post_text(&self.path, Some(&self.client.key), &body).await.expect(200)
    }

    /// Something that the worker says about its job by the hub's own API.
    async fn says(&self, hub: &Hub, job: &str, what: &str, more: Value) {
        let mut body = json!({"epoch": 1});
        body.as_object_mut().expect("it").extend(more.as_object().expect("members").clone());
        let path = format!("/v1/jobs/{job}/{what}");
        hub.post(&path, Some(&self.worker.key), &body).await.expect(200);
    }
}

/// What a hop shows as sent, or as received.
fn shown(hop: &Value, side: &str) -> String {
    hop[side].as_str().expect("text").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_send_is_shown_as_it_came_and_every_member_is_accounted_for() {
    let hub = Hub::serve().await;
    let scene = Scene::on(&hub).await;
    let params = r#"{"message":{"messageId":"m-1","contextId":"ctx-1","role":"ROLE_USER","unknown":[1.50],"parts":[{"data":{"a":0.50,"b":1e3}}],"extensions":["urn:rialto:a2a:hire:v1"],"referenceTaskIds":["t-0"],"metadata":{"urn:rialto:a2a:hire:v1":{"skill":"sum","budget":"1","queue":true,"hop":1},"tone":{"warm" : 1.50}}},"metadata":{"shade":"blue"},"configuration":{"returnImmediately":true,"historyLength":0,"acceptedOutputModes":["application/json"]}}"#;
    let uuid = opened(&scene.send(&hub, "SendMessage", params).await);
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "request", "a2a", "registry");
    assert_eq!(shown(hop, "asked"), params, "verbatim");
    assert_accounted(&serde_json::from_str(params).expect("JSON"), &hop["notes"], "");
    let hire = |name: &str| format!("/message/metadata/{HIRE}/{name}");
    assert_renamed(hop, "/message/parts", "/input_data");
    assert_renamed(hop, &hire("skill"), "/skill_name");
    assert_renamed(hop, &hire("budget"), "/budget");
    assert_renamed(hop, "/message/messageId", "/meta/messageId");
    assert_renamed(hop, "/message/metadata/tone", "/meta/tone");
    assert_renamed(hop, "/message/unknown", "/meta/unknown");
    assert_renamed(hop, "/metadata/shade", "/meta/shade");
    for gone in ["/message/contextId", "/message/referenceTaskIds", "/message/role"] {
        assert_fate(hop, gone, "dropped");
    }
    let work = hub.work(&scene.worker).await;
    let mut given = message(hop, "given");
    given["callback_url"] = work["callback_url"].clone();
    assert_eq!(given, work, "the trace has what the worker fetched, except the URL");
    assert_eq!(work["input_data"], json!({"a": 0.5, "b": 1e3}));
    assert!(shown(hop, "given").contains(r#"{"a":0.50,"b":1e3}"#), "{work}");
    assert_eq!(
        trace["requester"],
        json!({"protocol": "a2a", "id": "asker",
        "aliases": trace["requester"]["aliases"]})
    );

    hub.report(&scene.worker, &uuid, "SUCCESS", "0.25").await.expect(200);
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "result", "registry", "a2a");
    assert_renamed(hop, "/output_data", "/artifacts");
    assert_renamed(hop, "/status", "/status/state");
    assert_renamed(hop, "/job_id", "/id");
    assert_renamed(hop, "/execution_cost", &format!("/metadata/{HIRE}/paid"));
    let task = hub.rpc(&scene.path, &scene.client.key, "GetTask", json!({"id": uuid})).await;
    assert_eq!(message(hop, "given"), task.at("/result"), "the trace has the task as it is got");
    // Its worker is not shown the bid, which the history repeats.
    let theirs = hub.trace(&uuid, &scene.worker.key).await;
    let hop = assert_hop(&theirs, "result", "registry", "a2a");
    assert_eq!(message(hop, "given")["history"], "(not shown)");
    assert!(!theirs.to_string().contains(r#"\"budget\":\"1\""#), "{theirs}");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_pushes_go_is_the_requesters_own_and_their_secrets_are_nowhere() {
    let hub = Hub::serve().await;
    let scene = Scene::on(&hub).await;
    let hook = r#"{"id":"p-1","url":"https://client.example/hook","token":"tok-1","authentication":{"scheme":"Bearer","credentials":"s3cret"}}"#;
    let params = format!(
        r#"{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"text":"hi"}}],"metadata":{{"{HIRE}":{{"budget":"1"}}}}}},"configuration":{{"returnImmediately":true,"taskPushNotificationConfig":{hook}}}}}"#
    );
    let uuid = opened(&scene.send(&hub, "SendMessage", &params).await);
    let own = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&own, "request", "a2a", "registry");
    assert_fate(hop, "/configuration/taskPushNotificationConfig", "dropped");
    assert!(shown(hop, "asked").contains("https://client.example/hook"), "{hop}");
    let theirs = hub.trace(&uuid, &scene.worker.key).await;
    assert!(!theirs.to_string().contains("client.example"), "{theirs}");
    // The worker is not shown the bid either, which is above its price.
    assert!(!theirs.to_string().contains(r#"\"budget\":\"1\""#), "{theirs}");
    for trace in [own, theirs] {
        for secret in ["tok-1", "s3cret"] {
            assert!(!trace.to_string().contains(secret), "{trace}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_of_the_older_version_is_shown_in_it() {
    let hub = Hub::serve().await;
    let scene = Scene::on(&hub).await;
    let params = format!(
        r#"{{"message":{{"kind":"message","messageId":"o-1","role":"user","parts":[{{"kind":"data","data":{{"n":1.50}}}}],"metadata":{{"{HIRE}":{{"budget":1}}}}}},"configuration":{{"blocking":false,"pushNotificationConfig":{{"url":"https://client.example/hook","token":"tok-1"}}}}}}"#
    );
    let uuid = opened(&scene.send(&hub, "message/send", &params).await);
    hub.report(&scene.worker, &uuid, "SUCCESS", "0.25").await.expect(200);
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "request", "a2a", "registry");
    assert_fate(hop, "/configuration/pushNotificationConfig", "dropped");
    assert_fate(hop, "/message/kind", "dropped");
    assert!(!shown(hop, "asked").contains("tok-1"), "{hop}");
    assert!(shown(hop, "given").contains(r#""input_data":{"n":1.50}"#), "{hop}");
    let hop = assert_hop(&trace, "result", "registry", "a2a");
    let get = rpc(1, "tasks/get", json!({"id": uuid}));
    let task = hub.post(&scene.path, Some(&scene.client.key), &get).await.at("/result");
    assert_eq!(message(hop, "given"), task);
    assert_eq!(task["kind"], "task");
}

#[tokio::test(flavor = "multi_thread")]
async fn members_in_the_other_spelling_are_known() {
    let hub = Hub::serve().await;
    let scene = Scene::on(&hub).await;
    let params = format!(
        r#"{{"message":{{"message_id":"m-1","context_id":"c-1","role":"ROLE_USER","parts":[{{"text":"hi"}}],"reference_task_ids":[],"metadata":{{"{HIRE}":{{"budget":"1"}}}}}},"configuration":{{"return_immediately":true,"task_push_notification_config":{{"url":"https://client.example/hook","token":"tok-1"}}}}}}"#
    );
    let uuid = opened(&scene.send(&hub, "SendMessage", &params).await);
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "request", "a2a", "registry");
    assert_renamed(hop, "/message/message_id", "/meta/message_id");
    let gone = [
        "/message/context_id",
        "/message/reference_task_ids",
        "/configuration/return_immediately",
        "/configuration/task_push_notification_config",
    ];
    for gone in gone {
        assert_fate(hop, gone, "dropped");
    }
    assert!(!trace.to_string().contains("tok-1"), "{trace}");
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_progress_and_questions_cross_as_the_events_of_the_task() {
    let hub = Hub::serve().await;
    let scene = Scene::on(&hub).await;
    let params = format!(
        r#"{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{{"text":"hi"}}],"metadata":{{"{HIRE}":{{"budget":"1"}}}}}},"configuration":{{"returnImmediately":true}}}}"#
    );
    let uuid = opened(&scene.send(&hub, "SendMessage", &params).await);
    hub.work(&scene.worker).await;

    scene.says(&hub, &uuid, "parts", json!({"artifact": {"text": "Q3 was "}})).await;
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "progress", "registry", "a2a");
    assert_renamed(hop, "/artifact", "/artifactUpdate/artifact/parts");
    let update = message(hop, "given");
    assert_eq!(update["artifactUpdate"]["taskId"], json!(uuid));
    let part = json!({"artifactId": "part-1", "parts": [{"text": "Q3 was "}]});
    assert_eq!(update["artifactUpdate"]["artifact"], part);

    let more = json!({"artifact": {"text": "good"}, "append": true});
    scene.says(&hub, &uuid, "parts", more).await;
    scene.says(&hub, &uuid, "progress", json!({"text": "nearly", "fraction": 0.9})).await;
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "progress", "registry", "a2a");
    assert_renamed(hop, "/text", "/statusUpdate/status/message");
    let status = message(hop, "given")["statusUpdate"]["status"].clone();
    assert_eq!(status["state"], "TASK_STATE_WORKING");
    assert_eq!(status["message"]["parts"], json!([{"text": "nearly"}]));

    scene.says(&hub, &uuid, "ask", json!({"text": "Which city?"})).await;
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "question", "registry", "a2a");
    assert_renamed(hop, "/text", "/statusUpdate/status/message");
    let status = message(hop, "given")["statusUpdate"]["status"].clone();
    assert_eq!(status["state"], "TASK_STATE_INPUT_REQUIRED");
    assert_eq!(status["message"]["parts"], json!([{"text": "Which city?"}]));
    // It is the message that the client got.
    let task = hub.rpc(&scene.path, &scene.client.key, "GetTask", json!({"id": uuid})).await;
    assert_eq!(status["message"], task.at("/result/status/message"));

    let answer = json!({"message": {"messageId": "m-2", "role": "ROLE_USER", "taskId": uuid,
        "parts": [{"text": "Lugano"}]}, "configuration": {"returnImmediately": true}});
    let answered = hub.rpc(&scene.path, &scene.client.key, "SendMessage", answer).await;
    assert_eq!(answered.str("/result/task/status/state"), "TASK_STATE_WORKING");
    hub.report(&scene.worker, &uuid, "SUCCESS", "0.25").await.expect(200);
    let trace = hub.trace(&uuid, &scene.client.key).await;
    let hop = assert_hop(&trace, "result", "registry", "a2a");
    let given = message(hop, "given");
    let joined = json!({"artifactId": "part-1", "parts": [{"text": "Q3 was "}, {"text": "good"}]});
    assert_eq!(given["artifacts"][0], joined, "what was reported before is in the task");
    assert_eq!(given["artifacts"][1]["artifactId"], "result");
    let said = given["history"].as_array().expect("a history").iter();
    let said: Vec<_> = said.map(|one| one["parts"][0]["text"].clone()).collect();
    assert_eq!(said, ["hi", "nearly", "Which city?", "Lugano"]);
    let task = hub.rpc(&scene.path, &scene.client.key, "GetTask", json!({"id": uuid})).await;
    assert_eq!(given, task.at("/result"));
}
