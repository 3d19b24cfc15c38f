//! Two hubs with the same wallets: a signed order moves money on at most one of them.

use rialto_protocols::clara::PROCESS;
use rialto_protocols::clara::wire::result::MessageResult;

use super::kit::{Hub, Wallet, account};

const PROTOCOL: (&str, &str) = ("Protocol", "C.L.A.R.A.");

/// A hub with default settings.
async fn usual() -> Hub {
    Hub::serve(&[("clara.process_id", "")]).await
}

async fn process(hub: &Hub) -> String {
    hub.get("/clara", None).await.expect(200).str("/process")
}

fn agent() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Action", "Register-Agent-Profile"),
        PROTOCOL,
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Fee", "20"),
        ("RedStone-Agent-Id", "A"),
    ]
}

fn task() -> Vec<(&'static str, &'static str)> {
    vec![
        ("Action", "Register-Task"),
        PROTOCOL,
        ("RedStone-Agent-Topic", "tweet"),
        ("RedStone-Agent-Reward", "50"),
        ("RedStone-Agent-Matching", "cheapest"),
    ]
}

fn result(task: &str) -> Vec<(&str, &str)> {
    vec![
        ("Action", "Send-Result"),
        PROTOCOL,
        ("RedStone-Agent-Id", "A"),
        ("RedStone-Task-Id", task),
    ]
}

/// The result of an item, read under any of the hub's ids.
async fn outcome(hub: &Hub, item: Vec<u8>, process: &str) -> (String, MessageResult) {
    let id = hub.post_bytes(item).await.expect(202).str("/id");
    let path = format!("/clara/cu/result/{id}?process-id={process}");
    let reply = hub.get(&path, None).await.expect(200);
    (id, MessageResult::read(reply.text.as_bytes()).expect("a result"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_hub_has_a_process_id_of_its_own_and_an_order_to_it_is_known_nowhere_else() {
    let (here, there) = (usual().await, usual().await);
    let (own, other) = (process(&here).await, process(&there).await);
    assert!(own != other && own != PROCESS && other != PROCESS);
    let (worker, requester) = (Wallet::of(1), Wallet::of(9));
    for (hub, process) in [(&here, &own), (&there, &other)] {
        hub.fund(&requester, "100").await;
        let item = worker.item_for(process, &agent(), b"{}");
        hub.post_bytes(item).await.expect(202);
    }
    let order = requester.item_for(&own, &task(), b"{}");
    let (id, said) = outcome(&here, order.clone(), &own).await;
    assert!(said.error.is_none(), "{said:?}");
    let delivery = worker.item_for(&own, &result(&id), b"{}");
    here.post_bytes(delivery.clone()).await.expect(202);
    assert_eq!(here.account(&worker).await, account("20", "0"));
    for base in ["", "/mu"] {
        for item in [&order, &delivery] {
            let request = there.http.post(format!("{}/clara{base}", there.url));
            let answer = request.body(item.clone()).send().await.expect("an answer");
            assert_eq!(answer.status(), 404);
        }
    }
    assert_eq!(there.account(&requester).await, account("100", "0"));
    // The id never changes.
    let again = here.0.restart(rialto_hub::config::Profile::Serve, &[("clara.process_id", "")]);
    assert_eq!(process(&Hub(again.await)).await, own);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_process_id_reads_and_registers_and_moves_no_money() {
    let hub = usual().await;
    let own = process(&hub).await;
    let (worker, requester) = (Wallet::of(1), Wallet::of(9));
    hub.fund(&requester, "100").await;
    let (_, said) = outcome(&hub, worker.item(&agent(), b"{}"), PROCESS).await;
    assert_eq!(said.messages[0].tag("Action"), Some("Registered"), "{said:?}");
    assert_eq!(hub.board().await.len(), 1);
    let (id, _) = outcome(&hub, requester.item_for(&own, &task(), b"{}"), PROCESS).await;
    assert_eq!(hub.account(&requester).await, account("50", "50"));
    let bid = [&result(&id)[..], &[("RedStone-Agent-Fee", "1")]].concat();
    let bid = bid.into_iter().map(|tag| match tag {
        ("Action", _) => ("Action", "Submit-Offer"),
        tag => tag,
    });
    for (by, tags) in [(&requester, task()), (&worker, result(&id)), (&worker, bid.collect())] {
        let before = hub.held().await;
        let (_, refused) = outcome(&hub, by.item(&tags, b"{}"), PROCESS).await;
        let why = refused.error.expect("an error");
        assert!(why.contains(&own), "{why}");
        assert_eq!(hub.held().await, before);
        let would = hub.dry_run(&tags, "{}").await;
        assert_eq!(would.error, Some(why), "a dry run gets the same error");
    }
    let (_, done) = outcome(&hub, worker.item_for(&own, &result(&id), b"{}"), PROCESS).await;
    assert_eq!(done.messages[0].tag("Action"), Some("Task-Result"));
    assert_eq!(hub.account(&worker).await, account("20", "0"));
}
