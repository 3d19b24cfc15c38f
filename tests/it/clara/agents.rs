//! Register-Agent-Profile (R1–R12).

use serde_json::json;

use super::kit::{Hub, Wallet};

const ACTION: (&str, &str) = ("Action", "Register-Agent-Profile");
const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

/// The tags of a registration.
fn tags<'t>(id: &'t str, topic: &'t str, fee: &'t str) -> Vec<(&'t str, &'t str)> {
    vec![
        ACTION,
        PROTOCOL,
        ("RedStone-Agent-Topic", topic),
        ("RedStone-Agent-Fee", fee),
        ("RedStone-Agent-Id", id),
    ]
}

/// The same without one of them.
fn without<'t>(all: &[(&'t str, &'t str)], name: &str) -> Vec<(&'t str, &'t str)> {
    all.iter().copied().filter(|(tag, _)| *tag != name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_registered_under_its_signers_address() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    // Tags cannot claim an identity (R74).
    let lies = [("From", "x"), ("Owner", "x"), ("From-Process", "x")];
    let all = [&lies[..], &tags("A", "nft", "50")].concat();
    let said = hub.say(&by, &all, r#"{"url":"https://x","n":[1,2.50]}"#).await;
    assert_eq!(said.actions(), ["Registered"]);
    assert_eq!(said.first().target, by.address());
    assert_eq!(said.first().data.as_deref(), Some("Agent A registered in Market"));
    assert_eq!(said.first().tag("Protocol"), Some("C.L.A.R.A."));
    let wanted = json!([{"id": "A", "profileAddress": by.address(), "topic": "nft", "fee": "50",
        "metadata": {"url": "https://x", "n": [1, 2.50]},
        "tasks": {"inbox": [], "outbox": [], "declined": [], "results": []},
        "totals": {"requested": 0, "assigned": 0, "done": 0, "rewards": "0"}}]);
    assert_eq!(json!(hub.board().await), wanted);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_four_topics_can_be_registered_and_broadcast_is_none_of_them() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for topic in ["tweet", "discord", "telegram", "nft"] {
        hub.agent(&by, topic, topic, "1").await;
    }
    for topic in ["broadcast", "Tweet", "chat", "none", "tweet "] {
        let text = format!("Unknown Topic {topic}");
        hub.assert_error(&by, &tags("B", topic, "1"), "{}", &text).await;
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_may_add_topics() {
    let hub = Hub::serve(&[("clara.topics", "weather")]).await;
    let (by, requester) = (Wallet::of(1), Wallet::of(2));
    hub.fund(&requester, "10").await;
    hub.agent(&by, "A", "weather", "1").await;
    hub.agent(&by, "B", "tweet", "1").await;
    assert_eq!(hub.task(&requester, "weather", "5", "cheapest").await.chosen(), "A");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_protocol_must_be_there_and_right() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let all = tags("A", "tweet", "1");
    for (given, text) in [
        (None, "Unknown protocol nil, supported: C.L.A.R.A."),
        (Some("clara"), "Unknown protocol clara, supported: C.L.A.R.A."),
        (Some("C.L.A.R.A"), "Unknown protocol C.L.A.R.A, supported: C.L.A.R.A."),
    ] {
        let mut some = without(&all, "Protocol");
        some.extend(given.map(|given| ("Protocol", given)));
        hub.assert_error(&by, &some, "{}", text).await;
    }
    // The first tag of a name counts, and names are case-sensitive.
    let twice = [&[("protocol", "x")], &all[..], &[("Protocol", "other")]].concat();
    assert_eq!(hub.say(&by, &twice, "{}").await.actions(), ["Registered"]);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fee_is_digits_from_one_to_a_thousand_million() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let text = "Value Agent-Fee must be positive integer";
    for fee in ["0", "-1", "1.5", "x", "0x10", "1e2", " 7 ", "007", "", "1000000001", "+1", "٣"] {
        hub.assert_error(&by, &tags("A", "tweet", fee), "{}", text).await;
    }
    let missing = without(&tags("A", "tweet", "1"), "RedStone-Agent-Fee");
    hub.assert_error(&by, &missing, "{}", text).await;
    for fee in ["1", "1000000000"] {
        hub.agent(&by, "A", "tweet", fee).await;
        assert_eq!(hub.listed("A").await["fee"], fee);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ids_have_a_length_and_leave_other_protocols_names_alone() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    let (longest, longer) = ("é".repeat(128), "é".repeat(129));
    hub.agent(&by, &longest, "tweet", "1").await;
    hub.agent(&by, "a/b", "tweet", "1").await;
    for id in ["", longer.as_str()] {
        let said = hub.say(&by, &tags(id, "tweet", "1"), "{}").await;
        assert!(said.error().starts_with("Value Agent-Id must be 1 to 128"), "{said:?}");
    }
    for protocol in ["registry", "relay", "openclaw", "clara", "agora"] {
        let (id, text) =
            (format!("{protocol}/x"), format!("Value Agent-Id must not start with {protocol}/"));
        hub.assert_error(&by, &tags(&id, "tweet", "1"), "{}", &text).await;
    }
    let missing = without(&tags("A", "tweet", "1"), "RedStone-Agent-Id");
    hub.assert_error(&by, &missing, "{}", "Tag RedStone-Agent-Id is required").await;
    assert_eq!(hub.board().await.len(), 2);
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_json_and_shown_decoded() {
    let hub = Hub::serve(&[]).await;
    let by = Wallet::of(1);
    for data in ["", " ", "x", "{", r#"{"a":1}x"#, "{'a':1}"] {
        let all = tags("A", "tweet", "1");
        hub.assert_error(&by, &all, data, "Data must be valid JSON").await;
    }
    for data in [r#"{"a":{"b":[true,null]}}"#, "1234", r#""text""#, "[]", "null"] {
        let said = hub.say(&by, &tags("A", "tweet", "1"), data).await;
        assert_eq!(said.actions(), ["Registered"]);
        let wanted: serde_json::Value = serde_json::from_str(data).expect("JSON");
        assert_eq!(hub.listed("A").await["metadata"], wanted);
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_is_its_first_owners_and_one_address_may_have_several() {
    let hub = Hub::serve(&[]).await;
    let (by, other) = (Wallet::of(1), Wallet::of(2));
    hub.agent(&by, "A", "tweet", "1").await;
    hub.agent(&by, "B", "nft", "2").await;
    let text = format!("{} does not own A", other.address());
    hub.assert_error(&other, &tags("A", "nft", "7"), "{}", &text).await;
    let board = hub.board().await;
    assert_eq!(board.len(), 2);
    assert!(board.iter().all(|agent| agent["profileAddress"] == by.address().as_str()));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_id_that_looks_like_anothers_is_not_to_be_had() {
    let hub = Hub::serve(&[]).await;
    let (by, other) = (Wallet::of(1), Wallet::of(2));
    hub.agent(&by, "NFT_AGENT_1", "tweet", "1").await;
    for id in ["nft_agent_1", "NFT_AGENT_l", "NFT_AGENT_I", "NFТ_AGENT_1"] {
        let text = format!("{} does not own {id}", other.address());
        hub.assert_error(&other, &tags(id, "nft", "7"), "{}", &text).await;
    }
    for id in ["Registry/x-1", "re1ay/x-1", "сlara/x", "WALLET/x"] {
        let said = hub.say(&other, &tags(id, "nft", "7"), "{}").await;
        assert!(said.error().starts_with("Value Agent-Id must not start with "), "{said:?}");
    }
    // Ids are exact: an owner's own ids may be similar, and only the same id is an update.
    hub.agent(&by, "nft_agent_1", "nft", "2").await;
    hub.agent(&by, "NFT_AGENT_1", "tweet", "3").await;
    hub.agent(&other, "NFT_AGENT_2", "tweet", "1").await;
    let shown: Vec<_> = hub.board().await.iter().map(|one| one["id"].clone()).collect();
    assert_eq!(shown, ["NFT_AGENT_1", "nft_agent_1", "NFT_AGENT_2"]);
    assert_eq!(hub.listed("NFT_AGENT_1").await["fee"], "3");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_update_changes_the_profile_and_keeps_everything_else() {
    let hub = Hub::serve(&[]).await;
    let (by, other, requester) = (Wallet::of(1), Wallet::of(2), Wallet::of(9));
    hub.fund(&requester, "500").await;
    hub.fund(&by, "100").await;
    hub.agent(&by, "A", "tweet", "10").await;
    hub.agent(&other, "B", "tweet", "10").await;
    let ask = async || hub.task(&requester, "tweet", "50", "cheapest").await;
    let (done, declined, open) = (ask().await, ask().await, ask().await);
    hub.deliver(&by, "A", &done.id).await;
    hub.decline(&by, "A", &declined.id).await;
    // A task of its own, done by the other, for its results.
    let own = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Id", "A"),
    ];
    let own = hub.act(&by, "Register-Task", &own, "{}").await;
    hub.deliver(&other, "B", &own.id).await;
    let before = hub.listed("A").await;
    assert_eq!(before["tasks"]["declined"], json!([declined.id]));
    assert!(before["tasks"]["results"][&own.id].is_object(), "{before}");
    hub.say(&by, &tags("A", "tweet", "5"), r#"{"new":1}"#).await;
    let after = hub.listed("A").await;
    assert_eq!((&after["tasks"], &after["totals"]), (&before["tasks"], &before["totals"]));
    assert_eq!((&after["fee"], &after["metadata"]), (&json!("5"), &json!({"new": 1})));
    assert_eq!(
        after["tasks"]["inbox"][&open.id]["reward"], "10",
        "an agreed reward does not change"
    );
    let paid = hub.deliver(&by, "A", &open.id).await;
    assert_eq!(paid.first().tag("Fee"), Some("10"));
    let next = ask().await;
    assert_eq!((next.chosen(), &next.data()["reward"]), ("A", &json!("5")));
    // At equal prices the earliest registration still wins.
    hub.say(&by, &tags("A", "tweet", "10"), "{}").await;
    assert_eq!(ask().await.chosen(), "A");
    let order: Vec<_> = hub.board().await.iter().map(|agent| agent["id"].clone()).collect();
    assert_eq!(order, ["A", "B"]);
    // A new topic applies to later matches.
    hub.say(&by, &tags("A", "nft", "10"), "{}").await;
    assert_eq!(ask().await.chosen(), "B");
    hub.0.stop().await;
}
