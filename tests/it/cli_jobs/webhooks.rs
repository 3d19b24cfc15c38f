//! `rialto webhook`: the hub's deliveries to an endpoint.

use serde_json::json;

use super::kit::{CliFixture, finished};
use crate::kit::{Behaviour, Worker, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_is_tried_once_and_its_answer_told() {
    let fixture = CliFixture::start().await;
    let hook = Worker::start(Behaviour::Say(204, String::new())).await;
    let shop = fixture.agent("shop", "shout", "0.05", Some(&hook.url)).await;
    let ran = fixture.run_for(&shop, &["webhook", "test"]).await.ok();
    assert_eq!(ran.out, "delivered, answered 204\n");
    assert!(hook.got()[0].headers.contains_key("webhook-signature"), "it was signed");
    let ran = fixture.run_for(&shop, &["webhook", "test", "--json"]).await.ok();
    assert_eq!(ran.json(), json!({"delivered": true, "status": 204}));
    hook.behave(Behaviour::Say(500, "no".to_owned()));
    fixture.run_for(&shop, &["webhook", "test"]).await.failed(1, "HTTP 500");
    let ran = fixture.run_for(&shop, &["webhook", "test", "--json"]).await.expect(1);
    assert_eq!(ran.json()["delivered"], json!(false));
    assert_eq!(hook.got().len(), 4, "no retries");
    let ran = fixture.run(&["webhook", "test"]).await.failed(5, "no http or https endpoint");
    assert!(ran.err.contains("register"), "{ran:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_did_not_arrive_is_listed_and_sent_again() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let hook = Worker::start(Behaviour::Say(500, "no".to_owned())).await;
    let back = format!("{}/back", hook.url);
    let id = fixture.posted("shout", &["--callback", &back]).await;
    assert_eq!(fixture.run(&["webhook", "ls", "--json"]).await.ok().json(), json!([]));
    fixture.work(&shop, &id, json!({})).await;
    let tries = async || {
        let listed = fixture.get("/v1/webhooks", Some(&fixture.boss.key)).await.json();
        listed["items"][0]["tries"].as_u64().is_some_and(|tries| tries > 0)
    };
    eventually(tries).await;
    let listed = fixture.run(&["webhook", "ls", "--json"]).await.ok().json();
    let number = listed[0]["id"].to_string();
    assert_eq!((&listed[0]["url"], &listed[0]["job"]), (&json!(back), &json!(id)));
    let table = fixture.run(&["webhook", "ls"]).await.ok().out;
    let row = table.lines().nth(1).expect("a row");
    for part in [number.as_str(), "ended", "500", &back] {
        assert!(row.contains(part), "{part} is not in {table}");
    }
    // Other agents do not see it.
    fixture.run_for(&shop, &["webhook", "resend", &number]).await.failed(3, "");
    hook.behave(Behaviour::Say(204, String::new()));
    let ran = fixture.run(&["webhook", "resend", &number]).await.ok();
    assert_eq!(ran.out, format!("{number} is being resent\n"));
    let arrived = async || {
        fixture.get("/v1/webhooks", Some(&fixture.boss.key)).await.at("/items") == json!([])
    };
    eventually(arrived).await;
    // A completed delivery is listed, for its recipient only.
    let line = ["webhook", "ls", "--delivered", "--json"];
    let delivered = fixture.run(&line).await.ok().json();
    assert_eq!(delivered.as_array().map(Vec::len), Some(1), "{delivered}");
    let wanted = json!([number, "delivered", back, id]);
    let one = &delivered[0];
    assert_eq!(json!([one["id"].to_string(), one["state"], one["url"], one["job"]]), wanted);
    assert!(one["tries"].as_u64() > Some(1) && one["delivered_at"].is_string(), "{one}");
    assert!(fixture.run(&["webhook", "ls", "--delivered"]).await.ok().out.contains("ARRIVED"));
    assert_eq!(fixture.run_for(&shop, &line).await.ok().json(), json!([]));
    fixture.run(&["webhook", "resend", &number, "--json"]).await.expect(3).str("/error");
    let mut stranger = fixture.command(&["webhook", "ls", "--json"]);
    stranger.env("RIALTO_KEY", "rk_wrong");
    finished(stranger, "").await.expect(4).str("/error");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_secret_is_shown_and_the_old_one_stays_good_for_a_day() {
    let fixture = CliFixture::start().await;
    let shop = fixture.agent("shop", "shout", "0.05", None).await;
    let ran = fixture.run_for(&shop, &["webhook", "rotate"]).await.ok();
    let (secret, rest) = ran.out.split_once('\n').expect("two lines");
    assert!(secret.starts_with("whsec_"), "{secret}");
    assert!(rest.starts_with("the old secret is valid until 2"), "{rest}");
    let ran = fixture.run_for(&shop, &["webhook", "rotate", "--json"]).await.ok().json();
    let newer = ran["webhook_secret"].as_str().expect("a secret");
    assert!(newer.starts_with("whsec_") && newer != secret, "{newer}");
    let mut stranger = fixture.command(&["webhook", "rotate", "--json"]);
    stranger.env("RIALTO_KEY", "rk_wrong");
    finished(stranger, "").await.expect(4).str("/error");
}
