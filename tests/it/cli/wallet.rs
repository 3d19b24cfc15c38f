//! `rialto wallet`: balances, payments, and verifying a ledger.

use serde_json::json;

use super::kit::{Cli, Stage};
use crate::kit::{ClosedPort, TestHub, digits};

/// A payer with ten credits and a payee.
async fn payer() -> (TestHub, Cli) {
    let hub = TestHub::serve(&[]).await;
    let agent = hub.orchestrator("acme").await;
    hub.orchestrator("globex").await;
    hub.grant("acme", "10").await;
    let cli = Cli::at(&hub.url, &agent.key).await;
    (hub, cli)
}

#[tokio::test(flavor = "multi_thread")]
async fn ones_own_balance_needs_no_name() {
    let (_hub, cli) = payer().await;
    assert_eq!(
        cli.run(&["wallet", "balance"]).await.ok().out,
        "acme: 10.00 available, 0.00 held\n"
    );
    let ran = cli.run(&["wallet", "balance", "--json"]).await.ok();
    assert_eq!(digits(&ran.out, "available"), "10.00");
    cli.run(&["wallet", "balance", "acme"]).await.ok();
    cli.run(&["wallet", "balance", "globex"]).await.expect(3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_is_made_once_for_its_id() {
    let (hub, cli) = payer().await;
    let ran = cli.run(&["wallet", "transfer", "--to", "globex", "0.1"]).await.ok();
    assert!(ran.out.starts_with("paid 0.10 to globex, 9.90 left (transfer "), "{ran:#?}");
    let id = ran.err.trim().strip_prefix("transfer ").expect("the id is printed").to_owned();
    let again = ["wallet", "transfer", "--to", "globex", "0.10", "--id", &id];
    let ran = cli.run(&[&again[..], &["--json"]].concat()).await.ok();
    assert_eq!(
        (ran.json()["transfer"]["transfer_id"].as_str(), ran.err.as_str()),
        (Some(&*id), "")
    );
    assert_eq!(hub.balance("globex").await.0, "0.10");
    let other = ["wallet", "transfer", "--to", "globex", "0.20", "--id", &id];
    cli.run(&other).await.failed(5, &["remove --id"]);
    let told = cli.run(&["wallet", "transfer", "--to", "globex", "99"]).await.expect(1);
    assert!(told.err.contains("rialto wallet balance"), "{told:#?}");
    cli.run(&["wallet", "transfer", "--to", "acme", "1"]).await.failed(2, &["--to"]);
    cli.run(&["wallet", "transfer", "--to", "nobody", "1"]).await.expect(3);
    for wrong in ["0.001", "much"] {
        let line = ["wallet", "transfer", "--to", "globex", wrong];
        cli.run(&line).await.failed(2, &["100.00"]);
    }
    assert_eq!(hub.balance("acme").await.0, "9.90");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_hub_is_told_with_its_own_exit() {
    let closed = ClosedPort::take();
    let cli = Cli::at(&closed.url, "rk_1").await;
    cli.run(&["wallet", "balance"]).await.failed(7, &["check that it is running"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_are_listed_newest_first_and_add_up() {
    let (_hub, cli) = payer().await;
    for _ in 0..3 {
        cli.run(&["wallet", "transfer", "--to", "globex", "0.10"]).await.ok();
    }
    let lines = cli.json(&["wallet", "ledger", "--all"]).await;
    let kinds: Vec<&str> =
        lines.as_array().expect("a list").iter().filter_map(|line| line["kind"].as_str()).collect();
    assert_eq!(kinds, ["transfer", "transfer", "transfer", "grant"]);
    assert_eq!(
        cli.json(&["wallet", "ledger", "--limit", "2"]).await.as_array().map(Vec::len),
        Some(2)
    );
    let told = cli.run(&["wallet", "ledger", "--limit", "2"]).await.ok();
    assert_eq!(told.out.lines().count(), 3, "a heading and two lines: {told:#?}");
    assert!(told.err.contains("--all"), "{told:#?}");
    let counted = cli.json(&["wallet", "verify"]).await;
    assert_eq!((&counted["ok"], &counted["lines"]), (&json!(true), &json!(4)));
    let told = cli.run(&["wallet", "verify"]).await.ok().out;
    assert_eq!(told, "acme: 9.70 available, 0.00 held, confirmed by 4 entries\n");
}

const ME: &str = r#"{"agent":{"id":1,"name":"a","owner":"acme","protocol":"registry","names":{},"skills":[],
    "score":50.0,"jobs_settled":0,"online":true,"registered_at":"t"},
    "account":{"owner":"acme","available":0.30,"held":0.00}}"#;

/// A page of the ledger with one grant per amount.
fn granted(amounts: &[&str]) -> String {
    let lines: Vec<String> = amounts
        .iter()
        .zip((1..=amounts.len()).rev())
        .map(|(amount, id)| {
            format!(
                r#"{{"id":{id},"at":"t","kind":"grant","from":{{"owner":"issuance","held":false}},
                "to":{{"owner":"acme","held":false}},"amount":{amount},"job":null,"transfer":null}}"#
            )
        })
        .collect();
    format!(r#"{{"items":[{}],"next_cursor":null}}"#, lines.join(","))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_that_does_not_add_up_is_found_out() {
    // As floats the first two do not sum to three tenths.
    for (amounts, code, difference) in
        [(["0.10", "0.20"], 0, "0.00"), (["0.10", "0.200001"], 1, "-0.000001")]
    {
        let ledger = granted(&amounts);
        let stage = Stage::start(&[("/v1/me", ME), ("/v1/ledger", &ledger)]).await;
        let cli = Cli::at(&stage.url, "rk_1").await;
        let ran = cli.run(&["wallet", "verify", "--json"]).await.expect(code);
        assert_eq!(ran.json()["ok"], code == 0);
        let wanted = format!(r#""difference":{{"available":{difference},"held":0.00}}"#);
        assert!(ran.out.contains(&wanted), "{ran:#?}");
        cli.run(&["wallet", "verify"]).await.expect(code);
    }
}
