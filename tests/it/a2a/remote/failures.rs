//! What servers answer that do not do their work, and what becomes of the jobs (R98, R100, R101,
//! R103).

use serde_json::{Value, json};

use super::Remote;
use super::server::{Dialect, Fault, Puppet};
use crate::a2a::kit::{Client, HIRE, first_text, hire_message, id, state, text_message};
use crate::crash::TO_COME_BACK;
use crate::kit::{TestHub, eventually, together};

/// A hub, a server with an agent, and a client that pays.
pub(super) struct Scene {
    pub hub: TestHub,
    pub puppet: Puppet,
    pub geo: Remote,
    pub client: Client,
}

impl Scene {
    pub async fn of(puppet: Puppet) -> Self {
        let hub = TestHub::serve(&[]).await;
        let geo = hub.paid_remote(&puppet, "geo", "0.25").await;
        let client = hub.rich_client("client").await;
        Self { hub, puppet, geo, client }
    }

    /// Opens a task; returns its id.
    pub async fn open(&self, message: &str) -> String {
        let message = hire_message(message, "go", json!({"budget": "0.25"}));
        id(&self.hub.begin(&self.geo.base, &self.client.key, message).await)
    }

    pub async fn until(&self, task: &str, state: &str) -> Value {
        self.hub.until(&self.client, &self.geo.base, task, state).await
    }

    /// Nothing was paid, and nothing is held.
    pub async fn assert_unpaid(&self) {
        assert_eq!(self.hub.balance("a2a:client").await, ("100.00".to_owned(), "0.00".to_owned()));
    }

    /// What the agent's own record says of it.
    pub async fn score(&self) -> String {
        let reply = self.hub.get("/v1/agents/geo", None).await.expect(200);
        crate::kit::digits(&reply.text, "score")
    }
}

#[tokio::test]
async fn the_last_word_of_a_worker_decides_what_becomes_of_the_job() {
    for dialect in Dialect::ALL {
        let scene = Scene::of(Puppet::speaking(dialect).await).await;
        let before = scene.score().await;
        let cases = [
            ("TASK_STATE_REJECTED", "TASK_STATE_REJECTED"),
            // Nobody has asked it to.
            ("TASK_STATE_CANCELED", "TASK_STATE_REJECTED"),
            ("TASK_STATE_FAILED", "TASK_STATE_FAILED"),
        ];
        for (said, shown) in cases {
            assert_eq!(scene.score().await, before, "{said}");
            let own = scene.open(said).await;
            let task = scene.puppet.task().await;
            scene.puppet.status(&task, "TASK_STATE_WORKING", None);
            scene.puppet.text(&task, "half", "Take the", false);
            scene.puppet.says(&task, said, "w-9", "the road is closed");
            let ended = scene.until(&own, shown).await;
            let message = &ended["status"]["message"];
            assert_eq!(first_text(message), "the road is closed", "{dialect:?} {said}: {ended}");
            scene.assert_unpaid().await;
        }
        assert_ne!(scene.score().await, before, "the one that failed is blamed");
        assert_eq!(scene.puppet.calls("CancelTask").len(), 0, "{dialect:?}: it has ended");
        let own = scene.open("m-9").await;
        let task = scene.puppet.task().await;
        scene.puppet.complete(&task, "Take the A2.");
        scene.until(&own, "TASK_STATE_COMPLETED").await;
        assert_eq!(scene.hub.balance("a2a:client").await.0, "99.75");
    }
}

