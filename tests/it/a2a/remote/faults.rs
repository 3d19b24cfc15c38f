//! Servers that break the rules: frames that cannot be read, questions that look alike, tasks that
//! are forgotten at once, and streams with nothing on them (R97–R100, R103, R108).

use serde_json::{Value, json};

use super::failures::Scene;
use super::server::{Fault, Puppet};
use crate::a2a::kit::{first_text, hire_message, text_message};
use crate::kit::eventually;

/// A status of the task `t-1`.
fn status(state: &str, message: Option<Value>) -> Value {
    let mut status = json!({ "state": state });
    if let Some(message) = message {
        status["message"] = message;
    }
    json!({"statusUpdate": {"taskId": "t-1", "contextId": "c-1", "status": status}})
}

/// The task `t-1`, as it begins.
fn begun() -> Value {
    json!({"task": {"id": "t-1", "contextId": "c-1", "status": {"state": "TASK_STATE_WORKING"}}})
}

fn chunk() -> Value {
    let artifact = json!({"artifactId": "a", "parts": [{"text": "Take the A2."}]});
    json!({"artifactUpdate": {"taskId": "t-1", "contextId": "c-1", "artifact": artifact}})
}

fn said(id: &str, text: &str) -> Value {
    json!({"messageId": id, "role": "ROLE_AGENT", "parts": [{"text": text}]})
}

fn answer(result: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 1, "result": result}).to_string()
}

/// A stream that comes in one piece: these events, and then another frame.
fn stream(events: &[Value], last: &str) -> Fault {
    let frames: String =
        events.iter().map(|event| format!("data: {}\n\n", answer(event))).collect();
    Fault::Text("text/event-stream", format!("{frames}data: {last}\n\n"))
}

/// The requester answers the question of a task.
async fn reply(scene: &Scene, own: &str, id: &str) {
    let mut message = text_message(id, "Lugano");
    message["taskId"] = own.into();
    scene.hub.begin(&scene.geo.base, &scene.client.key, message).await;
}

/// Frames that are no events.
const BAD: [&str; 3] = [
    "[DONE]",
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no such method"}}"#,
    r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no such town"}}"#,
];

#[tokio::test]
async fn what_a_server_sends_after_the_end_of_its_task_is_ignored() {
    let scene = Scene::of(Puppet::start().await).await;
    for (number, bad) in BAD.into_iter().enumerate() {
        let end = status("TASK_STATE_COMPLETED", None);
        scene.puppet.fault(stream(&[begun(), chunk(), end], bad));
        let own = scene.open(&format!("m-{number}")).await;
        let done = scene.until(&own, "TASK_STATE_COMPLETED").await;
        assert_eq!(first_text(&done["artifacts"][0]), "Take the A2.", "{bad}");
        assert_eq!(scene.puppet.message_ids().len(), number + 1, "{bad}: it was sent once");
    }
    assert_eq!(scene.puppet.calls("CancelTask").len(), 0, "all have ended");
}

#[tokio::test]
async fn a_frame_that_cannot_be_read_is_a_cut_and_no_answer_to_the_request() {
    let scene = Scene::of(Puppet::start().await).await;
    for (number, bad) in BAD.into_iter().enumerate() {
        scene.puppet.fault(stream(&[begun(), chunk()], bad));
        let mut task = begun()["task"].clone();
        task["artifacts"] = json!([chunk()["artifactUpdate"]["artifact"]]);
        task["status"]["state"] = "TASK_STATE_COMPLETED".into();
        scene.puppet.fault_of("GetTask", Fault::Text("application/json", answer(&task)));
        let own = scene.open(&format!("m-{number}")).await;
        let done = scene.until(&own, "TASK_STATE_COMPLETED").await;
        assert_eq!(done["artifacts"].as_array().map(Vec::len), Some(1), "{bad}: {done}");
        assert_eq!(scene.puppet.message_ids().len(), number + 1, "{bad}: it was sent once");
    }
}

#[tokio::test]
async fn a_job_that_ends_because_its_worker_refuses_an_answer_is_canceled_there() {
    let scene = Scene::of(Puppet::start().await).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which city?");
    scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
    scene.puppet.fault(Fault::Refuse(-32603, "out of order"));
    reply(&scene, &own, "m-2").await;
    scene.until(&own, "TASK_STATE_FAILED").await;
    scene.puppet.called("CancelTask", 1).await;
}

