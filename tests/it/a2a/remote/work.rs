//! Jobs at a server that the test controls: sent once, followed without loss, and reported as they
//! are.

use rialto_core::job::Job;
use serde_json::{Value, json};

use super::server::{Fault, Puppet};
use crate::a2a::kit::{HIRE, hire_message, id, state, text_message};
use crate::kit::{TestHub, eventually};
use crate::relay::kit::{registration, turn};

/// The texts of all parts of a task's artifacts.
fn texts(task: &Value) -> Vec<&str> {
    let artifacts = task["artifacts"].as_array().into_iter().flatten();
    let parts = artifacts.flat_map(|one| one["parts"].as_array().into_iter().flatten());
    parts.map(|part| part["text"].as_str().unwrap_or_default()).collect()
}

#[tokio::test]
async fn a_job_is_one_message_with_what_was_agreed() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.paid_remote(&puppet, "geo-route-planner", "0.25").await;
    let by = hub.orchestrator("acme").await;
    hub.grant("acme", "10.00").await;
    let path = registry_path(&hub, &geo.name);
    let body = json!({"job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "orchestrator_id": by.id,
        "skill_name": "route", "input_data": {"text": "to Lugano"}, "budget": 0.3});
    let (reply, ()) = tokio::join!(hub.post(&path, Some(&by.key), &body), async {
        let task = puppet.task().await;
        puppet.status(&task, "TASK_STATE_WORKING", None);
        puppet.complete(&task, "Take the A2.");
    });
    let reply = reply.expect(200);
    assert_eq!(reply.str("/status"), "SUCCESS", "{}", reply.text);
    assert_eq!(reply.at("/output_data"), json!({"text": "Take the A2."}));
    assert_eq!(reply.at("/execution_cost"), 0.25);
    let job = reply.header("rialto-job").expect("the hub's id").to_owned();
    let sends: Vec<_> = puppet.seen().into_iter().filter(|seen| seen.is_send()).collect();
    let [sent] = &sends[..] else { panic!("{sends:?}") };
    assert_eq!(sent.rpc(), "SendStreamingMessage");
    assert_eq!(sent.header("a2a-version"), Some("1.0"));
    assert_eq!(sent.header("accept"), Some("text/event-stream"));
    assert_eq!(sent.header("a2a-extensions"), None);
    let mut body = sent.body.clone();
    let deadline = body.pointer_mut(&format!("/params/message/metadata/{HIRE}/deadline"));
    let deadline = deadline.expect("a deadline").take();
    assert!(deadline.as_str().is_some_and(|time| time.ends_with('Z')), "{deadline}");
    let requester = format!("acme-s-orchestrator-{}", &alias_digits(&hub, &by.id));
    let hire = json!({"job": job, "skill": "route", "price": "0.25", "deadline": null,
        "requester": requester, "protocol": "registry", "hop": 1});
    let message = json!({"messageId": format!("{job}-1"), "role": "ROLE_USER",
        "parts": [{"text": "to Lugano"}], "metadata": {HIRE: hire}});
    let expected = json!({"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage",
        "params": {"message": message}});
    assert_eq!(body, expected);
    assert_eq!(hub.balance("acme").await, ("9.75".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("a2a:geo-route-planner").await.0, "0.25");
}

/// Where an agent of this protocol is hired in the registry's.
fn registry_path(hub: &TestHub, name: &str) -> String {
    let alias = hub.engine.with_world(|world| {
        let agent = world.agent_by_alias(rialto_protocols::a2a::ID, name).expect("known");
        let registry = rialto_core::alias::Protocol::new("registry");
        world.alias_of(agent, registry).expect("an alias").to_owned()
    });
    format!("/registry/agents/{alias}/jobs")
}

