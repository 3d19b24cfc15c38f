//! Jobs that collect offers: `hire` with `select`, `get_job`, `accept_offer`.

use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::kit::Agent;
use crate::market::Market;

async fn offer(market: &Market, by: &Agent, job: &Value, price: &str) {
    let price: Value = serde_json::from_str(price).expect("a price");
    let path = format!("/v1/jobs/{}/offers", job.as_str().expect("an id"));
    market.hub.post(&path, Some(&by.key), &json!({"price": price})).await.expect(201);
}

async fn ask(client: &McpClient) -> Value {
    let arguments = json!({"skill": "paint", "input": {}, "budget": "1", "select": "offers"});
    client.ok("hire", arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_offer_of_an_agent_is_taken_at_its_price_and_no_other() {
    let market = Market::open().await;
    let one = market.slow_worker("one", "paint", "0.50").await;
    let two = market.slow_worker("two", "paint", "0.50").await;
    let client = market.buyer(Era::New);
    let asked = ask(&client).await;
    let job = &asked["job_id"];
    assert_eq!((&asked["state"], &asked["done"]), (&json!("negotiating"), &json!(false)));
    assert!(asked.get("offers").is_none() && asked["next"].is_string(), "{asked}");
    // An offer ends the wait.
    let waiting = tokio::spawn({
        let (client, job) = (client.clone(), job.clone());
        async move { client.ok("get_job", json!({"job_id": job, "wait_seconds": 50})).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    offer(&market, &one, job, "0.40").await;
    let shown = waiting.await.unwrap();
    assert_eq!(shown["offers"][0]["price"], "0.40");
    assert!(shown["next"].as_str().unwrap().contains("accept_offer"), "{shown}");
    offer(&market, &one, job, "0.30").await;
    offer(&market, &two, job, "0.35").await;
    let shown = client.ok("get_job", json!({"job_id": job})).await;
    let offers: Vec<(&Value, &Value)> = shown["offers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|offer| (&offer["agent"], &offer["price"]))
        .collect();
    let (first, second) = (json!(market.address(&one).await), json!(market.address(&two).await));
    assert_eq!(offers, [(&first, &json!("0.30")), (&second, &json!("0.35"))]);

    let accept =
        |price: Value| json!({"job_id": job, "agent": "one", "price": price, "wait_seconds": 0});
    let text = client.fail("accept_offer", accept(json!("0.40")), "price_differs").await;
    assert!(text.contains("0.30"), "{text}");
    let accepted = client.ok("accept_offer", accept(json!(0.3))).await;
    assert_eq!((&accepted["state"], &accepted["price"]), (&json!("assigned"), &json!("0.30")));
    assert_eq!(accepted["agent"], first);
    let again = client.ok("accept_offer", accept(json!("0.30"))).await;
    assert_eq!((&again["job_id"], &again["repeated"]), (job, &json!(true)));
    let mut other = accept(json!("0.35"));
    other["agent"] = json!("two");
    client.fail("accept_offer", other, "wrong_state").await;
    market.hub.report(&one, job.as_str().unwrap(), "SUCCESS", "0.30").await.expect(200);
    let ended = client.ok("get_job", json!({"job_id": job, "wait_seconds": 10})).await;
    assert_eq!(ended["paid"], "0.30");
    assert_eq!(market.left().await, "9.70");
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_that_may_offer_sees_the_input_and_none_of_the_others_prices() {
    let market = Market::open().await;
    let one = market.slow_worker("one", "paint", "0.50").await;
    let two = market.slow_worker("two", "paint", "0.50").await;
    let client = market.buyer(Era::New);
    let job = ask(&client).await["job_id"].clone();
    offer(&market, &two, &job, "0.35").await;
    let theirs = market.client_of(&one);
    let shown = theirs.ok("get_job", json!({"job_id": job, "part": "input"})).await;
    assert_eq!(shown["part"]["text"], "{}");
    assert!(shown.get("offers").is_none() && shown.get("budget").is_none(), "{shown}");
    let wrong = json!({"job_id": job, "agent": "one", "price": "0.50"});
    theirs.fail("accept_offer", wrong.clone(), "not_found").await;
    let text = client.fail("accept_offer", wrong, "not_found").await;
    assert!(text.contains("made no offer"), "{text}");
    market.hub.stop().await;
}