#[tokio::test]
async fn a_second_question_is_asked_however_much_it_looks_like_the_first() {
    for streams in [true, false] {
        let puppet = Puppet::start().await;
        let puppet = if streams { puppet } else { puppet.without_streams() };
        let scene = Scene::of(puppet).await;
        let questions = [
            [None, None],
            [Some(said("q", "Which city?")), Some(said("q", "Which street?"))],
            [Some(said("q", "Are you sure?")), Some(said("q", "Are you sure?"))],
            [Some(said("", "Are you sure?")), Some(said("", "Are you sure?"))],
        ];
        let ask = async |own: String, task: String, questions: [Option<Value>; 2]| {
            for (number, question) in questions.into_iter().enumerate() {
                scene.puppet.status(&task, "TASK_STATE_INPUT_REQUIRED", question);
                scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
                let id = format!("a-{number}");
                reply(&scene, &own, &id).await;
                let is_it = |sent: &String| sent.starts_with(&format!("{id}.{own}"));
                eventually(async || scene.puppet.message_ids().iter().any(is_it)).await;
                scene.until(&own, "TASK_STATE_WORKING").await;
            }
            scene.puppet.complete(&task, "done");
            scene.until(&own, "TASK_STATE_COMPLETED").await;
        };
        let mut all = Vec::new();
        for (number, questions) in questions.into_iter().enumerate() {
            let own = scene.open(&format!("m-{number}")).await;
            all.push(ask(own, scene.puppet.task().await, questions));
        }
        futures_util::future::join_all(all).await;
    }
}