#[tokio::test]
async fn text_that_comes_in_chunks_is_one_text_for_requesters_of_other_protocols() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let by = hub.orchestrator("acme").await;
    let body = json!({"job_id": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "orchestrator_id": by.id,
        "skill_name": "route", "input_data": {"text": "to Lugano"}, "budget": 0});
    let path = registry_path(&hub, &geo.name);
    let (reply, ()) = tokio::join!(hub.post(&path, Some(&by.key), &body), async {
        let task = puppet.task().await;
        puppet.text(&task, "a", "Take ", false);
        puppet.text(&task, "a", "the ", true);
        let lines = json!({"artifactId": "a", "parts": [{"text": "A2"}, {"text": "and st"}]});
        puppet.artifact(&task, lines, true);
        let reports = || {
            let count = |job: &std::sync::Arc<Job>| job.progress.worker_reports();
            hub.engine.with_world(|world| world.live_jobs().next().map_or(0, count))
        };
        eventually(async || reports() == 3).await;
        // These are only in a snapshot of the task.
        puppet.cut(&task);
        puppet.text(&task, "a", "op", true);
        puppet.text(&task, "a", ".", true);
        puppet.text(&task, "b", "That is all", false);
        puppet.status(&task, "TASK_STATE_COMPLETED", None);
    });
    let reply = reply.expect(200);
    let text = "Take the A2\nand stop.\nThat is all";
    assert_eq!(reply.at("/output_data"), json!({ "text": text }));
}

/// The digits of a registry agent's name in A2A.
fn alias_digits(hub: &TestHub, id: &str) -> String {
    let name = hub.a2a_name("registry", id);
    name.rsplit('-').next().expect("digits").to_owned()
}

#[tokio::test]
async fn every_status_and_chunk_reaches_a_client_as_the_worker_said_it() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let mut message = text_message("m-1", "to Lugano");
    message["metadata"] = json!({"theirs": {"n": 42.0}});
    let mut stream = hub.follow(&geo.base, &client.key, message).await;
    let own = id(&stream.event().await.data["task"]);
    let task = puppet.task().await;
    assert_eq!(puppet.messages()[0]["metadata"]["theirs"], json!({"n": 42.0}));
    assert_eq!(puppet.message_ids(), [format!("m-1.{own}-1")]);
    let said = json!({"messageId": "w-1", "role": "ROLE_AGENT", "metadata": {"mood": "good"},
        "parts": [{"text": "looking"}, {"data": {"done": 0.50}, "mediaType": "application/json"}]});
    puppet.status(&task, "TASK_STATE_WORKING", Some(said.clone()));
    let artifact = json!({"artifactId": "a1", "name": "Route", "description": "The way",
        "metadata": {"km": 1.0}, "parts": [{"text": "Take "}]});
    puppet.artifact(&task, artifact.clone(), false);
    puppet.text(&task, "a1", "the ", true);
    let event = json!({"artifactUpdate": {"taskId": task, "contextId": "remote-c1", "append": true,
        "lastChunk": true, "metadata": {"last": "yes"},
        "artifact": {"artifactId": "a1", "parts": [{"text": "A2."}]}}});
    puppet.event(&task, event);
    puppet.says(&task, "TASK_STATE_COMPLETED", "w-2", "there you are");
    let events = stream.rest().await;
    let data: Vec<Value> = events.iter().map(|event| event.data.clone()).collect();
    let [working, status, first, second, last, end] = &data[..] else { panic!("{data:#?}") };
    assert_eq!(working["statusUpdate"]["status"]["state"], "TASK_STATE_WORKING");
    assert_eq!(working["statusUpdate"]["status"]["message"], Value::Null);
    let mut expected = said;
    expected["taskId"] = own.clone().into();
    expected["contextId"] = working["statusUpdate"]["contextId"].clone();
    assert_eq!(status["statusUpdate"]["status"]["message"], expected);
    assert_eq!(first["artifactUpdate"]["artifact"], artifact);
    assert_eq!(first["artifactUpdate"]["append"], Value::Null);
    assert_eq!(second["artifactUpdate"]["append"], true);
    assert_eq!(last["artifactUpdate"]["lastChunk"], true);
    assert_eq!(last["artifactUpdate"]["metadata"], json!({"last": "yes"}));
    assert_eq!(end["statusUpdate"]["status"]["state"], "TASK_STATE_COMPLETED");
    assert_eq!(end["statusUpdate"]["status"]["message"]["messageId"], "w-2");
    let ids: Vec<String> =
        events.iter().map(|event| event.id.clone().unwrap_or_default()).collect();
    assert_eq!(ids, ["2", "3", "4", "5", "6", "7"], "positions without a gap");
    let task = hub.get_task(&geo.base, &client.key, &own).await;
    assert_eq!(texts(&task), ["Take ", "the ", "A2."]);
    assert_eq!(task["artifacts"][0]["name"], "Route");
    let history: Vec<&Value> = task["history"].as_array().expect("a list").iter().collect();
    let ids: Vec<&str> = history.iter().map(|one| one["messageId"].as_str().unwrap()).collect();
    assert_eq!(ids, ["m-1", "w-1"]);
}

