//! Agents of other protocols in the market: matched by topic, bidding with their fee, paid the
//! shown price (R37, R79, B9, B15, B16).

use serde_json::json;

use super::kit::{Hub, Wallet, account};
use crate::kit::{Agent, eventually};

/// The market's name for a registry agent.
async fn alias_of(hub: &Hub, agent: &Agent) -> String {
    let board = hub.board().await;
    let address = address_of(&agent.id);
    let found = board.iter().find(|one| one["profileAddress"] == address.as_str());
    found.expect("it is listed")["id"].as_str().expect("an id").to_owned()
}

/// The address the hub derives for a registry agent (docs/requirements.md, section 4).
fn address_of(id: &str) -> String {
    use base64::Engine as _;
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(format!("rialto:registry:{id}"));
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(digest)
}

/// The job that a registry agent was given.
async fn work_of(hub: &Hub, agent: &Agent) -> (String, serde_json::Value) {
    let path = format!("/registry/agents/{}/jobs?wait=10", agent.id);
    let work = hub.get(&path, Some(&agent.key)).await.expect(200);
    (work.str("/jobs/0/job_id"), work.at("/jobs/0"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_skill_called_like_a_topic_is_matched_for_it_and_paid_its_fee() {
    let hub = Hub::serve(&[]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    hub.agent(&Wallet::of(1), "A", "tweet", "20").await;
    let tweeter = hub.agent_of_registry("other", "tweet", "0.10").await;
    let alias = alias_of(&hub, &tweeter).await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(task.chosen(), alias, "a fee of 1 is the lowest");
    let sent = task.first();
    assert_eq!(sent.tag("Action"), Some("Agent-Task-Assignment"));
    assert_eq!(&*sent.target, address_of(&tweeter.id), "an address without a key");
    let (job, given) = work_of(&hub, &tweeter).await;
    assert_eq!((&given["skill_name"], &given["budget"]), (&json!("tweet"), &json!(1.00)));
    hub.report(&tweeter, &job, "SUCCESS", "0.10").await.expect(200);
    assert_eq!(hub.account(&requester).await, account("99", "0"), "the shown price is paid");
    assert_eq!(hub.balance("other").await.0, "1.00");
    let shown = hub.listed(&alias).await;
    assert_eq!(shown["totals"], json!({"requested": 0, "assigned": 1, "done": 1, "rewards": "1"}));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_says_which_other_skills_have_a_topic() {
    let hub = Hub::serve(&[("bridge.topics", "{ forecast = \"nft\" }")]).await;
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    let seer = hub.agent_of_registry("acme", "forecast", "2.50").await;
    let plain = hub.agent_of_registry("plain", "summarize", "1.00").await;
    let alias = alias_of(&hub, &seer).await;
    let shown = hub.listed(&alias).await;
    assert_eq!((&shown["topic"], &shown["fee"]), (&json!("nft"), &json!("3")));
    let task = hub.task(&requester, "nft", "50", "roundRobin").await;
    assert_eq!(task.chosen(), alias);
    let (_, given) = work_of(&hub, &seer).await;
    assert_eq!(given["skill_name"], "forecast");
    let shown = hub.listed(&alias_of(&hub, &plain).await).await;
    assert_eq!(shown["topic"], "none");
    hub.task(&requester, "discord", "50", "roundRobin").await.error();
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_query_they_offer_their_fee_and_win_or_lose_by_it() {
    let hub = Hub::serve(&[]).await;
    let (requester, own) = (Wallet::of(9), Wallet::of(1));
    hub.fund(&requester, "100").await;
    hub.agent(&own, "A", "tweet", "20").await;
    let far = hub.agent_of_registry("other", "tweet", "3.20").await;
    hub.agent_of_registry("dear", "tweet", "70.00").await;
    let alias = alias_of(&hub, &far).await;
    for (bid, winner) in [("5", alias.as_str()), ("3", "A")] {
        let task = hub.auction(&requester, "tweet", "50").await;
        // All others have made their offers, so this is the last one.
        hub.offer(&own, "A", &task, bid).await;
        let mut won = serde_json::Value::Null;
        eventually(async || {
            won = hub.listed(winner).await["tasks"]["inbox"][&task].clone();
            won.is_object()
        })
        .await;
        let fee = if winner == "A" { "3" } else { "4" };
        assert_eq!(won["reward"], fee);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_fails_is_scored_and_the_task_goes_on() {
    let hub = Hub::serve(&[]).await;
    let (requester, own) = (Wallet::of(9), Wallet::of(1));
    hub.fund(&requester, "100").await;
    let far = hub.agent_of_registry("other", "tweet", "0.10").await;
    let task = hub.task(&requester, "tweet", "50", "cheapest").await;
    hub.agent(&own, "A", "tweet", "20").await;
    let (job, _) = work_of(&hub, &far).await;
    hub.report(&far, &job, "FAILURE", "0").await.expect(200);
    assert!(hub.listed("A").await["tasks"]["inbox"][&task.id].is_object(), "reassigned");
    assert_eq!(hub.score(&far).await, "45.5");
    assert_eq!(hub.account(&requester).await, account("50", "50"), "still held");
    hub.0.stop().await;
}