#[tokio::test]
async fn the_error_of_a_send_decides_what_becomes_of_the_job() {
    for dialect in Dialect::ALL {
        for streams in [true, false] {
            let puppet = Puppet::speaking(dialect).await;
            let puppet = if streams { puppet } else { puppet.without_streams() };
            let scene = Scene::of(puppet).await;
            let before = scene.score().await;
            for (code, shown, refused) in [
                (-32602, "TASK_STATE_FAILED", json!("INPUT_MISFIT")),
                (-32005, "TASK_STATE_FAILED", json!("INPUT_MISFIT")),
                (-32008, "TASK_STATE_FAILED", json!("INPUT_MISFIT")),
                (-32004, "TASK_STATE_REJECTED", Value::Null),
                (-32603, "TASK_STATE_FAILED", Value::Null),
            ] {
                assert_eq!(scene.score().await, before, "before {code}: no blame so far");
                scene.puppet.fault(Fault::Refuse(code, "no such town"));
                let own = scene.open(&format!("m{code}")).await;
                let ended = scene.until(&own, shown).await;
                let text = first_text(&ended["status"]["message"]).to_owned();
                assert!(text.contains("no such town"), "{dialect:?} {code}: {text}");
                assert_eq!(ended["metadata"][HIRE]["refused"], refused, "{dialect:?} {code}");
                scene.assert_unpaid().await;
            }
            assert_ne!(scene.score().await, before, "any other error is a failure of the agent");
            assert_eq!(scene.puppet.message_ids().len(), 5, "each was sent once");
        }
    }
}

#[tokio::test]
async fn a_busy_server_gets_the_same_message_again() {
    for fault in [
        Fault::Status(503, &[], String::new()),
        Fault::Status(429, &[("retry-after", "1")], "{}".to_owned()),
    ] {
        let scene = Scene::of(Puppet::start().await).await;
        scene.puppet.fault(fault);
        let own = scene.open("m-1").await;
        let task = scene.puppet.task().await;
        scene.puppet.complete(&task, "done");
        scene.until(&own, "TASK_STATE_COMPLETED").await;
        let once = format!("m-1.{own}-1");
        assert_eq!(scene.puppet.message_ids(), [once.clone(), once]);
        assert_eq!(scene.puppet.task_count(), 1);
    }
}

