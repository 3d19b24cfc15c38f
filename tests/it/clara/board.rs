//! The public board and its reads (R13–R20, R64–R66).

use rialto_protocols::clara::{Action, PROCESS};
use serde_json::{Value, json};

use super::kit::{Hub, Wallet};
use crate::kit::snapshot;

async fn market() -> (Hub, Wallet, Wallet) {
    let hub = Hub::serve(&[]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "1000").await;
    hub.agent(&agent, "A", "tweet", "20").await;
    (hub, agent, requester)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_board_is_read_without_a_signature_or_a_protocol() {
    let (hub, agent, requester) = market().await;
    let done = hub.task(&requester, "tweet", "50", "cheapest").await;
    let result = hub.deliver(&agent, "A", &done.id).await.data();
    let open = hub.task(&requester, "tweet", "50", "cheapest").await;
    let listed = hub.dry_run(&[("Action", "List-Agents")], "1234").await;
    assert_eq!(listed.messages.len(), 1);
    assert_eq!(listed.messages[0].tag("Action"), Some("List-Agents"));
    assert_eq!(listed.messages[0].target, "1234", "sent to the claimed sender");
    let agents: Value =
        serde_json::from_str(listed.messages[0].data.as_deref().expect("text")).expect("JSON");
    let [one] = agents.as_array().expect("a list").as_slice() else { panic!("{agents}") };
    assert_eq!(
        (&one["id"], &one["topic"], &one["fee"]),
        (&json!("A"), &json!("tweet"), &json!("20"))
    );
    assert_eq!(one["profileAddress"], agent.address().as_str());
    assert_eq!(one["metadata"], json!({"url": "https://x"}), "decoded");
    assert_eq!(one["tasks"]["inbox"], json!({open.id.as_str(): open.data()}));
    assert_eq!(one["tasks"]["outbox"], json!({done.id.as_str(): result}));
    let task = &one["tasks"]["inbox"][&open.id];
    assert!(task["reward"].is_string() && task["timestamp"].is_i64() && task["block"].is_u64());
    assert_eq!(task["payload"], json!({"say": "hello"}), "public, as the spec prints it");
    let shown = &one["tasks"]["outbox"][&done.id];
    assert!(shown["timestamp"].is_i64() && shown["block"].is_u64());
    assert_eq!(shown["result"], json!({"done": 1}));
    // The same for a signed request, and for the deployed name of the action.
    for action in ["List-Agents", "v1.List-Agents"] {
        let said = hub.say(&requester, &[("Action", action)], "").await;
        assert_eq!(said.data(), agents);
        assert_eq!(said.first().target, requester.address());
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_dry_run_changes_anything_whatever_its_action() {
    let (hub, agent, requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    let before = snapshot(&hub.0).await;
    let board = hub.board().await;
    for action in Action::ALL {
        for owner in [agent.address(), requester.address(), Wallet::of(7).address()] {
            let tags = [
                ("Action", action.as_str()),
                ("Protocol", "C.L.A.R.A."),
                ("RedStone-Agent-Topic", "tweet"),
                ("RedStone-Agent-Fee", "7"),
                ("RedStone-Agent-Reward", "70"),
                ("RedStone-Agent-Id", "A"),
                ("RedStone-Task-Id", &task.id),
            ];
            hub.dry_run_as(&owner, &tags, "{}").await;
        }
    }
    assert_eq!(snapshot(&hub.0).await, before);
    assert_eq!(hub.board().await, board);
    // It shows what would happen.
    let tags = [
        ("Action", "Register-Agent-Profile"),
        ("Protocol", "C.L.A.R.A."),
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "7"),
        ("RedStone-Agent-Id", "new"),
    ];
    let said = hub.dry_run_as(&agent.address(), &tags, "{}").await;
    assert_eq!(said.messages[0].data.as_deref(), Some("Agent new registered in Market"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dry_run_is_json_with_a_known_process() {
    let (hub, ..) = market().await;
    let path = format!("/clara/cu/dry-run?process-id={PROCESS}");
    let tags = json!([{"name": "Action", "value": "List-Agents"}]);
    let short = hub.post(&path, None, &json!({"Tags": tags})).await.expect(200);
    assert_eq!(short.at("/Messages/0/Target"), "", "missing claims are empty");
    for (path, body, status) in [
        (path.as_str(), "{", 400),
        (&path, "[]", 400),
        (&path, r#"{"Tags":{}}"#, 400),
        (&path, r#"{"Tags":[{"name":"Action"}]}"#, 400),
        (&path, r#"{"Target":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}"#, 404),
        ("/clara/cu/dry-run", "{}", 400),
        ("/clara/cu/dry-run?process-id=x", "{}", 404),
    ] {
        let reply = hub.post_text(path, None, body).await.expect(status);
        assert!(!reply.str("/error").is_empty());
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_action_is_no_error_and_does_nothing() {
    let (hub, agent, _) = market().await;
    let before = hub.held().await;
    for tags in
        [&[("Action", "Credit-Notice")][..], &[("Action", "")], &[("action", "List-Agents")], &[]]
    {
        let said = hub.say(&agent, tags, "").await;
        assert!(said.result.messages.is_empty() && said.result.error.is_none(), "{said:?}");
    }
    assert_eq!(hub.held().await, before);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_action_is_known_by_its_old_name() {
    let (hub, agent, requester) = market().await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    for action in Action::ALL {
        let name = |name: &str| {
            let mut tags = vec![
                ("Action".to_owned(), name.to_owned()),
                ("Protocol".to_owned(), "C.L.A.R.A.".to_owned()),
            ];
            for (name, value) in [
                ("RedStone-Agent-Topic", "tweet"),
                ("RedStone-Agent-Fee", "7"),
                ("RedStone-Agent-Reward", "70"),
                ("RedStone-Agent-Id", "A"),
                ("RedStone-Task-Id", &task.id),
            ] {
                tags.push((name.to_owned(), value.to_owned()));
            }
            tags
        };
        let ask = async |word: String| {
            let tags = name(&word);
            let tags: Vec<_> = tags.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
            let said = hub.dry_run_as(&agent.address(), &tags, "{}").await;
            let first = said.messages.first().and_then(|one| one.tag("Action").map(str::to_owned));
            (first, said.error)
        };
        let plain = ask(action.as_str().to_owned()).await;
        assert_ne!(plain, (None, None), "{action:?} is known");
        assert_eq!(ask(format!("v1.{}", action.as_str())).await, plain);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_market_at_a_glance() {
    let (hub, agent, requester) = market().await;
    let done = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.deliver(&agent, "A", &done.id).await;
    let queued = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.decline(&agent, "A", &queued.id).await;
    let tags = [("Action", "Dashboard-Data"), ("Protocol", "C.L.A.R.A.")];
    let said = hub.dry_run(&tags, "").await;
    let data: Value =
        serde_json::from_str(said.messages[0].data.as_deref().expect("data")).expect("JSON");
    assert_eq!(data["queue"][0]["id"], queued.id.as_str());
    assert_eq!(data["agents"], json!(hub.board().await));
    let totals = json!({"requested": 0, "assigned": 2, "done": 1, "rewards": "20"});
    assert_eq!(data["totals"], totals);
    hub.0.stop().await;
}
