//! How tasks at other servers are followed: in every dialect, by streams, pushes and questions,
//! across restarts, and until their end (R97, R99, R104–R106).

use rialto_core::time::Millis;
use rialto_hub::config::Profile;
use serde_json::{Value, json};

use super::server::{Dialect, Puppet};
use crate::a2a::kit::{HIRE, first_text, hire_message, id, state, text_message};
use crate::kit::{TestHub, eventually, together};

/// The states and texts of a client's stream, in order.
fn told(events: &[crate::relay::kit::Event]) -> Vec<String> {
    let one = |event: &crate::relay::kit::Event| {
        let update = &event.data["statusUpdate"]["status"];
        if update.is_null() {
            return first_text(&event.data["artifactUpdate"]["artifact"]).to_owned();
        }
        let state = update["state"].as_str().expect("a state").trim_start_matches("TASK_STATE_");
        match update["message"]["parts"][0]["text"].as_str() {
            Some(text) => format!("{state} {text}"),
            None => state.to_owned(),
        }
    };
    events.iter().map(one).collect()
}

#[tokio::test]
async fn a_task_goes_its_whole_way_in_every_dialect_and_all_watchers_see_it() {
    for dialect in Dialect::ALL {
        let hub = TestHub::serve(&[]).await;
        let puppet = Puppet::speaking(dialect).await;
        let geo = hub.paid_remote(&puppet, "geo", "0.25").await;
        let client = hub.rich_client("client").await;
        let message = hire_message("m-1", "to Lugano", json!({"budget": "0.25"}));
        let mut first = hub.follow(&geo.base, &client.key, message).await;
        let own = id(&first.event().await.data["task"]);
        let task = puppet.task().await;
        let [sent] = &puppet.calls("SendStreamingMessage")[..] else { panic!("one send") };
        let version = if dialect == Dialect::Old { "0.3" } else { "1.0" };
        assert_eq!(sent.header("a2a-version"), Some(version));
        let path = if dialect == Dialect::HttpJson { "/rpc/message:stream" } else { "/rpc" };
        assert_eq!(sent.path, path, "the URL of the card as it stands");
        let mut second = hub.subscribe(&geo.base, &client.key, &own, None).await;
        assert_eq!(id(&second.event().await.data["task"]), own);
        puppet.says(&task, "TASK_STATE_WORKING", "w-1", "looking");
        puppet.text(&task, "a", "Take ", false);
        eventually(async || {
            let task = hub.get_task(&geo.base, &client.key, &own).await;
            task["artifacts"][0]["parts"][0]["text"] == "Take "
        })
        .await;
        puppet.cut(&task);
        // While no stream is open.
        puppet.text(&task, "a", "the ", true);
        puppet.streamed(&task, 1).await;
        puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "A2 or A13?");
        let expected = ["WORKING", "WORKING looking", "Take ", "the ", "INPUT_REQUIRED A2 or A13?"];
        assert_eq!(told(&first.rest().await), expected, "{dialect:?}");
        let mut answer = text_message("m-2", "A2");
        answer["taskId"] = own.clone().into();
        hub.begin(&geo.base, &client.key, answer).await;
        eventually(async || puppet.message_ids().len() == 2).await;
        let sent = &puppet.messages()[1];
        assert_eq!((&sent["taskId"], &sent["contextId"]), (&json!(task), &json!("remote-c1")));
        eventually(async || puppet.snapshot(&task)["status"]["state"] == "TASK_STATE_WORKING")
            .await;
        puppet.text(&task, "a", "A2.", true);
        puppet.status(&task, "TASK_STATE_COMPLETED", None);
        let seen = told(&second.rest().await);
        let expected = [&expected[..], &["WORKING", "A2.", "COMPLETED"]].concat();
        assert_eq!(seen[seen.len() - 3..], expected[expected.len() - 3..], "{dialect:?} {seen:?}");
        let done = hub.get_task(&geo.base, &client.key, &own).await;
        let parts = done["artifacts"][0]["parts"].as_array().expect("parts");
        let all: Vec<&str> = parts.iter().map(|part| part["text"].as_str().unwrap()).collect();
        assert_eq!(all.concat(), "Take the A2.");
        let ids: Vec<Value> = puppet.message_ids().into_iter().map(Value::from).collect();
        assert_eq!(ids, [format!("m-1.{own}-1"), format!("m-2.{own}-2")]);
        assert_eq!(hub.balance("a2a:geo").await.0, "0.25");

        let message = hire_message("m-3", "again", json!({"budget": "0.25"}));
        let own = id(&hub.begin(&geo.base, &client.key, message).await);
        let task = puppet.task().await;
        puppet.status(&task, "TASK_STATE_WORKING", None);
        hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
        hub.result(&geo.base, &client.key, "CancelTask", json!({"id": own})).await;
        puppet.called("CancelTask", 1).await;
        assert_eq!(puppet.snapshot(&task)["status"]["state"], "TASK_STATE_CANCELED");
    }
}

