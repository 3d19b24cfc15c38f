//! `rialto job offers` and `rialto job accept`: a job whose price the workers offer.

use serde_json::json;

use super::kit::{CliFixture, Ran};
use crate::kit::Agent;

impl CliFixture {
    /// An agent makes an offer.
    async fn offer(&self, by: &Agent, job: &str, price: &str) {
        let body = format!(r#"{{"price":{price}}}"#);
        let path = format!("/v1/jobs/{job}/offers");
        self.call("POST", &path, Some(&by.key), Some(&body)).await.expect(201);
    }
}

/// The shown prices, with their digits.
#[track_caller]
fn prices(ran: &Ran) -> Vec<String> {
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = ran.out.lines().map(words).collect();
    assert_eq!(lines[0], ["OFFER", "AGENT", "NAME", "PRICE", "UNTIL", "ACCEPTED"], "{ran:#?}");
    // Names contain spaces, so columns are counted from the end.
    lines[1..].iter().map(|line| line[line.len() - 3].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requester_sees_all_offers_and_takes_one() {
    let fixture = CliFixture::start().await;
    let one = fixture.agent("one", "shout", "0.05", None).await;
    let two = fixture.agent("two", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &["--select", "offers"]).await;
    let none = fixture.run(&["job", "offers", &id]).await.ok();
    assert!(prices(&none).is_empty());
    fixture.offer(&one, &id, "0.04").await;
    fixture.offer(&two, &id, "0.06").await;
    assert_eq!(prices(&fixture.run(&["job", "offers", &id]).await.ok()), ["0.04", "0.06"]);
    assert_eq!(prices(&fixture.run_for(&two, &["job", "offers", &id]).await.ok()), ["0.06"]);
    let ran = fixture.run(&["job", "accept", &id, "--from", &two.id]).await.ok();
    assert_eq!(ran.out, format!("{id} assigned\n"));
    let document = fixture.run(&["job", "offers", &id, "--json"]).await.ok().json();
    let accepted = |at: usize| document["offers"][at]["accepted"].clone();
    assert_eq!((accepted(0), accepted(1)), (json!(false), json!(true)), "{document}");
    // An accepted offer is final.
    fixture.run(&["job", "accept", &id, "--from", &one.id]).await.failed(5, "");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_offer_is_taken_by_its_id_or_its_price_and_never_by_a_name_that_stands_for_several() {
    let fixture = CliFixture::start().await;
    let one = fixture.agent("one", "shout", "0.05", None).await;
    for (named, price) in [
        (&["--offer", "0"][..], "0.04"),
        (&["--offer", "1"], "0.03"),
        (&["--from", &one.id, "--price", "0.04"], "0.04"),
    ] {
        let id = fixture.posted("shout", &["--select", "offers"]).await;
        for price in ["0.04", "0.03"] {
            fixture.offer(&one, &id, price).await;
        }
        fixture.run(&["job", "accept", &id, "--from", &one.id]).await.failed(2, "by its id");
        let ran = fixture.run(&[&["job", "accept", &id, "--json"], named].concat()).await.ok();
        assert!(ran.out.contains(&format!(r#""price":{price}"#)), "{named:?}: {ran:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_also_meant_by_its_number() {
    let fixture = CliFixture::start().await;
    let one = fixture.agent("one", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &["--select", "offers"]).await;
    fixture.offer(&one, &id, "0.04").await;
    let document = fixture.run(&["job", "offers", &id, "--json"]).await.ok().json();
    let number = document["offers"][0]["agent"].to_string();
    let ran = fixture.run(&["job", "accept", &id, "--from", &number, "--json"]).await.ok();
    assert_eq!(ran.str("/state"), "assigned");
    assert!(ran.out.contains(r#""price":0.04"#), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_no_has_its_exit_code() {
    let fixture = CliFixture::start().await;
    let one = fixture.agent("one", "shout", "0.05", None).await;
    let id = fixture.posted("shout", &["--select", "offers"]).await;
    let stranger = fixture.orchestrator("stranger").await;
    fixture.run_for(&stranger, &["job", "offers", &id]).await.failed(3, "");
    fixture.run(&["job", "accept", &id, "--from", "nobody-at-all"]).await.failed(3, "");
    fixture.offer(&one, &id, "0.04").await;
    fixture.run_for(&one, &["job", "accept", &id, "--from", &one.id]).await.failed(3, "");
    let ran =
        fixture.run_for(&stranger, &["job", "accept", &id, "--from", &one.id, "--json"]).await;
    assert!(ran.expect(3).json()["error"].is_string());
}
