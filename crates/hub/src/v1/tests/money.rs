//! Tests of accounts and the ledger.

use super::kit::Hub;

#[tokio::test]
async fn the_ledger_shows_every_movement_once_newest_first() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.000005"))).await;
    let job = hub.open(&client, "sum", "1.00").await;
    hub.succeed(&job).await;

    let own = hub.all("/v1/ledger", &client.key, 1).await;
    let kinds: Vec<_> = own.iter().map(|item| item["kind"].as_str().expect("a kind")).collect();
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    assert_eq!((kinds[2], kinds[3]), ("hold", "grant"));
    assert!(own[..3].iter().all(|item| item["job"] == job.uuid.to_string()));
    assert_eq!(own[2]["to"], serde_json::json!({"owner": "rich", "held": true}));
    assert_eq!(hub.all("/v1/ledger?owner=rich", &client.key, 3).await, own);
    assert_eq!(hub.all("/v1/ledger?owner=rich", &hub.operator, 3).await, own);
    assert_eq!(hub.all("/v1/ledger", &hub.operator, 2).await, own);

    let paid = hub.get("/v1/ledger", &worker.key).await;
    assert_eq!(paid.body["items"].as_array().map(Vec::len), Some(1));
    assert!(paid.text.contains(r#""amount":0.000005"#), "{}", paid.text);
}

#[tokio::test]
async fn an_account_is_shown_to_its_owner_and_the_operator() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    hub.open(&client, "sum", "1.25").await;
    for key in [&client.key, &hub.operator] {
        let got = hub.get("/v1/accounts/rich", key).await;
        assert!(
            got.text.contains(r#""owner":"rich","available":8.75,"held":1.25"#),
            "{}",
            got.text
        );
    }
    let issue = hub.get("/v1/accounts/hub:issuance", &hub.operator).await;
    assert!(issue.text.contains(r#""available":-10.00"#), "{}", issue.text);
}

#[tokio::test]
async fn the_caller_sees_itself_whole() {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    hub.open(&client, "sum", "1.00").await;
    let me = hub.get("/v1/me", &worker.key).await;
    assert_eq!(me.body["agent"]["id"], worker.id.0);
    assert_eq!(me.body["agent"]["endpoint"], "https://secret.example/in?token=s3cret");
    assert_eq!(me.body["agent"]["liveness"], "always");
    assert_eq!(me.body["inbox"], serde_json::json!({"head": 1, "acked": 0}));
    assert_eq!(me.body["jobs_in_hand"], 1);
    assert_eq!(me.body["account"]["owner"], "globex");
    assert_eq!(hub.get("/v1/me", &client.key).await.body["jobs_in_hand"], 0);
}