#[tokio::test]
async fn a_stream_that_is_cut_is_opened_again_and_nothing_is_lost_or_doubled() {
    for has_snapshots in [true, false] {
        let hub = TestHub::serve(&[]).await;
        let puppet = Puppet::start().await;
        let puppet = if has_snapshots { puppet } else { puppet.without_snapshots() };
        let geo = hub.remote(&puppet, "geo").await;
        let client = hub.a2a_client("client").await;
        let mut stream = hub.follow(&geo.base, &client.key, text_message("m-1", "go")).await;
        let own = id(&stream.event().await.data["task"]);
        let task = puppet.task().await;
        puppet.says(&task, "TASK_STATE_WORKING", "w-1", "one");
        puppet.text(&task, "a", "1", false);
        puppet.text(&task, "a", "2", true);
        eventually(async || texts(&hub.get_task(&geo.base, &client.key, &own).await).len() == 2)
            .await;
        puppet.cut(&task);
        // Said while nobody listens.
        puppet.says(&task, "TASK_STATE_WORKING", "w-2", "two");
        puppet.text(&task, "a", "2", true);
        puppet.says(&task, "TASK_STATE_WORKING", "w-3", "three");
        puppet.streamed(&task, 1).await;
        puppet.text(&task, "a", "3", true);
        puppet.text(&task, "b", "other", false);
        puppet.cut(&task);
        puppet.text(&task, "a", "4", true);
        puppet.status(&task, "TASK_STATE_COMPLETED", None);
        let events = stream.rest().await;
        let chunks: String = events
            .iter()
            .filter(|event| event.data["artifactUpdate"]["artifact"]["artifactId"] == "a")
            .flat_map(|event| {
                let parts = event.data["artifactUpdate"]["artifact"]["parts"].as_array();
                parts.expect("a list").iter().map(|part| part["text"].as_str().unwrap().to_owned())
            })
            .collect();
        assert_eq!(chunks, "12234", "has_snapshots: {has_snapshots}");
        let said: Vec<String> = events
            .iter()
            .filter_map(|event| {
                let id = &event.data["statusUpdate"]["status"]["message"]["messageId"];
                id.as_str().map(str::to_owned)
            })
            .collect();
        assert_eq!(said, ["w-1", "w-2", "w-3"]);
        let task = hub.get_task(&geo.base, &client.key, &own).await;
        assert_eq!(texts(&task), ["1", "2", "2", "3", "4", "other"]);
        assert_eq!(puppet.message_ids().len(), 1, "the request was sent once");
    }
}

#[tokio::test]
async fn a_server_without_streams_is_asked_until_the_task_ends() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await.without_streams();
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let mut stream = hub.follow(&geo.base, &client.key, text_message("m-1", "go")).await;
    stream.event().await;
    let task = puppet.task().await;
    let sent = &puppet.calls("SendMessage")[0];
    assert_eq!(sent.body["params"]["configuration"], json!({"returnImmediately": true}));
    puppet.says(&task, "TASK_STATE_WORKING", "w-1", "one");
    puppet.text(&task, "a", "1", false);
    puppet.called("GetTask", 1).await;
    puppet.says(&task, "TASK_STATE_WORKING", "w-2", "two");
    puppet.text(&task, "a", "2", true);
    puppet.status(&task, "TASK_STATE_COMPLETED", None);
    let events = stream.rest().await;
    let end = &events.last().expect("an end").data["statusUpdate"];
    assert_eq!(end["status"]["state"], "TASK_STATE_COMPLETED");
    let said: Vec<&str> = events
        .iter()
        .filter_map(|event| event.data["statusUpdate"]["status"]["message"]["messageId"].as_str())
        .collect();
    assert_eq!(said, ["w-1", "w-2"]);
}