#[tokio::test]
async fn a_second_sign_in_is_waited_for_and_a_question_ends_a_sign_in() {
    for streams in [true, false] {
        let puppet = Puppet::start().await;
        let puppet = if streams { puppet } else { puppet.without_streams() };
        let scene = Scene::of(puppet).await;
        let own = scene.open("m-1").await;
        let task = scene.puppet.task().await;
        for state in [
            "TASK_STATE_AUTH_REQUIRED",
            "TASK_STATE_WORKING",
            "TASK_STATE_AUTH_REQUIRED",
            "TASK_STATE_INPUT_REQUIRED",
        ] {
            scene.puppet.status(&task, state, None);
            scene.until(&own, state).await;
        }
        reply(&scene, &own, "m-2").await;
        eventually(async || scene.puppet.message_ids().len() == 2).await;
        scene.puppet.complete(&task, "done");
        scene.until(&own, "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn a_task_that_still_waits_long_after_its_answer_asks_again() {
    let scene = Scene::of(Puppet::start().await.without_streams().without_history()).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Please confirm");
    scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
    // The answer to the answer is the same question.
    let again = answer(&json!({"task": scene.puppet.snapshot(&task)}));
    scene.puppet.fault(Fault::Text("application/json", again));
    reply(&scene, &own, "m-2").await;
    scene.until(&own, "TASK_STATE_WORKING").await;
    scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
    reply(&scene, &own, "m-3").await;
    eventually(async || scene.puppet.message_ids().len() == 3).await;
    scene.puppet.complete(&task, "done");
    scene.until(&own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn a_completed_task_is_a_result_also_if_its_server_has_forgotten_it() {
    let scene = Scene::of(Puppet::start().await).await;
    for (number, code) in [-32001, -32601].into_iter().enumerate() {
        let end = status("TASK_STATE_COMPLETED", Some(said("w-1", "Take the A2.")));
        scene.puppet.fault(stream(&[begun(), end], ""));
        scene.puppet.fault_of("GetTask", Fault::Refuse(code, "not here"));
        let own = scene.open(&format!("m-{number}")).await;
        let done = scene.until(&own, "TASK_STATE_COMPLETED").await;
        assert_eq!(first_text(&done["status"]["message"]), "Take the A2.", "{code}");
        assert_eq!(scene.puppet.calls("GetTask").len(), number + 1);
    }
    assert_eq!(scene.puppet.calls("CancelTask").len(), 0);
    assert_eq!(scene.hub.balance("a2a:client").await.0, "99.50");
}

#[tokio::test]
async fn a_request_that_is_lost_twice_is_not_sent_a_third_time() {
    let scene = Scene::of(Puppet::start().await).await;
    let before = scene.score().await;
    for _ in 0..3 {
        scene.puppet.fault(Fault::BreakBefore);
    }
    let own = scene.open("m-1").await;
    scene.until(&own, "TASK_STATE_FAILED").await;
    assert_eq!(scene.puppet.message_ids().len(), 2, "once, and once more");
    assert_eq!(scene.score().await, before, "its fate is unknown");
    scene.assert_unpaid().await;
}

#[tokio::test]
async fn a_server_with_empty_streams_is_subscribed_to_less_and_less_often() {
    let scene = Scene::of(Puppet::start().await).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.status(&task, "TASK_STATE_WORKING", None);
    scene.until(&own, "TASK_STATE_WORKING").await;
    for _ in 0..100 {
        let empty = Fault::Text("text/event-stream", String::new());
        scene.puppet.fault_of("SubscribeToTask", empty);
    }
    scene.puppet.cut(&task);
    scene.puppet.called("SubscribeToTask", 1).await;
    tokio::time::sleep(std::time::Duration::from_millis(1_500)).await;
    let calls = scene.puppet.calls("SubscribeToTask").len();
    assert!(calls <= 3, "{calls} calls, each a second later and more");
    scene.puppet.complete(&task, "done");
    scene.until(&own, "TASK_STATE_COMPLETED").await;
}

#[tokio::test]
async fn events_without_a_pause_hide_neither_a_task_nor_its_cancellation() {
    let scene = Scene::of(Puppet::start().await).await;
    let (base, key) = (&scene.geo.base, &scene.client.key);
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.status(&task, "TASK_STATE_WORKING", None);
    scene.until(&own, "TASK_STATE_WORKING").await;
    scene.puppet.cut(&task);
    scene.puppet.streamed(&task, 1).await;
    let flood = async {
        let status = json!({"state": "TASK_STATE_WORKING"});
        let update = json!({"taskId": task, "contextId": "remote-c1", "status": status});
        loop {
            scene.puppet.event(&task, json!({ "statusUpdate": update }));
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    };
    let watch = async {
        scene.puppet.text(&task, "a", "Take the A2.", false);
        eventually(async || {
            let shown = scene.hub.get_task(base, key, &own).await;
            shown["artifacts"][0]["parts"][0]["text"] == "Take the A2."
        })
        .await;
        scene.hub.result(base, key, "CancelTask", json!({"id": own})).await;
        scene.puppet.called("CancelTask", 1).await;
    };
    tokio::select! {
        () = flood => {}
        () = watch => {}
    }
}

#[tokio::test]
async fn progress_with_a_used_id_or_with_metadata_alone_reaches_its_requester() {
    let scene = Scene::of(Puppet::start().await).await;
    let message = hire_message("m-1", "go", json!({"budget": "0.25"}));
    let mut stream = scene.hub.follow(&scene.geo.base, &scene.client.key, message).await;
    let task = scene.puppet.task().await;
    scene.puppet.says(&task, "TASK_STATE_WORKING", "p", "10%");
    scene.puppet.says(&task, "TASK_STATE_WORKING", "p", "20%");
    let update = json!({"taskId": task, "contextId": "remote-c1", "metadata": {"percent": 50},
        "status": {"state": "TASK_STATE_WORKING"}});
    scene.puppet.event(&task, json!({ "statusUpdate": update }));
    scene.puppet.complete(&task, "done");
    let told = |event: &crate::relay::kit::Event| {
        let update = &event.data["statusUpdate"];
        let text = update["status"]["message"]["parts"][0]["text"].clone();
        (text, update["metadata"]["percent"].clone())
    };
    let events: Vec<_> = stream.rest().await.iter().map(told).collect();
    let expected =
        [(json!("10%"), Value::Null), (json!("20%"), Value::Null), (Value::Null, json!(50))];
    let at = events.iter().position(|event| *event == expected[0]).expect("the first progress");
    assert_eq!(events[at..at + 3], expected, "{events:?}");
}
