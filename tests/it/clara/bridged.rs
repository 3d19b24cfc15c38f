//! Jobs between protocols: other protocols' agents on the board, and hires both ways (R20, R42,
//! R79).

use serde_json::{Value, json};

use super::kit::{Hub, Wallet, account};
use crate::kit::eventually;

/// The registry's id of an agent of this market.
async fn registry_id(hub: &Hub, skill: &str) -> String {
    let path = format!("/registry/discover?skill={skill}");
    let found = hub.get(&path, Some(&hub.operator)).await.expect(200);
    found.str("/agents/0/agent_id")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_of_another_protocol_is_shown_without_what_is_in_it() {
    let hub = Hub::serve(&[]).await;
    let clara = Wallet::of(1);
    hub.agent(&clara, "A", "tweet", "20").await;
    let boss = hub.orchestrator("acme").await;
    hub.grant("acme", "100").await;
    let worker = registry_id(&hub, "clara.tweet").await;
    let body = json!({"orchestrator_id": boss.id, "skill_name": "clara.tweet",
        "input_data": {"text": "a secret"}, "budget": 50, "callback_url": null});
    let path = format!("/registry/agents/{worker}/jobs?wait=0");
    let taken = hub.post(&path, Some(&boss.key), &body).await;
    assert!(taken.status < 300, "{} {}", taken.status, taken.text);
    let inbox = hub.listed("A").await["tasks"]["inbox"].clone();
    let (task, shown) = inbox.as_object().expect("an object").iter().next().expect("a task");
    assert!(shown.get("payload").is_none(), "{shown}");
    assert_eq!((&shown["agentId"], &shown["reward"]), (&json!("A"), &json!("20")));
    let requester = shown["requesterId"].as_str().expect("an alias");
    assert!(requester.starts_with("registry/"), "{requester}");
    let assigned = hub.results("?sort=DESC&limit=1").await;
    let sent = &assigned.edges[0].node.messages[0];
    assert_eq!(sent.tag("Action"), Some("Agent-Task-Assignment"));
    assert_eq!((sent.tag("Agent-Id"), &*sent.target), (Some("A"), &*clara.address()));
    assert_eq!(sent.tag("Requesting-Agent-Id"), Some(requester));
    // Only its own agent reads it.
    let tags = [("RedStone-Agent-Id", "A")];
    let next = hub.act(&clara, "Load-Next-Assigned-Task", &tags, "").await;
    assert_eq!(next.data()["payload"], json!({"text": "a secret"}));
    let all = [("Action", "Load-Next-Assigned-Task"), ("Protocol", "C.L.A.R.A."), tags[0]];
    let claimed = hub.dry_run_as(&clara.address(), &all, "").await;
    assert_eq!(claimed.error.as_deref(), Some("Sign this message to read it"));
    let tags = super::kit::about("A", task);
    let done = hub.act(&clara, "Send-Result", &tags, r#"{"text":"a hidden answer"}"#).await;
    assert_eq!(done.result.error, None);
    assert_eq!(hub.balance("acme").await, ("80.00".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.account(&clara).await, account("20", "0"));
    let outbox = hub.listed("A").await["tasks"]["outbox"][task].clone();
    assert!(outbox.is_object() && outbox.get("result").is_none(), "{outbox}");
    let job = hub.get(&format!("/registry/jobs/{task}"), Some(&boss.key)).await.expect(200);
    assert!(job.text.contains("a hidden answer"), "{}", job.text);
    let public = [
        serde_json::to_string(&hub.board().await).expect("JSON"),
        format!("{:?}", hub.results("?limit=1000").await),
        format!("{:?}", done.result),
        format!("{:?}", hub.dry_run(&[("Action", "Tasks-Queue")], "").await),
    ];
    for text in public {
        assert!(!text.contains("a secret") && !text.contains("hidden answer"), "{text}");
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hired_agent_that_declines_is_a_refusal_for_who_hired_it() {
    let hub = Hub::serve(&[]).await;
    let clara = Wallet::of(1);
    hub.agent(&clara, "A", "tweet", "20").await;
    hub.agent(&Wallet::of(2), "B", "tweet", "20").await;
    let boss = hub.orchestrator("acme").await;
    hub.grant("acme", "100").await;
    let worker = registry_id(&hub, "clara.tweet").await;
    let named = crate::kit::Agent { id: worker, key: String::new(), owner: String::new() };
    let taken = hub.hire(&boss, &named, "clara.tweet", "50").await;
    assert!(taken.status < 300, "{} {}", taken.status, taken.text);
    let mut task = None;
    for (by, id) in [(&clara, "A"), (&Wallet::of(2), "B")] {
        let inbox = hub.listed(id).await["tasks"]["inbox"].clone();
        if let Some((found, _)) = inbox.as_object().and_then(|all| all.iter().next()) {
            assert_eq!(hub.decline(by, id, found).await.actions(), ["Task-Declined"]);
            task = Some(found.clone());
        }
    }
    let task = task.expect("a task");
    assert_eq!(hub.balance("acme").await, ("100.00".to_owned(), "0.00".to_owned()));
    let job = hub.get(&format!("/registry/jobs/{task}"), Some(&boss.key)).await.expect(200);
    assert_eq!(job.str("/status"), "FAILURE", "{}", job.text);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn agents_of_other_protocols_are_listed_and_can_be_named() {
    let hub = Hub::serve(&[]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    let worker = hub.agent_of_registry("acme", "summarize", "12.00").await;
    let tweeter = hub.agent_of_registry("other", "tweet", "0.10").await;
    let board = hub.board().await;
    let find = |id: &str| {
        let address = address_of(id);
        board.iter().find(|agent| agent["profileAddress"] == address.as_str()).cloned()
    };
    let shown = find(&worker.id).expect("it is listed");
    let alias = shown["id"].as_str().expect("an id").to_owned();
    let (front, digits) = alias.rsplit_once('-').expect("a slug and digits");
    assert!(front.starts_with("registry/acme-s-agent"), "{alias}");
    assert!(digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{alias}");
    assert_eq!((&shown["topic"], &shown["fee"]), (&json!("none"), &json!("12")));
    let other = find(&tweeter.id).expect("it is listed");
    assert_eq!((&other["topic"], &other["fee"]), (&json!("tweet"), &json!("1")), "rounded up");
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("Target-Agent-Id", &alias),
    ];
    let task = hub.act(&requester, "Register-Task", &tags, r#"{"text":"hello"}"#).await;
    assert_eq!(task.result.error, None);
    assert_eq!(hub.listed(&alias).await["tasks"]["inbox"][&task.id]["reward"], "12");
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let path = format!("/registry/agents/{}/jobs", worker.id);
    let work = hub.get(&path, Some(&worker.key)).await.expect(200);
    assert_eq!(work.at("/jobs/0/input_data"), json!({"text": "hello"}));
    let job = work.str("/jobs/0/job_id");
    hub.report(&worker, &job, "SUCCESS", "12.00").await.expect(200);
    let told = async || {
        let said = hub.act(&requester, "Load-Next-Task-Result", &[], "").await;
        said.result.messages.first().map(|_| said.data())
    };
    let mut result: Option<Value> = None;
    eventually(async || {
        result = told().await;
        result.is_some()
    })
    .await;
    let result = result.expect("a result");
    assert_eq!((&result["id"], &result["result"]), (&json!(task.id), &json!({"done": true})));
    assert_eq!(result["agentId"], alias.as_str());
    assert_eq!(hub.account(&requester).await, account("88", "0"));
    assert_eq!(hub.balance("acme").await.0, "12.00");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_to_a_wallet_that_cannot_answer_rematches_its_task_without_blame() {
    let hub = Hub::serve(&[]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    let first = hub.agent_of_registry("acme", "tweet", "0.10").await;
    let before = hub.score(&first).await;
    let tags = [("RedStone-Agent-Topic", "tweet"), ("RedStone-Agent-Reward", "50")];
    let task = hub.act(&requester, "Register-Task", &tags, r#"{"text":"hello"}"#).await;
    assert_eq!(task.result.error, None);
    let second = hub.agent_of_registry("other", "tweet", "0.20").await;
    let job_of = async |worker: &crate::kit::Agent| {
        let path = format!("/registry/agents/{}/jobs", worker.id);
        let work = hub.get(&path, Some(&worker.key)).await.expect(200);
        work.json()["jobs"][0]["job_id"].as_str().map(str::to_owned)
    };
    let job = job_of(&first).await.expect("a job");
    let path = format!("/v1/jobs/{job}/ask");
    hub.post(&path, Some(&first.key), &json!({"text": "Which city?"})).await.expect(200);
    assert_eq!(job_of(&first).await, None, "it is taken away");
    assert_eq!(job_of(&second).await.as_deref(), Some(&*job), "and matched again");
    let known = format!("/v1/work?known={job}.1");
    assert_eq!(hub.get(&known, Some(&first.key)).await.expect(200).at("/gone"), json!([job]));
    hub.report(&second, &job, "SUCCESS", "0.20").await.expect(200);
    assert_eq!(hub.account(&requester).await, account("99", "0"));
    assert_eq!(hub.score(&first).await, before, "a question is no failure");
    hub.0.stop().await;
}

/// The address the hub derives for a registry agent (docs/requirements.md, section 4).
fn address_of(id: &str) -> String {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(format!("rialto:registry:{id}"));
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}
