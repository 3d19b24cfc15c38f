//! The second process id, under which the market answers as deployed ones do (D1, R67).

use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::{MessageResult, ResultPage};

use super::kit::{Hub, Wallet};

const DEPLOYED: &str = "ZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZZY";

const OTHER: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

async fn say(hub: &Hub, by: &Wallet, tags: &[(&str, &str)], data: &str) -> (String, MessageResult) {
    let mut all = vec![("Protocol", "C.L.A.R.A.")];
    all.extend_from_slice(tags);
    let item = by.item_for(DEPLOYED, &all, data.as_bytes());
    let id = hub.post_bytes(item).await.expect(202).str("/id");
    let path = format!("/clara/cu/result/{id}?process-id={DEPLOYED}");
    let reply = hub.get(&path, None).await.expect(200);
    (id, MessageResult::read(reply.text.as_bytes()).expect("a result"))
}

#[tokio::test(flavor = "multi_thread")]
async fn through_the_deployed_process_the_same_market_uses_the_deployed_words() {
    let hub = Hub::serve(&[("clara.deployed_process_id", DEPLOYED)]).await;
    let (agent, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "100").await;
    for (topic, id) in [("chat", "C"), ("none", "N")] {
        let tags = [
            ("Action", "Register-Agent-Profile"),
            ("RedStone-Agent-Topic", topic),
            ("RedStone-Agent-Fee", "20"),
            ("RedStone-Agent-Id", id),
        ];
        let (_, said) = say(&hub, &agent, &tags, "{}").await;
        assert_eq!(said.messages[0].tag("Action"), Some("Registered"), "{said:?}");
    }
    hub.agent(&agent, "A", "tweet", "20").await;
    assert_eq!(hub.board().await.len(), 3, "both ids are one market");
    let tags = [
        ("Action", "Register-Task"),
        ("RedStone-Agent-Topic", "chat"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "leastOccupied"),
    ];
    let (task, said) = say(&hub, &requester, &tags, r#"{"say":"hi"}"#).await;
    let sent = &said.messages[0];
    assert_eq!(sent.tag("Action"), Some("Task-Assignment"));
    assert_eq!((sent.tag("Task-Id"), sent.tag("Agent-Id")), (Some(&*task), Some("C")));
    // Whichever dialect the agent uses, the task keeps the one it was registered in.
    let done = hub.deliver(&agent, "C", &format!("{task}_C")).await;
    let data = done.data();
    assert_eq!(data["agentAddress"], agent.address().as_str());
    assert_eq!(data["originalTask"]["id"], task.as_str());
    assert_eq!(data["originalTask"]["payload"]["say"], "hi");
    let plain = hub.task(&requester, "tweet", "50", "cheapest").await;
    assert_eq!(plain.actions(), ["Agent-Task-Assignment"]);
    let done = hub.deliver(&agent, "A", &plain.id).await.data();
    assert!(done.get("agentAddress").is_none() && done.get("originalTask").is_none());
    let text = |path: String| hub.get_text(path);
    let here = text(format!("/clara/cu/results/{PROCESS}")).await;
    let there = text(format!("/clara/cu/results/{DEPLOYED}")).await;
    assert_eq!(here, there);
    assert!(ResultPage::read(here.as_bytes()).is_ok());
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_second_id_there_is_the_market_s_own_and_the_published_one() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    assert_eq!(PROCESS, "CS5biQW6v2PsT3HM19P_f8Fj8UGYnFFNF8O6sfZ1jLc");
    let item = by.item_for(DEPLOYED, &[("Action", "List-Agents")], b"");
    hub.post_bytes(item).await.expect(404);
    hub.get(&format!("/clara/cu/results/{DEPLOYED}"), None).await.expect(404);
    let own = Hub::serve(&[("clara.process_id", DEPLOYED)]).await;
    let item = by.item_for(DEPLOYED, &[("Action", "List-Agents")], b"");
    own.post_bytes(item).await.expect(202);
    own.post_bytes(by.item(&[("Action", "List-Agents")], b"")).await.expect(202);
    let other = by.item_for(OTHER, &[("Action", "List-Agents")], b"");
    own.post_bytes(other).await.expect(404);
    own.0.stop().await;
    hub.0.stop().await;
}
