//! Regression tests for faults that a review of the running market found.

use serde_json::json;

use super::kit::{Hub, Wallet, about, account};

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_to_many_is_bounded_for_all_of_them_together() {
    let hub = Hub::serve(&[("ledger.welcome_grant", "1000.00")]).await;
    let owner = Wallet::of(1);
    for number in 0..30 {
        hub.agent(&owner, &format!("A{number}"), "tweet", "1").await;
    }
    let large = json!({"text": "x".repeat(400_000)}).to_string();
    for matching in ["broadcast", "query"] {
        let tags = [
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Reward", "1"),
            ("RedStone-Agent-Matching", matching),
        ];
        let said = hub.act(&Wallet::of(9), "Register-Task", &tags, &large).await;
        let error = said.error();
        assert!(error.starts_with("Data is too large for 30 agents"), "{matching}: {error}");
        let all =
            [("Action", "Register-Task"), ("Protocol", "C.L.A.R.A."), tags[0], tags[1], tags[2]];
        let dry = hub.dry_run_as(&Wallet::of(9).address(), &all, &large).await;
        assert!(dry.error.expect("an error").starts_with("Data is too large"));
    }
    // Agents of other protocols with the topic count like all others.
    for number in 0..3 {
        hub.agent_of_registry(&format!("owner-{number}"), "nft", "1.00").await;
    }
    let tags = [
        ("RedStone-Agent-Topic", "nft"),
        ("RedStone-Agent-Reward", "1"),
        ("RedStone-Agent-Matching", "broadcast"),
    ];
    let larger = json!({"text": "x".repeat(3_000_000 / 3)}).to_string();
    let said = hub.act(&Wallet::of(9), "Register-Task", &tags, &larger).await;
    assert_eq!(said.result.error, None, "three of them are within the limit");
    for number in 3..9 {
        hub.agent_of_registry(&format!("owner-{number}"), "nft", "1.00").await;
    }
    let said = hub.act(&Wallet::of(9), "Register-Task", &tags, &larger).await;
    assert!(said.error().starts_with("Data is too large for 9 agents"), "{}", said.error());
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_results_has_a_length() {
    let hub = Hub::serve(&[("ledger.welcome_grant", "1000.00")]).await;
    hub.agent(&Wallet::of(1), "A", "tweet", "1").await;
    let large = json!({"text": "x".repeat(900_000)}).to_string();
    let tags = [("RedStone-Agent-Topic", "tweet"), ("RedStone-Agent-Reward", "1")];
    for _ in 0..6 {
        let said = hub.act(&Wallet::of(9), "Register-Task", &tags, &large).await;
        assert_eq!(said.result.error, None);
    }
    let page = hub.results("?limit=100&sort=DESC").await;
    assert!(page.page_info.has_next_page && (1..6).contains(&page.edges.len()));
    let cursor = &page.edges.last().expect("an edge").cursor;
    let rest = hub.results(&format!("?limit=100&sort=DESC&to={cursor}")).await;
    assert!(!rest.edges.is_empty(), "and the next page continues");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_named_like_an_address_does_not_block_that_address() {
    let hub = Hub::serve(&[("ledger.welcome_grant", "100.00")]).await;
    let (stranger, victim) = (Wallet::of(1), Wallet::of(2));
    let refused = async |id: &str| {
        let tags = [
            ("RedStone-Agent-Id", id),
            ("RedStone-Agent-Topic", "tweet"),
            ("RedStone-Agent-Fee", "1"),
        ];
        let said = hub.act(&stranger, "Register-Agent-Profile", &tags, "{}").await;
        said.error().to_owned()
    };
    let said = refused(&victim.address()).await;
    assert_eq!(said, "Value Agent-Id must not be an address other than the sender's");
    for id in ["Wallet/x", "REGISTRY/foo-12345678"] {
        assert!(refused(id).await.contains("must not start"));
    }
    hub.agent(&stranger, "A", "tweet", "1").await;
    // It may register an agent under its own address, and also request work.
    assert_eq!(hub.agent(&victim, &victim.address(), "nft", "1").await.result.error, None);
    let task = hub.task(&victim, "tweet", "5", "cheapest").await;
    assert_eq!(task.chosen(), "A");
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn bids_and_refusals_are_hidden_from_other_bidders() {
    let hub = Hub::serve(&[("jobs.auction_window", "20s")]).await;
    let (requester, one, two) = (Wallet::of(9), Wallet::of(1), Wallet::of(2));
    hub.fund(&requester, "100").await;
    for (wallet, id) in [(&one, "A"), (&two, "B"), (&Wallet::of(3), "C")] {
        hub.agent(wallet, id, "tweet", "1").await;
    }
    let task = hub.auction(&requester, "tweet", "20").await;
    assert_eq!(hub.decline(&Wallet::of(3), "C", &task).await.result.error, None);
    let seen = hub.results("?limit=100&sort=DESC").await;
    assert!(!format!("{seen:?}").contains("Task-Declined"), "while the window is open");
    assert_eq!(hub.listed("C").await["tasks"]["declined"], json!([]));
    hub.offer(&one, "A", &task, "3").await;
    let again = hub.decline(&one, "A", &task).await;
    assert!(again.error().starts_with("Already offered"), "{}", again.error());
    hub.offer(&two, "B", &task, "8").await;
    assert!(hub.listed("A").await["tasks"]["inbox"][&task].is_object(), "the lowest has won");
    assert_eq!(hub.listed("C").await["tasks"]["declined"], json!([task]));
    let named = about("A", &task);
    let all = [("Action", "Decline-Task"), ("Protocol", "C.L.A.R.A."), named[0], named[1]];
    let dry = hub.dry_run_as(&one.address(), &all, "").await;
    assert_eq!(dry.error.as_deref(), Some("Sign this message to read it"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_market_without_payments_does_not_reassign_other_agents_work() {
    let hub = Hub::serve(&[("clara.payments", "false")]).await;
    let requester = Wallet::of(9);
    let worker = hub.agent_of_registry("acme", "tweet", "3.00").await;
    let own = hub.agent(&Wallet::of(1), "A", "tweet", "50").await;
    assert_eq!(own.result.error, None);
    let board = hub.board().await;
    let alias = board.iter().find(|one| one["nativeId"] == worker.id.as_str()).expect("listed");
    let alias = alias["id"].as_str().expect("an id").to_owned();
    let tags = [
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "60"),
        ("Target-Agent-Id", &alias),
    ];
    let named = hub.act(&requester, "Register-Task", &tags, "{}").await;
    assert!(named.error().contains("insufficient"), "{}", named.error());
    assert_eq!(hub.task(&requester, "tweet", "60", "cheapest").await.chosen(), "A");
    hub.fund(&requester, "60").await;
    assert_eq!(hub.act(&requester, "Register-Task", &tags, "{}").await.result.error, None);
    assert_eq!(hub.account(&requester).await, account("0", "60"));
    hub.0.stop().await;
}
