//! A job never returns to its requester (B12).
//!
//! The other half of the rule is the hop count. In a2a, whose workers may be hubs too, a message can
//! say how many bridges it has crossed; in all other protocols every job starts at zero.

use super::books::Balances;
use super::cells::{Cell, FLAGS, STARTING_CREDITS, walk};
use super::matrix::order;
use super::party::{Found, Terms};
use crate::kit::{TestHub, snapshot};

/// Each protocol's answer to an agent that hires itself.
fn refusal(protocol: &str) -> &'static str {
    match protocol {
        "registry" => "422 CONFLICT",
        "openclaw" => "rejected policy_violation",
        "clara" => "No agents to choose from",
        "agora" => "ERROR 400",
        "a2a" => "refused BRIDGE_LOOP",
        other => panic!("{other} has no line in this table"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_hire_itself_in_its_own_protocol() {
    let hub = TestHub::serve(FLAGS).await;
    let own = Cell::all().into_iter().filter(|cell| !cell.crosses()).collect();
    let tested = walk(&hub, own, async |hub, cell| {
        let worker = cell.meet(hub, Terms::at(cell.to.price())).await.worker;
        hub.grant(&worker.owner(), STARTING_CREDITS).await;
        let before = Balances::of(hub, &worker.owner());
        let found = cell.to.find(hub, worker.as_ref()).await;
        let refused = worker.as_requester().hire(hub, &found, &order()).await;
        let refused = refused.expect_err("a refusal");
        assert_eq!(refused.words, refusal(cell.to.id()), "{}", refused.bytes);
        assert_eq!(Balances::of(hub, &worker.owner()), before);
        assert!(worker.waiting(hub).await.is_empty());
        cell.to.id()
    });
    assert_eq!(tested.await, ["registry", "openclaw", "clara", "agora", "a2a"]);
    hub.stop().await;
}

/// One key is valid in registry, relay and openclaw (C2), so an agent could write to its own alias.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_cannot_hire_itself_by_its_alias_in_another_protocol() {
    use serde_json::json;

    let hub = TestHub::serve(FLAGS).await;
    let agent = hub.agent("acme", "work", "0", None).await;
    hub.grant("acme", STARTING_CREDITS).await;
    let alias = async |list: &str, rows: &str, id: &str| {
        let page = hub.get(list, None).await.expect(200).at(rows);
        let rows = page.as_array().expect("a list").clone();
        let own = rows.iter().find(|one| one["native_id"] == agent.id.as_str());
        own.expect("it is listed")[id].as_str().expect("an id").to_owned()
    };
    let claw = alias("/openclaw/agents", "/agents", "agent_id").await;
    let address = alias("/relay/agents", "/data", "agent_id").await;
    // Saved answers are kept for repeats; nothing else may be stored.
    let before = snapshot(&hub).await.kept;

    let request = json!({"request_id": crate::openclaw::kit::fresh_id(),
        "requester_agent_id": claw, "responder_agent_id": claw, "capability_id": "work",
        "input_data": {}, "correlation_id": crate::openclaw::kit::fresh_id(),
        "timestamp": crate::openclaw::kit::Hub::stamp_of(&hub)});
    let reply = hub.post("/openclaw/collaborations", Some(&agent.key), &request).await.expect(200);
    assert_eq!(reply.str("/rejection_reason/code"), "policy_violation", "{}", reply.text);
    assert_eq!(reply.header("rialto-job"), None);

    let mut envelope = crate::relay::kit::envelope(&address, "work, please");
    envelope["skill"] = "work".into();
    let body = json!({"receiver_id": address, "envelope": envelope});
    let reply = hub.post("/relay/messages", Some(&agent.key), &body).await;
    let code = reply.str("/data/receiver_response/error_code");
    assert_eq!(code, "ADAPTATION_FAILED", "{}", reply.text);
    assert_eq!(reply.header("rialto-job"), None, "{}", reply.text);
    assert_eq!(snapshot(&hub).await.kept, before);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_that_has_crossed_more_than_eight_bridges_is_refused() {
    use serde_json::json;

    use crate::a2a::kit::{HIRE, hire_message};

    let hub = TestHub::serve(FLAGS).await;
    let client = hub.a2a_client("asker").await;
    let worker = hub.agent("acme", "work", "0", None).await;
    let path = hub.a2a_path("registry", &worker.id);
    for (hop, opens) in [(0, true), (8, true), (9, false), (1_000, false)] {
        let message = hire_message("m-1", "work, please", json!({"hop": hop}));
        let params = json!({"message": message, "configuration": {"returnImmediately": true}});
        let reply = hub.rpc(&path, &client.key, "SendMessage", params).await.expect(200);
        assert_eq!(reply.header("rialto-job").is_some(), opens, "{hop}: {}", reply.text);
        let refused = reply.json()["result"]["message"]["metadata"][HIRE]["refused"].clone();
        let expected = if opens { json!(null) } else { json!("BRIDGE_LOOP") };
        assert_eq!(refused, expected, "{hop}: {}", reply.text);
    }
    hub.stop().await;
}

/// A worker may hire its own requester: that is another job.
#[tokio::test(flavor = "multi_thread")]
async fn two_agents_may_hire_each_other() {
    let hub = TestHub::serve(FLAGS).await;
    let crossing = |cell: &Cell| cell.name() == "agora-registry";
    let cell = Cell::all().into_iter().find(crossing).expect("a cell");
    let back = Cell::all().into_iter().find(|cell| cell.name() == "registry-agora").expect("it");
    let (one, other) =
        (cell.meet(&hub, Terms::at("0")).await, back.meet(&hub, Terms::at("0")).await);
    for worker in [&one.worker, &other.worker] {
        hub.grant(&worker.owner(), STARTING_CREDITS).await;
    }
    let find = async |cell: Cell, who: &dyn super::party::Worker| -> Found {
        cell.from.find(&hub, who).await
    };
    let there = other.worker.as_requester();
    let found = find(cell, one.worker.as_ref()).await;
    there.hire(&hub, &found, &order()).await.expect("it is hired");
    let given = one.received(&hub).await;
    let here = one.worker.as_requester();
    let found = find(back, other.worker.as_ref()).await;
    here.hire(&hub, &found, &order()).await.expect("hired back");
    let returned = other.received(&hub).await;
    assert!(other.worker.deliver(&hub, &returned).await.taken);
    assert!(one.worker.deliver(&hub, &given).await.taken);
    drop((here, there));
    drop((one, other));
    hub.stop().await;
}
