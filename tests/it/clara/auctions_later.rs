//! Auctions with interruptions: restarts, winners that decline, attempts to read bids (2.7, R77).

use rialto_core::time::Millis;
use rialto_hub::config::Profile;

use super::kit::{Hub, Wallet, about, account};

const LONG: &[(&str, &str)] = &[("jobs.auction_window", "30s")];

async fn bidders(hub: &Hub) -> [Wallet; 3] {
    let all = [1, 2, 3].map(Wallet::of);
    for (by, id) in all.iter().zip(["A", "B", "C"]) {
        hub.agent(by, id, "tweet", "1").await;
    }
    all
}

async fn funded(hub: &Hub) -> Wallet {
    let requester = Wallet::of(9);
    hub.fund(&requester, "100").await;
    requester
}

#[tokio::test(flavor = "multi_thread")]
async fn a_restart_keeps_the_offers_and_the_closing_time() {
    let hub = Hub::serve(LONG).await;
    let ([a, b, _], requester) = (bidders(&hub).await, funded(&hub).await);
    let id = hub.auction(&requester, "tweet", "50").await;
    let closes = hub.results("?sort=DESC&limit=1").await.edges[0].node.messages[0]
        .tag("Closes-At")
        .expect("a time")
        .to_owned();
    hub.offer(&a, "A", &id, "30").await;
    let hub = Hub(hub.0.restart(Profile::Serve, LONG).await);
    let again = hub.offer(&a, "A", &id, "20").await;
    assert_eq!(again.error(), format!("Already offered for task {id}"));
    let tags = [("RedStone-Agent-Id", "B")];
    let open = hub.act(&b, "Load-Next-Query", &tags, "").await;
    assert_eq!(open.data()["closesAt"].to_string(), closes);
    hub.pass(Millis(30_000));
    let result = hub.result(&id).await;
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("A"));
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_winner_declines_the_next_offer_counts_and_then_the_queue() {
    let hub = Hub::serve(LONG).await;
    let ([a, b, c], requester) = (bidders(&hub).await, funded(&hub).await);
    let id = hub.auction(&requester, "tweet", "50").await;
    hub.offer(&a, "A", &id, "30").await;
    hub.offer(&b, "B", &id, "40").await;
    hub.decline(&c, "C", &id).await;
    let result = hub.result(&id).await;
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("A"));
    let next = hub.decline(&a, "A", &id).await;
    assert_eq!(next.actions(), ["Task-Declined", "Agent-Task-Assignment"]);
    assert_eq!(next.result.messages[1].tag("Agent-Id"), Some("B"));
    let last = hub.decline(&b, "B", &id).await;
    assert_eq!(last.actions(), ["Task-Declined", "Task-Queued"]);
    assert_eq!(last.result.messages[1].target, requester.address());
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    // All agents have declined: a new auction is open to new ones.
    let d = Wallet::of(4);
    let came = hub.agent(&d, "D", "tweet", "1").await;
    assert_eq!(came.actions(), ["Registered", "Agent-Task-Query"]);
    assert_eq!(came.result.messages[1].tag("Agent-Id"), Some("D"));
    hub.offer(&d, "D", &id, "25").await;
    assert_eq!(hub.result(&id).await, result, "the first outcome stays the result");
    hub.deliver(&d, "D", &id).await;
    assert_eq!(hub.account(&requester).await, account("75", "0"));
    assert_eq!(hub.account(&d).await, account("25", "0"));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_auction_asks_who_was_silent_before_and_lasts_as_long_as_the_first() {
    let hub = Hub::serve(LONG).await;
    let ([a, b, c], requester) = (bidders(&hub).await, funded(&hub).await);
    let id = hub.auction(&requester, "tweet", "50").await;
    hub.offer(&a, "A", &id, "30").await;
    hub.pass(Millis(30_000));
    hub.result(&id).await;
    hub.decline(&a, "A", &id).await;
    for round in 0..2 {
        hub.pass(Millis::minutes(10));
        let sent = hub.say(&b, &[("Action", "Dispatch-Tasks")], "").await;
        assert_eq!(sent.actions()[..2], ["Tasks-Dispatched", "Agent-Task-Query"], "{round}");
        let asked = &sent.result.messages[1..];
        let names: Vec<_> = asked.iter().map(|one| one.tag("Agent-Id").expect("an id")).collect();
        let (by, agent) = if round == 0 { (&b, "B") } else { (&c, "C") };
        assert_eq!(names, if round == 0 { vec!["B", "C"] } else { vec!["C"] });
        let query: serde_json::Value =
            serde_json::from_str(asked[0].data.as_deref().expect("data")).expect("JSON");
        let closes = query["closesAt"].as_i64().expect("a number");
        let now = hub.engine.now().0;
        assert!(
            closes > now && closes <= now + 30_000,
            "{closes} is not within half a minute of {now}"
        );
        hub.offer(by, agent, &id, "20").await;
        hub.pass(Millis(30_000));
        hub.decline(by, agent, &id).await;
    }
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_loaded_one_by_one_until_they_are_answered() {
    let hub = Hub::serve(LONG).await;
    let ([a, b, _], requester) = (bidders(&hub).await, funded(&hub).await);
    let first = hub.auction(&requester, "tweet", "20").await;
    let second = hub.auction(&requester, "tweet", "30").await;
    let next = async |by: &Wallet, agent: &str| {
        let said = hub.act(by, "Load-Next-Query", &[("RedStone-Agent-Id", agent)], "").await;
        assert!(said.result.messages.len() <= 1);
        said.result.messages.first().map(|sent| {
            assert_eq!(sent.tag("Action"), Some("Load-Next-Query-Result"));
            said.data()["id"].as_str().expect("an id").to_owned()
        })
    };
    assert_eq!(next(&a, "A").await.as_deref(), Some(&*first));
    assert_eq!(next(&a, "A").await.as_deref(), Some(&*first), "reading is not an answer");
    hub.offer(&a, "A", &first, "10").await;
    assert_eq!(next(&a, "A").await.as_deref(), Some(&*second));
    hub.decline(&a, "A", &second).await;
    assert_eq!(next(&a, "A").await, None);
    assert_eq!(next(&b, "B").await.as_deref(), Some(&*first));
    hub.0.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn offers_are_hidden_until_the_end_and_losing_prices_always() {
    let hub = Hub::serve(LONG).await;
    let ([a, b, c], requester) = (bidders(&hub).await, funded(&hub).await);
    let id = hub.auction(&requester, "tweet", "50").await;
    let eyes = async || {
        let board = serde_json::to_string(&hub.board().await).expect("JSON");
        let tags = [("Action", "Dashboard-Data"), ("Protocol", "C.L.A.R.A.")];
        let dashboard = hub.dry_run(&tags, "").await.messages[0].data.clone();
        (board, dashboard, format!("{:?}", hub.results("?limit=1000").await))
    };
    let before = eyes().await;
    hub.offer(&a, "A", &id, "47").await;
    hub.offer(&b, "B", &id, "33").await;
    assert_eq!(eyes().await, before, "neither the bid nor its amount");
    // A bid cannot be evaluated in another agent's name either.
    let [agent, task] = about("A", &id);
    let tags = [("Action", "Submit-Offer"), ("Protocol", "C.L.A.R.A."), agent, task];
    let tags = [&tags[..], &[("RedStone-Agent-Fee", "1")]].concat();
    let tried = hub.dry_run_as(&a.address(), &tags, "").await;
    assert_eq!(tried.error.as_deref(), Some("Sign this message to read it"));
    hub.offer(&c, "C", &id, "48").await;
    let result = hub.result(&id).await;
    assert_eq!(result.messages[0].tag("Agent-Id"), Some("B"));
    let closed = format!("{:?} {:?}", eyes().await, result);
    for losing in ["\\\"47\\\"", "\"47\"", "\\\"48\\\"", "\"48\""] {
        assert!(!closed.contains(losing), "{losing} is in {closed}");
    }
    hub.0.stop().await;
}