#[tokio::test]
async fn a_push_counts_only_with_the_token_and_only_says_that_there_is_news() {
    for dialect in [Dialect::JsonRpc, Dialect::Old] {
        let hub = TestHub::serve(&[("http.public_url", "https://hub.example")]).await;
        let puppet = Puppet::speaking(dialect).await.without_streams();
        puppet.change_card(|card| card["capabilities"]["pushNotifications"] = true.into());
        let geo = hub.remote(&puppet, "geo").await;
        let client = hub.a2a_client("client").await;
        let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
        let task = puppet.task().await;
        let sent = &puppet.calls("SendMessage")[0].body["params"]["configuration"];
        let url = match dialect {
            Dialect::Old => &sent["pushNotificationConfig"]["url"],
            _ => &sent["taskPushNotificationConfig"]["url"],
        };
        let path = url.as_str().and_then(|url| url.strip_prefix("https://hub.example"));
        let path = path.expect("a URL of the hub").to_owned();
        assert!(path.starts_with("/a2a/callbacks/"), "{path}");
        hub.until(&client, &geo.base, &own, "TASK_STATE_SUBMITTED").await;
        puppet.says(&task, "TASK_STATE_WORKING", "w-1", "looking");
        let lie = json!({"statusUpdate": {"taskId": task, "contextId": "remote-c1",
            "status": {"state": "TASK_STATE_FAILED"}}});
        let (start, end) = path.split_at(path.len() - 4);
        let forged = format!("{start}{}", if end == "AAAA" { "BBBB" } else { "AAAA" });
        hub.post(&forged, None, &lie).await.expect(404);
        hub.post("/a2a/callbacks/x", Some(&geo.key), &lie).await.expect(404);
        assert_eq!(puppet.calls("GetTask").len(), 0, "nothing is asked for without the token");
        hub.post(&path, None, &lie).await.expect(200);
        eventually(async || {
            // What the server has, and not what was pushed.
            let task = hub.get_task(&geo.base, &client.key, &own).await;
            task["status"]["message"]["parts"][0]["text"] == "looking"
        })
        .await;
        puppet.complete(&task, "done");
        hub.post(&path, None, &json!({})).await.expect(200);
        hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
        hub.post(&path, None, &lie).await.expect(200);
        let done = hub.get_task(&geo.base, &client.key, &own).await;
        assert_eq!(state(&done), "TASK_STATE_COMPLETED", "late news change nothing");
    }
}

#[tokio::test]
async fn without_a_slot_to_spare_for_a_stream_the_task_is_asked_for() {
    let hub = TestHub::serve(&[("egress.per_host", "1")]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
    assert_eq!(puppet.calls("SendStreamingMessage").len(), 0);
    assert_eq!(puppet.calls("SubscribeToTask").len(), 0);
    let sent = &puppet.calls("SendMessage")[0];
    assert_eq!(sent.body["params"]["configuration"], json!({"returnImmediately": true}));
    assert!(!puppet.calls("GetTask").is_empty());
}

#[tokio::test]
async fn a_server_without_subscriptions_is_asked_after_a_cut() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
    let task = puppet.task().await;
    puppet.fault_of("SubscribeToTask", super::server::Fault::Refuse(-32601, "no such method"));
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    puppet.cut(&task);
    puppet.called("SubscribeToTask", 1).await;
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
    assert_eq!(puppet.calls("SubscribeToTask").len(), 1, "it is not tried again");
}