#[tokio::test]
async fn a_question_is_asked_once_and_its_answer_reaches_the_workers_task() {
    for streams in [true, false] {
        let hub = TestHub::serve(&[]).await;
        let puppet = Puppet::start().await;
        let puppet = if streams { puppet } else { puppet.without_streams() };
        let geo = hub.remote(&puppet, "geo").await;
        let client = hub.a2a_client("client").await;
        let message = hire_message("m-1", "plan a route", json!({"skill": "route"}));
        let begun = hub.begin(&geo.base, &client.key, message).await;
        let own = id(&begun);
        let task = puppet.task().await;
        puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which city?");
        let asks = hub.until(&client, &geo.base, &own, "TASK_STATE_INPUT_REQUIRED").await;
        assert_eq!(asks["status"]["message"]["messageId"], "q-1");
        let mut answer = text_message("m-2", "Lugano");
        answer["taskId"] = own.clone().into();
        let params = json!({"message": answer, "configuration": {"returnImmediately": true}});
        hub.result(&geo.base, &client.key, "SendMessage", params).await;
        eventually(async || puppet.message_ids().len() == 2).await;
        let sent = &puppet.messages()[1];
        assert_eq!(sent["messageId"], format!("m-2.{own}-2"));
        assert_eq!((&sent["taskId"], &sent["contextId"]), (&json!(task), &json!("remote-c1")));
        assert_eq!(sent["parts"], json!([{"text": "Lugano"}]));
        puppet.complete(&task, "Take the A2.");
        let done = hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
        let history = done["history"].as_array().expect("a list");
        let ids: Vec<&str> = history.iter().map(|one| one["messageId"].as_str().unwrap()).collect();
        assert_eq!(ids, ["m-1", "q-1", "m-2"]);
        assert_eq!(texts(&done), ["Take the A2."]);
        let ids = puppet.message_ids();
        assert_eq!(ids, [format!("m-1.{own}-1"), format!("m-2.{own}-2")]);
    }
}

#[tokio::test]
async fn a_worker_asks_twice_without_saying_what() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    for number in 2..4 {
        puppet.status(&task, "TASK_STATE_INPUT_REQUIRED", None);
        let asks = hub.until(&client, &geo.base, &own, "TASK_STATE_INPUT_REQUIRED").await;
        let text = &asks["status"]["message"]["parts"][0]["text"];
        assert!(text.is_null() || text == "the agent asks for more input", "{asks}");
        let mut answer = text_message(&format!("m-{number}"), "Lugano");
        answer["taskId"] = own.clone().into();
        hub.begin(&geo.base, &client.key, answer).await;
        eventually(async || puppet.message_ids().len() == number).await;
        hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
        puppet.streamed(&task, 1).await;
    }
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn a_message_to_a_running_task_reaches_its_worker_beside_the_stream() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    for number in 2..4 {
        let mut more = text_message(&format!("m-{number}"), "by the lake");
        more["taskId"] = own.clone().into();
        let params = json!({"message": more, "configuration": {"returnImmediately": true}});
        hub.result(&geo.base, &client.key, "SendMessage", params).await;
    }
    eventually(async || puppet.message_ids().len() == 3).await;
    let ids = puppet.message_ids();
    assert_eq!(ids[1..], [format!("m-2.{own}-2"), format!("m-3.{own}-3")]);
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn a_sign_in_waits_for_the_worker_and_not_for_the_requester() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.says(&task, "TASK_STATE_AUTH_REQUIRED", "q-1", "Sign in at https://idp.example");
    hub.until(&client, &geo.base, &own, "TASK_STATE_AUTH_REQUIRED").await;
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn the_next_task_of_a_context_goes_into_the_workers_own_context() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let [client, other] = [hub.a2a_client("client").await, hub.a2a_client("other").await];
    let done = async |key: &str, message: Value| {
        let begun = hub.begin(&geo.base, key, message).await;
        let task = puppet.task().await;
        puppet.complete(&task, "done");
        let own = id(&begun);
        eventually(async || {
            state(&hub.get_task(&geo.base, key, &own).await) == "TASK_STATE_COMPLETED"
        })
        .await;
        begun
    };
    let first = done(&client.key, text_message("m-1", "one")).await;
    assert_eq!(puppet.messages()[0]["contextId"], Value::Null);
    let mut second = text_message("m-2", "two");
    second["contextId"] = first["contextId"].clone();
    second["referenceTaskIds"] = json!([first["id"], "remote-1", "not a task"]);
    done(&client.key, second.clone()).await;
    let sent = &puppet.messages()[1];
    assert_eq!(sent["contextId"], "remote-c1", "that of the first task");
    assert_eq!(sent["referenceTaskIds"], json!(["remote-1"]), "and its own id of that task");
    done(&other.key, second).await;
    let sent = &puppet.messages()[2];
    assert_eq!(sent["contextId"], Value::Null, "another client's context is another one");
    assert_eq!(sent["referenceTaskIds"], Value::Null, "and its tasks are strange");
}

