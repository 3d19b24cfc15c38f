//! HTTP+JSON: content types, queries, bodies that are not needed, and tenants (R23–R26).

use serde_json::json;

use super::kit::{TaskWorker, id, rpc, state, text_message};
use crate::kit::TestHub;

#[tokio::test(flavor = "multi_thread")]
async fn the_accepted_type_decides_the_type_of_an_answer_and_not_of_an_error() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    for (accept, kind) in [
        ("application/a2a+json", "application/a2a+json"),
        ("application/json, application/a2a+json;q=0.9", "application/a2a+json"),
        ("APPLICATION/A2A+JSON", "application/a2a+json"),
        ("application/json", "application/json"),
        ("application/a2a+json;q=0, */*", "application/json"),
        ("*/*", "application/json"),
    ] {
        let more = [("accept", accept)];
        let reply = hub.request(("GET", "/a2a/tasks"), &client.key, &more, "").await.expect(200);
        assert_eq!(reply.header("content-type"), Some(kind), "{accept}");
        let bad = "/a2a/tasks?pageSize=x";
        let reply = hub.request(("GET", bad), &client.key, &more, "").await.expect(400);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
        let body = rpc(1, "ListTasks", json!({})).to_string();
        let reply = hub.request(("POST", "/a2a"), &client.key, &more, &body).await.expect(200);
        assert_eq!(reply.header("content-type"), Some("application/json"), "{accept}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_query_names_what_is_wrong_with_it_and_unknown_names_are_ignored() {
    let hub = TestHub::serve(&[]).await;
    let client = hub.a2a_client("client").await;
    for (query, field) in [
        ("pageSize=x", "pageSize"),
        ("pageSize=0", "pageSize"),
        ("pageSize=101", "pageSize"),
        ("pageSize=-1", "pageSize"),
        ("historyLength=-1", "historyLength"),
        ("historyLength=many", "historyLength"),
        ("includeArtifacts=maybe", "includeArtifacts"),
        ("status=DANCING", "status"),
        ("status=99", "status"),
        ("statusTimestampAfter=yesterday", "statusTimestampAfter"),
        ("pageToken=strange", "pageToken"),
    ] {
        let path = format!("/a2a/tasks?{query}");
        let reply = hub.request(("GET", &path), &client.key, &[], "").await.expect(400);
        let place = reply.str("/error/details/1/fieldViolations/0/field");
        assert_eq!(place, field, "{}", reply.text);
    }
    let good = "pageSize=5&historyLength=0&includeArtifacts=false\
                &statusTimestampAfter=2026-01-01T00:00:00Z&contextId=c&page_size=x&else=1&pageToken=";
    for state in ["TASK_STATE_WORKING", "2", ""] {
        let path = format!("/a2a/tasks?{good}&status={state}");
        let reply = hub.request(("GET", &path), &client.key, &[], "").await.expect(200);
        assert_eq!(reply.at("/pageSize"), 5);
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cancel_and_subscribe_need_no_body() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    for body in ["", "{}", r#"{"tenant":""}"#] {
        let task = hub.begin(&worker.base, &client.key, text_message("m", "hi")).await;
        let path = format!("{}/tasks/{}:subscribe", worker.base, id(&task));
        for verb in ["GET", "POST"] {
            let mut events = hub.stream((verb, &path), &client.key, &[], body).await;
            assert!(events.event().await.data["task"].is_object());
        }
        let path = format!("{}/tasks/{}:cancel", worker.base, id(&task));
        let reply = hub.request(("POST", &path), &client.key, &[], body).await.expect(200);
        assert_eq!(state(&reply.json()), "TASK_STATE_CANCELED");
    }
    let task = hub.begin(&worker.base, &client.key, text_message("m", "hi")).await;
    let path = format!("{}/tasks/{}:cancel", worker.base, id(&task));
    hub.request(("POST", &path), &client.key, &[], "{").await.expect(400);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_push_configuration_answers_an_empty_object() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let client = hub.a2a_client("client").await;
    let task = hub.begin(&worker.base, &client.key, text_message("m", "hi")).await;
    let path = format!("{}/tasks/{}/pushNotificationConfigs/c", worker.base, id(&task));
    for _ in 0..2 {
        let reply = hub.request(("DELETE", &path), &client.key, &[], "").await.expect(200);
        assert_eq!(reply.text, "{}");
    }
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_is_the_agent_that_is_meant_in_body_query_and_path() {
    let hub = TestHub::serve(&[]).await;
    let worker = TaskWorker::join(&hub, "echo", "0").await;
    let other = TaskWorker::join(&hub, "other", "0").await;
    let client = hub.a2a_client("client").await;
    let name = worker.base.rsplit_once('/').expect("a name").1;
    let stranger = other.base.rsplit_once('/').expect("a name").1;
    let message = json!({"message": text_message("m", "hi"),
        "configuration": {"returnImmediately": true}});
    let with = |tenant: &str| {
        let mut message = message.clone();
        message["tenant"] = tenant.into();
        message
    };
    // At the hub a tenant is the name of an agent.
    let by_body = hub.result("/a2a", &client.key, "SendMessage", with(name)).await;
    let mut opened = vec![id(&by_body["task"])];
    for path in [
        format!("/a2a/message:send?tenant={name}"),
        format!("/a2a/{name}/message:send"),
        format!("{}/message:send", worker.base),
        format!("{}/{name}/message:send", worker.base),
    ] {
        let reply = hub.request(("POST", &path), &client.key, &[], &message.to_string()).await;
        opened.push(id(&reply.expect(200).at("/task")));
    }
    let rpc_query = format!("/a2a?tenant={name}");
    let by_query = hub.result(&rpc_query, &client.key, "SendMessage", message.clone()).await;
    opened.push(id(&by_query["task"]));
    let listed = hub.result(&worker.base, &client.key, "ListTasks", json!({})).await;
    assert_eq!(listed["totalSize"], opened.len());
    // Every operation has it.
    let task = &opened[0];
    for path in [format!("/a2a/{name}/tasks/{task}"), format!("/a2a/tasks/{task}?tenant={name}")] {
        let reply = hub.request(("GET", &path), &client.key, &[], "").await.expect(200);
        assert_eq!(id(&reply.json()), *task);
    }
    let card = format!("/a2a/{name}/extendedAgentCard");
    let card = hub.request(("GET", &card), &client.key, &[], "").await.expect(200);
    assert_eq!(card.str("/supportedInterfaces/0/url"), format!("{}{}", hub.url, worker.base));
    // Elsewhere it is empty or that agent's name.
    hub.result(&worker.base, &client.key, "GetTask", json!({"id": task, "tenant": ""})).await;
    hub.result(&worker.base, &client.key, "GetTask", json!({"id": task, "tenant": name})).await;
    for (base, tenant) in
        [(worker.base.as_str(), stranger), (worker.base.as_str(), "nobody"), ("/a2a", "nobody")]
    {
        let params = json!({"id": task, "tenant": tenant});
        let refused = hub.refusal(base, &client.key, "GetTask", params).await;
        assert_eq!(refused, (-32602, "INVALID_PARAMS".to_owned()), "{base} {tenant}");
        let path = format!("{base}/{tenant}/tasks/{task}");
        let reply = hub.request(("GET", &path), &client.key, &[], "").await.expect(400);
        assert_eq!(reply.str("/error/details/1/fieldViolations/0/field"), "tenant");
    }
    // Seen from another agent it does not exist.
    let params = json!({"id": task, "tenant": stranger});
    let refused = hub.refusal("/a2a", &client.key, "GetTask", params).await;
    assert_eq!(refused.1, "TASK_NOT_FOUND");
    hub.stop().await;
}