#[tokio::test]
async fn a_server_that_has_no_streams_after_all_gets_the_same_message_without_one() {
    for dialect in Dialect::ALL {
        let hub = TestHub::serve(&[]).await;
        let puppet = Puppet::speaking(dialect).await;
        let geo = hub.remote(&puppet, "geo").await;
        let client = hub.a2a_client("client").await;
        puppet.fault(super::server::Fault::Refuse(-32601, "no such method"));
        let own = id(&hub.begin(&geo.base, &client.key, text_message("m-1", "go")).await);
        let task = puppet.task().await;
        let once = format!("m-1.{own}-1");
        assert_eq!(puppet.message_ids(), [once.clone(), once], "{dialect:?}");
        assert_eq!(puppet.calls("SendMessage").len(), 1);
        puppet.complete(&task, "done");
        hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
    }
}

#[tokio::test]
async fn a_hub_that_starts_again_follows_its_tasks_on_and_sends_nothing_twice() {
    let cases = Dialect::ALL.into_iter().flat_map(|one| [(one, true), (one, false)]);
    together(cases.map(|(dialect, streams)| start_again(dialect, streams))).await;
}

/// Starts a hub again whose tasks at one server are in different states.
async fn start_again(dialect: Dialect, streams: bool) {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::speaking(dialect).await;
    let puppet = if streams { puppet } else { puppet.without_streams() };
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let mut tasks = Vec::new();
    for name in ["works", "asks", "ends", "lost"] {
        let message = text_message(name, name);
        let own = id(&hub.begin(&geo.base, &client.key, message).await);
        tasks.push((own, puppet.task().await));
    }
    let [works, asks, ends, lost] = &tasks[..] else { panic!("four") };
    puppet.says(&works.1, "TASK_STATE_WORKING", "w-1", "one");
    puppet.text(&works.1, "a", "1", false);
    puppet.says(&asks.1, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which?");
    hub.until(&client, &geo.base, &asks.0, "TASK_STATE_INPUT_REQUIRED").await;
    eventually(async || {
        let task = hub.get_task(&geo.base, &client.key, &works.0).await;
        task["artifacts"][0]["parts"][0]["text"] == "1"
    })
    .await;
    let hub = hub.restart(Profile::Serve, &[]).await;
    // What happened while the hub was down or is just starting.
    puppet.says(&works.1, "TASK_STATE_WORKING", "w-2", "two");
    puppet.text(&works.1, "a", "2", true);
    puppet.complete(&ends.1, "done");
    puppet.forget(&lost.1);
    hub.until(&client, &geo.base, &ends.0, "TASK_STATE_COMPLETED").await;
    hub.until(&client, &geo.base, &lost.0, "TASK_STATE_FAILED").await;
    let mut answer = text_message("answer", "that");
    answer["taskId"] = asks.0.clone().into();
    hub.begin(&geo.base, &client.key, answer).await;
    eventually(async || puppet.message_ids().len() == 5).await;
    puppet.complete(&asks.1, "that then");
    hub.until(&client, &geo.base, &asks.0, "TASK_STATE_COMPLETED").await;
    puppet.status(&works.1, "TASK_STATE_COMPLETED", None);
    hub.until(&client, &geo.base, &works.0, "TASK_STATE_COMPLETED").await;
    let mut events = hub.subscribe(&geo.base, &client.key, &works.0, Some("1")).await;
    // What came together, after the restart, has no order between statuses and parts.
    let is_part = |text: &String| ["1", "2"].contains(&text.as_str());
    let (parts, said): (Vec<String>, Vec<String>) =
        told(&events.rest().await).into_iter().partition(is_part);
    assert_eq!(parts, ["1", "2"], "{dialect:?} {streams}");
    let expected = ["WORKING", "WORKING one", "WORKING two", "COMPLETED"];
    assert_eq!(said, expected, "{dialect:?} {streams}");
    let ids = puppet.message_ids();
    let own = |name: &str, task: &str, n: u8| format!("{name}.{task}-{n}");
    let expected = [
        own("works", &works.0, 1),
        own("asks", &asks.0, 1),
        own("ends", &ends.0, 1),
        own("lost", &lost.0, 1),
        own("answer", &asks.0, 2),
    ];
    assert_eq!(ids, expected, "{dialect:?} {streams}");
}

#[tokio::test]
async fn a_task_that_passes_its_deadline_is_canceled_at_its_worker_once() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.paid_remote(&puppet, "geo", "0.25").await;
    let client = hub.rich_client("client").await;
    let deadline = deadline_in(&hub, Millis::minutes(10));
    let hire = json!({"budget": "0.25", "deadline": deadline});
    let own = id(&hub.begin(&geo.base, &client.key, hire_message("m-1", "go", hire)).await);
    let task = puppet.task().await;
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    hub.pass(Millis::minutes(11));
    let failed = hub.until(&client, &geo.base, &own, "TASK_STATE_FAILED").await;
    puppet.called("CancelTask", 1).await;
    assert_eq!(puppet.snapshot(&task)["status"]["state"], "TASK_STATE_CANCELED", "{failed}");
    assert_eq!(hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
    // The hub has noted that the worker knows.
    let is_noted = |world: &rialto_core::world::World| {
        let agent = world.agent_by_alias(rialto_protocols::a2a::ID, "geo").expect("known");
        let inbox = world.inbox(agent);
        inbox.acked == inbox.head
    };
    eventually(async || hub.engine.with_world(is_noted)).await;
    // What the worker says now is too late.
    puppet.complete(&task, "at last");
    let hub = hub.restart(Profile::Serve, &[]).await;
    let late = hub.get_task(&geo.base, &client.key, &own).await;
    assert_eq!(state(&late), "TASK_STATE_FAILED");
    assert_eq!(puppet.calls("CancelTask").len(), 1, "it was told once");
}

#[tokio::test]
async fn an_agent_that_leaves_is_told_that_its_tasks_are_not_wanted() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.paid_remote(&puppet, "geo", "0.25").await;
    let client = hub.rich_client("client").await;
    let message = hire_message("m-1", "go", json!({"budget": "0.25"}));
    let own = id(&hub.begin(&geo.base, &client.key, message).await);
    let task = puppet.task().await;
    puppet.status(&task, "TASK_STATE_WORKING", None);
    hub.until(&client, &geo.base, &own, "TASK_STATE_WORKING").await;
    hub.call("DELETE", &geo.base, Some(&geo.key), None).await.expect(200);
    puppet.called("CancelTask", 1).await;
    assert_eq!(puppet.snapshot(&task)["status"]["state"], "TASK_STATE_CANCELED");
    assert_eq!(hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
}

/// A time in the hub's future, as a message has it.
fn deadline_in(hub: &TestHub, span: Millis) -> String {
    rialto_protocols::kit::rfc3339::format_millis(hub.engine.now().plus(span))
}

#[tokio::test]
async fn a_message_says_how_many_hubs_it_came_through_and_too_many_are_a_loop() {
    let hub = TestHub::serve(&[]).await;
    let puppet = Puppet::start().await;
    let geo = hub.remote(&puppet, "geo").await;
    let client = hub.a2a_client("client").await;
    let message = hire_message("m-1", "go", json!({"hop": 7}));
    hub.begin(&geo.base, &client.key, message).await;
    puppet.task().await;
    assert_eq!(puppet.messages()[0]["metadata"][HIRE]["hop"], 8);
    let params = json!({"message": hire_message("m-2", "go", json!({"hop": 9}))});
    let refused = hub.result(&geo.base, &client.key, "SendMessage", params).await;
    assert_eq!(refused["message"]["metadata"][HIRE]["refused"], "BRIDGE_LOOP");
    assert_eq!(puppet.message_ids().len(), 1);
}