#[tokio::test]
async fn a_canceled_task_is_canceled_at_its_worker_once() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.paid_remote(&puppet, "geo", "0.25").await;
    let client = hub.rich_client("client").await;
    let message = hire_message("m-1", "go", json!({"budget": "0.25"}));
    let own = id(&hub.begin(&geo.base, &client.key, message).await);
    let task = puppet.task().await;
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    let canceled = hub.result(&geo.base, &client.key, "CancelTask", json!({"id": own})).await;
    assert_eq!(state(&canceled), "TASK_STATE_CANCELED");
    puppet.called("CancelTask", 1).await;
    assert_eq!(puppet.calls("CancelTask")[0].body["params"]["id"], task);
    assert_eq!(hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
    // The next task shows that nothing of the first one is left.
    let message = hire_message("m-2", "go", json!({"budget": "0.25"}));
    let own = id(&hub.begin(&geo.base, &client.key, message).await);
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
    assert_eq!(puppet.calls("CancelTask").len(), 1);
}

#[tokio::test]
async fn a_bare_message_is_the_result() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let said = json!({"messageId": "w-1", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]});
    puppet.fault(Fault::Message(said));
    let params = json!({"message": text_message("m-1", "hi")});
    let sent = hub.result(&geo.base, &client.key, "SendMessage", params).await;
    assert_eq!(sent["message"]["parts"], json!([{"text": "hello"}]));
    assert_eq!(sent["message"]["messageId"], "w-1");
    let by = hub.orchestrator("acme").await;
    let said = json!({"messageId": "w-2", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]});
    puppet.fault(Fault::Message(said));
    let body = json!({"orchestrator_id": by.id, "skill_name": "route",
        "input_data": {"text": "hi"}, "budget": 0});
    let reply = hub.post("/registry/jobs", Some(&by.key), &body).await.expect(200);
    assert_eq!(reply.at("/output_data"), json!({"text": "hello"}), "{}", reply.text);
}

#[tokio::test]
async fn input_goes_as_text_or_data_as_the_skill_takes_it() {
    let hub = TestHub::serve(&[]).await;
    let by = hub.orchestrator("acme").await;
    let input = json!({"from": "Lugano", "n": 1.50});
    let cases = [
        (json!(["application/json"]), json!([{"data": input, "mediaType": "application/json"}])),
        (json!(["text/plain"]), json!([{"text": input.to_string()}])),
        (json!([]), json!([{"data": input, "mediaType": "application/json"}])),
    ];
    for (at, (modes, expected)) in cases.into_iter().enumerate() {
        let puppet = Puppet::start().await;
        let skill = format!("route-{at}");
        puppet.change_card(|card| {
            card["defaultInputModes"] = modes;
            card["skills"][0]["id"] = skill.clone().into();
        });
        hub.remote(&puppet, &format!("geo-{at}")).await;
        let body = json!({"orchestrator_id": by.id, "skill_name": skill, "input_data": input,
            "budget": 0});
        let (reply, ()) = tokio::join!(hub.post("/registry/jobs", Some(&by.key), &body), async {
            let task = puppet.task().await;
            puppet.complete(&task, "done");
        });
        assert_eq!(reply.expect(200).str("/status"), "SUCCESS");
        assert_eq!(puppet.messages()[0]["parts"], expected);
    }
}

#[tokio::test]
async fn the_messages_of_a_conversation_go_into_one_context_of_the_worker() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    hub.remote(&puppet, "geo").await;
    let ann = "ann@chorus";
    let joined = hub.post("/relay/register", None, &registration(ann)).await.expect(201);
    let key = joined.str("/data/api_key");
    let shown = hub.get("/v1/agents/geo", None).await.expect(200);
    let to = shown.str("/names/relay");
    for (number, conversation) in [(1, "c-1"), (2, "c-1"), (1, "c-2")] {
        let envelope = turn(ann, "to Lugano", conversation, number);
        let body = json!({"receiver_id": to, "envelope": envelope});
        let sent = hub.post("/relay/messages", Some(&key), &body).await;
        assert!(matches!(sent.status, 200 | 202), "{}", sent.text);
        let task = puppet.task().await;
        puppet.complete(&task, "Take the A2.");
        // The context of a task is known once the worker has answered.
        eventually(async || hub.engine.with_world(|world| world.live_jobs().count() == 0)).await;
    }
    let contexts: Vec<Value> =
        puppet.messages().iter().map(|message| message["contextId"].clone()).collect();
    assert_eq!(contexts, [json!(null), json!("remote-c1"), json!(null)]);
}