#[tokio::test]
async fn an_agent_whose_server_is_away_gets_its_task_once_it_is_back() {
    let away = async |status: u16| {
        let scene = Scene::of(Puppet::start().await).await;
        let before = scene.score().await;
        // The card is fetched again, and says nothing new.
        scene.puppet.fault(Fault::Status(status, &[], String::new()));
        let own = scene.open("m-1").await;
        let is_away = |world: &rialto_core::world::World| {
            let agent = world.agent_by_alias(rialto_protocols::a2a::ID, "geo").expect("known");
            world.agent_state(agent).is_some_and(|state| state.presence.unreachable)
        };
        eventually(async || scene.hub.engine.with_world(is_away)).await;
        let waiting = scene.hub.get_task(&scene.geo.base, &scene.client.key, &own).await;
        assert_eq!(state(&waiting), "TASK_STATE_SUBMITTED");
        let hire = json!({"budget": "0.25", "queue": false});
        let params = json!({"message": hire_message("m-2", "go", hire)});
        let (base, key) = (&scene.geo.base, &scene.client.key);
        let refused = scene.hub.result(base, key, "SendMessage", params).await;
        assert_eq!(refused["message"]["metadata"][HIRE]["refused"], "OFFLINE", "{status}");
        assert_eq!(scene.score().await, before, "to be away is no failure");
        // Its card can be fetched, so it is tried again.
        let task = scene.puppet.task().await;
        scene.puppet.complete(&task, "done");
        scene.until(&own, "TASK_STATE_COMPLETED").await;
        assert_eq!(scene.puppet.message_ids().len(), 2, "refused once, and taken once");
    };
    tokio::join!(away(401), away(403), away(404));
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_gets_the_task_when_it_is_there() {
    let scene = Scene::of(Puppet::again(TO_COME_BACK).await).await;
    let Scene { hub, puppet, geo, client } = scene;
    let at = puppet.stop().await;
    let message = hire_message("m-1", "go", json!({"budget": "0.25"}));
    let own = id(&hub.begin(&geo.base, &client.key, message).await);
    hub.until(&client, &geo.base, &own, "TASK_STATE_SUBMITTED").await;
    let is_away = |world: &rialto_core::world::World| {
        let agent = world.agent_by_alias(rialto_protocols::a2a::ID, "geo").expect("known");
        world.agent_state(agent).is_some_and(|state| state.presence.unreachable)
    };
    eventually(async || hub.engine.with_world(is_away)).await;
    // Neither its own calls nor a fetch of its card that fails bring it back.
    hub.refresh("geo", &geo.key).await.expect(400);
    hub.get("/v1/me", Some(&geo.key)).await.expect(200);
    let client_only = json!({"name": "geo"});
    hub.post("/a2a/agents", Some(&geo.key), &client_only).await.expect(200);
    assert!(hub.engine.with_world(is_away));
    let puppet = Puppet::again(at).await;
    let task = puppet.task().await;
    puppet.complete(&task, "done");
    hub.until(&client, &geo.base, &own, "TASK_STATE_COMPLETED").await;
    assert_eq!(puppet.message_ids(), [format!("m-1.{own}-1")]);
}

#[tokio::test]
async fn a_request_whose_answer_is_lost_is_looked_for_and_not_sent_again() {
    for dialect in [Dialect::JsonRpc, Dialect::HttpJson] {
        for streams in [true, false] {
            let puppet = Puppet::speaking(dialect).await;
            let puppet = if streams { puppet } else { puppet.without_streams() };
            let scene = Scene::of(puppet).await;
            scene.puppet.fault(Fault::BreakAfter);
            let own = scene.open("m-1").await;
            let task = scene.puppet.task().await;
            scene.until(&own, "TASK_STATE_SUBMITTED").await;
            scene.puppet.called("ListTasks", 1).await;
            scene.puppet.complete(&task, "done");
            scene.until(&own, "TASK_STATE_COMPLETED").await;
            assert_eq!(scene.puppet.message_ids(), [format!("m-1.{own}-1")], "{dialect:?}");
            assert_eq!(scene.hub.balance("a2a:client").await.0, "99.75");
        }
    }
}

#[tokio::test]
async fn a_request_is_looked_for_on_every_page() {
    let scene = Scene::of(Puppet::start().await.with_short_pages()).await;
    for number in 1..3 {
        scene.open(&format!("m-{number}")).await;
        scene.puppet.task().await;
    }
    scene.puppet.fault(Fault::BreakAfter);
    let own = scene.open("m-3").await;
    let task = scene.puppet.task().await;
    // The list begins with the oldest.
    scene.puppet.called("ListTasks", 3).await;
    scene.puppet.complete(&task, "done");
    scene.until(&own, "TASK_STATE_COMPLETED").await;
    let sent = scene.puppet.message_ids();
    assert_eq!(sent.iter().filter(|id| id.contains(&own)).count(), 1, "{sent:?}");
}

#[tokio::test]
async fn a_request_that_is_not_at_its_server_is_sent_once_more() {
    let scene = Scene::of(Puppet::start().await).await;
    scene.puppet.fault(Fault::BreakBefore);
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.complete(&task, "done");
    scene.until(&own, "TASK_STATE_COMPLETED").await;
    let once = format!("m-1.{own}-1");
    assert_eq!(scene.puppet.message_ids(), [once.clone(), once], "the same message");
    assert_eq!(scene.puppet.task_count(), 1);
}

#[tokio::test]
async fn a_request_that_cannot_be_looked_for_fails_the_job_without_blame() {
    let old = Puppet::speaking(Dialect::Old).await;
    for puppet in [Puppet::start().await.without_list(), old] {
        let scene = Scene::of(puppet).await;
        let before = scene.score().await;
        scene.puppet.fault(Fault::BreakAfter);
        let own = scene.open("m-1").await;
        let failed = scene.until(&own, "TASK_STATE_FAILED").await;
        let text = first_text(&failed["status"]["message"]);
        assert!(text.contains("it is not known whether the agent got the request"), "{text}");
        scene.assert_unpaid().await;
        assert_eq!(scene.score().await, before, "its fate is unknown");
        assert_eq!(scene.puppet.message_ids().len(), 1);
    }
}

#[tokio::test]
async fn an_answer_to_a_question_whose_fate_is_unknown_is_sent_once() {
    together([Fault::BreakAfter, Fault::BreakBefore].map(lose_an_answer)).await;
}

/// Sends an answer during which the connection breaks.
async fn lose_an_answer(fault: Fault) {
    let scene = Scene::of(Puppet::start().await).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which city?");
    scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
    scene.puppet.fault(fault.clone());
    let mut answer = text_message("m-2", "Lugano");
    answer["taskId"] = own.clone().into();
    scene.hub.begin(&scene.geo.base, &scene.client.key, answer).await;
    let id = format!("m-2.{own}-2");
    let has = |one: &Value| one["messageId"] == id;
    let arrived = || -> usize {
        let snapshot = scene.puppet.snapshot(&task);
        snapshot["history"].as_array().expect("a list").iter().filter(|one| has(one)).count()
    };
    eventually(async || arrived() == 1).await;
    scene.puppet.complete(&task, "done");
    scene.until(&own, "TASK_STATE_COMPLETED").await;
    assert_eq!(arrived(), 1, "{fault:?}");
    assert_eq!(scene.puppet.task_count(), 1);
}

#[tokio::test]
async fn a_server_without_history_shows_by_its_state_whether_it_got_an_answer() {
    for (fault, shown) in
        [(Fault::BreakAfter, "TASK_STATE_COMPLETED"), (Fault::BreakBefore, "TASK_STATE_FAILED")]
    {
        let scene = Scene::of(Puppet::start().await.without_history()).await;
        let before = scene.score().await;
        let own = scene.open("m-1").await;
        let task = scene.puppet.task().await;
        scene.puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which city?");
        scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
        scene.puppet.fault(fault);
        let mut answer = text_message("m-2", "Lugano");
        answer["taskId"] = own.clone().into();
        scene.hub.begin(&scene.geo.base, &scene.client.key, answer).await;
        if shown == "TASK_STATE_COMPLETED" {
            scene.puppet.called("GetTask", 1).await;
            scene.puppet.complete(&task, "done");
            scene.until(&own, shown).await;
        } else {
            // It still waits, which may have either reason.
            scene.until(&own, shown).await;
            assert_eq!(scene.score().await, before, "its fate is unknown");
            scene.assert_unpaid().await;
        }
        assert_eq!(scene.puppet.message_ids().len(), 2, "{shown}: it was sent once");
    }
}

#[tokio::test]
async fn a_result_that_no_stream_showed_is_asked_for_until_it_is_there() {
    let scene = Scene::of(Puppet::start().await).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.keep(&task, json!({"artifactId": "a", "parts": [{"text": "Take the A2."}]}));
    for _ in 0..2 {
        let fault = Fault::Status(503, &[], String::new());
        scene.puppet.fault_of("GetTask", fault);
    }
    scene.puppet.status(&task, "TASK_STATE_COMPLETED", None);
    let done = scene.until(&own, "TASK_STATE_COMPLETED").await;
    assert_eq!(first_text(&done["artifacts"][0]), "Take the A2.");
}

#[tokio::test]
async fn events_that_are_too_large_fail_the_job_and_foreign_ones_are_ignored() {
    let scene = Scene::of(Puppet::start().await).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.status(&task, "TASK_STATE_WORKING", None);
    let of_another = |event: &str, content: Value| {
        let mut content = content;
        content["taskId"] = "another".into();
        content["contextId"] = "another".into();
        scene.puppet.event(&task, json!({ event: content }));
    };
    of_another("statusUpdate", json!({"status": {"state": "TASK_STATE_FAILED"}}));
    let artifact = json!({"artifactId": "theirs", "parts": [{"text": "not ours"}]});
    of_another("artifactUpdate", json!({ "artifact": artifact }));
    // So does an artifact without an id and parts.
    let nothing = json!({"artifactId": "", "parts": []});
    scene.puppet.artifact(&task, nothing, false);
    // Kinds and states of later versions say nothing.
    scene.puppet.event(&task, json!({"laterUpdate": {"taskId": task}}));
    let later =
        json!({"taskId": task, "contextId": "remote-c1", "status": {"state": "TASK_STATE_LATER"}});
    scene.puppet.event(&task, json!({ "statusUpdate": later }));
    scene.puppet.complete(&task, "ours");
    scene.puppet.event(
        &task,
        json!({"statusUpdate": {"taskId": task, "contextId": "remote-c1",
        "status": {"state": "TASK_STATE_FAILED"}}}),
    );
    let ended = scene.until(&own, "TASK_STATE_COMPLETED").await;
    assert_eq!(ended["artifacts"].as_array().map(Vec::len), Some(1), "{ended}");
    assert_eq!(first_text(&ended["artifacts"][0]), "ours");

    let own = scene.open("m-2").await;
    let task = scene.puppet.task().await;
    scene.puppet.text(&task, "a", &"x".repeat(1 << 20), false);
    let failed = scene.until(&own, "TASK_STATE_FAILED").await;
    let text = first_text(&failed["status"]["message"]);
    assert!(text.contains("too large"), "{text}");
    // The server may still be at it.
    scene.puppet.called("CancelTask", 1).await;

    let own = scene.open("m-3").await;
    let task = scene.puppet.task().await;
    for number in 0..=256 {
        scene.puppet.text(&task, &format!("a{number}"), "x", false);
    }
    scene.puppet.status(&task, "TASK_STATE_COMPLETED", None);
    let failed = scene.until(&own, "TASK_STATE_FAILED").await;
    assert!(failed["artifacts"].as_array().is_some_and(|all| all.len() <= 256));
}

#[tokio::test]
async fn an_answer_that_is_none_of_the_protocol_fails_the_job() {
    let scene = Scene::of(Puppet::start().await.without_streams()).await;
    for (number, text) in ["not JSON", r#"{"jsonrpc":"2.0","id":1}"#, "[]"].iter().enumerate() {
        scene.puppet.fault(Fault::Text("application/json", (*text).to_owned()));
        let own = scene.open(&format!("m-{number}")).await;
        let failed = scene.until(&own, "TASK_STATE_FAILED").await;
        let said = first_text(&failed["status"]["message"]);
        assert!(said.contains("cannot be read"), "{text}: {said}");
    }
    scene.assert_unpaid().await;
}

#[tokio::test]
async fn a_refused_message_is_told_of_and_a_refused_answer_ends_the_job() {
    let scene = Scene::of(Puppet::start().await).await;
    let (base, key) = (&scene.geo.base, &scene.client.key);
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.status(&task, "TASK_STATE_WORKING", None);
    scene.until(&own, "TASK_STATE_WORKING").await;
    let more = |id: &str| {
        let mut message = text_message(id, "by the lake");
        message["taskId"] = own.clone().into();
        message
    };
    scene.puppet.fault(Fault::Refuse(-32602, "no more now"));
    scene.hub.begin(base, key, more("m-2")).await;
    eventually(async || {
        let task = scene.hub.get_task(base, key, &own).await;
        task["status"]["message"]
            .to_string()
            .contains("a message was not taken: the agent answered")
    })
    .await;
    scene.puppet.says(&task, "TASK_STATE_INPUT_REQUIRED", "q-1", "Which city?");
    scene.until(&own, "TASK_STATE_INPUT_REQUIRED").await;
    scene.puppet.fault(Fault::Refuse(-32602, "no such city"));
    scene.hub.begin(base, key, more("m-3")).await;
    let failed = scene.until(&own, "TASK_STATE_FAILED").await;
    assert!(first_text(&failed["status"]["message"]).contains("no such city"), "{failed}");
    assert_eq!(failed["metadata"][HIRE]["refused"], "INPUT_MISFIT");
    scene.assert_unpaid().await;
}

#[tokio::test]
async fn a_task_that_its_server_has_lost_fails() {
    let scene = Scene::of(Puppet::start().await.without_streams()).await;
    let own = scene.open("m-1").await;
    let task = scene.puppet.task().await;
    scene.puppet.forget(&task);
    let failed = scene.until(&own, "TASK_STATE_FAILED").await;
    let text = first_text(&failed["status"]["message"]);
    assert_eq!(text, "the agent does not know the task any more");
    scene.assert_unpaid().await;
}
