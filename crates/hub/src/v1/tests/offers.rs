//! Tests of offers: who may see, make and accept them.

use rialto_core::job::Selection;
use rialto_core::time::Millis;

use super::kit::{DAWN, Hub, nothing};

#[tokio::test]
async fn an_auction_stays_sealed_until_it_closes() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let one = hub.enrol("one", "globex", Some(("sum", "0.05"))).await;
    let two = hub.enrol("two", "initech", Some(("sum", "0.05"))).await;
    let stranger = hub.enrol("stranger", "acme", None).await;
    let closes = DAWN.plus(Millis::minutes(1));
    let job = hub.hire(&client, "sum", "0.50", Selection::Auction { closes }).await;
    let path = format!("/v1/jobs/{}/offers", job.uuid);
    let made = hub.post(&path, &one.key, r#"{"price":0.04,"valid_for":"1h"}"#).await;
    let view = |agent: &super::kit::Agent, name: &str, price: &str, until: &str, accepted: bool| {
        let id = u8::from(name == "two");
        format!(
            r#"{{"id":{id},"agent":{},"name":"{name}","price":{price},"valid_until":"2026-02-11T{until}.000Z","accepted":{accepted}}}"#,
            agent.id
        )
    };
    let first = view(&one, "one", "0.04", "13:00:00", false);
    assert_eq!((made.status, &made.text), (201, &first));
    assert_eq!(hub.post(&path, &two.key, r#"{"price":0.03}"#).await.status, 201);
    assert_eq!(hub.get(&path, &one.key).await.text, format!(r#"{{"offers":[{first}]}}"#));
    assert_eq!(hub.get(&path, &client.key).await.text, r#"{"offers":[]}"#);
    hub.get(&path, &stranger.key).await.is_problem(404, "not_found");
    // Sealed bids cannot be accepted, and neither the requester nor an agent without the skill can
    // bid.
    let accept = format!("/v1/jobs/{}/accept", job.uuid);
    let whom = format!(r#"{{"agent":{}}}"#, two.id);
    hub.post(&accept, &client.key, &whom).await.is_problem(409, "wrong_state");
    for key in [&client.key, &stranger.key] {
        hub.post(&path, key, r#"{"price":0.01}"#).await.is_problem(404, "not_found");
    }
    hub.clock.advance(Millis::minutes(1));
    hub.engine.wake_lane();
    hub.grant("rich", "1.00").await;
    let second = view(&two, "two", "0.03", "12:05:00", true);
    assert_eq!(
        hub.get(&path, &client.key).await.text,
        format!(r#"{{"offers":[{first},{second}]}}"#)
    );
    hub.post(&path, &one.key, r#"{"price":0.02}"#).await.is_problem(409, "wrong_state");
}

#[tokio::test]
async fn an_offer_that_makes_no_sense_names_its_member() {
    let hub = Hub::start().await;
    let one = hub.enrol("one", "globex", Some(("sum", "0.05"))).await;
    let path = format!("/v1/jobs/{}/offers", nothing());
    for (said, field) in [
        (r#"{}"#, "/price"),
        (r#"{"price":"1"}"#, "/price"),
        (r#"{"price":1,"valid_for":"1"}"#, "/valid_for"),
        (r#"{"price":1,"valid_for":"0s"}"#, "/valid_for"),
        (r#"{"price":1,"valid_for":"25h"}"#, "/valid_for"),
        (r#"{"price":1,"valid_for":60}"#, "/valid_for"),
    ] {
        let got = hub.post(&path, &one.key, said).await;
        got.is_problem(400, "malformed");
        assert_eq!(got.body["field"], field, "{said}");
    }
    hub.post(&path, &one.key, r#"{"price":1}"#).await.is_problem(404, "not_found");
    let accept = format!("/v1/jobs/{}/accept", nothing());
    hub.post(&accept, &one.key, "{}").await.is_problem(400, "malformed");
    hub.post(&accept, &one.key, r#"{"agent":1}"#).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn a_requester_sees_offers_as_they_come_and_takes_one() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let one = hub.enrol("one", "globex", Some(("sum", "0.05"))).await;
    let two = hub.enrol("two", "initech", Some(("sum", "0.05"))).await;
    let stranger = hub.enrol("stranger", "acme", None).await;
    let asked = r#"{"skill":"sum","input":{"a":1},"budget":0.50,"select":"offers"}"#;
    let opened = hub.post("/v1/jobs", &client.key, asked).await;
    assert_eq!(opened.body["state"], "negotiating", "{}", opened.text);
    assert!(opened.text.contains(r#""held":0.50"#), "{}", opened.text);
    let job = format!("/v1/jobs/{}", opened.body["id"].as_str().expect("an id"));
    // An invited agent gets a notice and sees the job, but not the budget.
    assert_eq!(hub.get("/v1/inbox", &one.key).await.body["items"][0]["kind"], "offers_wanted");
    let seen = hub.get(&job, &one.key).await;
    assert_eq!((&seen.body["input"]["a"], seen.body.get("budget")), (&1.into(), None));
    hub.get(&job, &stranger.key).await.is_problem(404, "not_found");

    let offers = format!("{job}/offers");
    hub.post(&offers, &one.key, r#"{"price":0.51}"#).await.is_problem(402, "budget_too_low");
    for (agent, price) in [(&one, "0.04"), (&two, "0.06"), (&two, "0.05")] {
        let got = hub.post(&offers, &agent.key, &format!(r#"{{"price":{price}}}"#)).await;
        assert_eq!(got.status, 201, "{}", got.text);
    }
    let all = hub.get(&offers, &client.key).await.body["offers"].clone();
    assert_eq!(all.as_array().map(Vec::len), Some(3));
    assert_eq!(hub.get(&offers, &one.key).await.body["offers"].as_array().map(Vec::len), Some(1));
    assert_eq!(hub.get("/v1/inbox", &client.key).await.body["items"][0]["kind"], "offered");

    let accept = format!("{job}/accept");
    let whom = format!(r#"{{"agent":"{}","price":0.05}}"#, two.native);
    hub.post(&accept, &one.key, &whom).await.is_problem(404, "not_found");
    let got = hub.post(&accept, &client.key, &whom).await;
    assert_eq!((&got.body["state"], &got.body["worker"]), (&"assigned".into(), &two.id.0.into()));
    assert!(got.text.contains(r#""price":0.05"#), "{}", got.text);
    let taken = hub.get(&offers, &client.key).await.body["offers"].clone();
    let accepted: Vec<_> =
        taken.as_array().expect("a list").iter().map(|o| &o["accepted"]).collect();
    assert_eq!(accepted, [&false, &false, &true]);
    let said = r#"{"epoch":1,"ok":true,"output":{}}"#;
    let done = hub.post(&format!("{job}/result"), &two.key, said).await;
    assert!(done.text.contains(r#""paid":0.05"#), "{}", done.text);
    assert!(hub.get("/v1/me", &client.key).await.text.contains(r#""available":9.95"#));
}

#[tokio::test]
async fn offers_not_accepted_end_with_the_deadline_and_all_holds_are_released() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let one = hub.enrol("one", "globex", Some(("sum", "0.05"))).await;
    let asked =
        r#"{"skill":"sum","budget":0.50,"select":"offers","deadline":"2026-02-11T12:01:00Z"}"#;
    let opened = hub.post("/v1/jobs", &client.key, asked).await;
    let job = format!("/v1/jobs/{}", opened.body["id"].as_str().expect("an id"));
    let offer = r#"{"price":0.04,"valid_for":"10s"}"#;
    assert_eq!(hub.post(&format!("{job}/offers"), &one.key, offer).await.status, 201);
    hub.clock.advance(Millis::seconds(10));
    let whom = format!(r#"{{"agent":{}}}"#, one.id);
    hub.post(&format!("{job}/accept"), &client.key, &whom).await.is_problem(409, "wrong_state");
    hub.clock.advance(Millis::seconds(50));
    hub.engine.wake_lane();
    hub.grant("rich", "1.00").await;
    assert_eq!(hub.get(&job, &client.key).await.body["state"], "expired");
    assert!(hub.get("/v1/me", &client.key).await.text.contains(r#""available":11.00"#));
    hub.get(&job, &one.key).await.is_problem(404, "not_found");
}

#[tokio::test]
async fn an_offer_is_accepted_at_the_price_that_was_shown_or_not_at_all() {
    let hub = Hub::start().await;
    hub.grant("rich", "100.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let one = hub.enrol("one", "globex", Some(("sum", "0.05"))).await;
    let two = hub.enrol("two", "initech", Some(("sum", "0.05"))).await;
    let asked = r#"{"skill":"sum","budget":5,"select":"offers"}"#;
    for (said, price) in [
        (r#"{"offer":0}"#.to_owned(), "1.00"),
        (r#"{"offer":"2"}"#.to_owned(), "0.50"),
        (format!(r#"{{"agent":{},"price":1.00}}"#, one.id), "1.00"),
        (format!(r#"{{"agent":{}}}"#, two.id), "2.00"),
        (format!(r#"{{"offer":2,"agent":{},"price":0.5}}"#, one.id), "0.50"),
    ] {
        let opened = hub.post("/v1/jobs", &client.key, asked).await;
        let job = format!("/v1/jobs/{}", opened.body["id"].as_str().expect("an id"));
        let offers = format!("{job}/offers");
        for (agent, price) in [(&one, "1.00"), (&two, "2.00"), (&one, "0.50")] {
            let made = hub.post(&offers, &agent.key, &format!(r#"{{"price":{price}}}"#)).await;
            assert_eq!(made.status, 201, "{}", made.text);
        }
        let raised = hub.post(&offers, &one.key, r#"{"price":4}"#).await;
        raised.is_problem(422, "refused");
        let ids = |shown: &serde_json::Value| {
            let offers = shown["offers"].as_array().expect("a list").clone();
            offers.iter().map(|offer| offer["id"].as_u64().expect("an id")).collect::<Vec<_>>()
        };
        assert_eq!(ids(&hub.get(&offers, &client.key).await.body), [0, 1, 2]);
        assert_eq!(ids(&hub.get(&job, &client.key).await.body), [0, 1, 2]);
        assert_eq!(ids(&hub.get(&offers, &one.key).await.body), [0, 2]);
        let accept = format!("{job}/accept");
        for (wrong, status, code) in [
            (format!(r#"{{"agent":{}}}"#, one.id), 400, "malformed"),
            (format!(r#"{{"agent":{},"price":0.75}}"#, one.id), 404, "not_found"),
            (r#"{"offer":3}"#.to_owned(), 404, "not_found"),
            (r#"{"offer":-1}"#.to_owned(), 400, "malformed"),
            (r#"{"offer":0,"price":0.5}"#.to_owned(), 400, "malformed"),
            (format!(r#"{{"offer":0,"agent":{}}}"#, two.id), 400, "malformed"),
        ] {
            hub.post(&accept, &client.key, &wrong).await.is_problem(status, code);
        }
        let got = hub.post(&accept, &client.key, &said).await;
        assert_eq!(got.body["state"], "assigned", "{said}: {}", got.text);
        assert!(got.text.contains(&format!(r#""price":{price},"#)), "{said}: {}", got.text);
    }
}
