//! Tests of jobs as their parties and the operator see them.

use rialto_core::command::{Command, JobRef};

use super::kit::{Agent, Hub};

async fn scene() -> (Hub, Agent, Agent) {
    let hub = Hub::start().await;
    hub.grant("rich", "10.00").await;
    let client = hub.enrol("client", "rich", None).await;
    let worker = hub.enrol("worker", "globex", Some(("sum", "0.05"))).await;
    (hub, client, worker)
}

#[tokio::test]
async fn each_pair_of_eyes_sees_what_is_theirs() {
    let (hub, client, worker) = scene().await;
    let job = hub.open(&client, "sum", "1.00").await;
    hub.succeed(&job).await;
    let path = format!("/v1/jobs/{}", job.uuid);

    let asked = hub.get(&path, &client.key).await;
    assert_eq!(asked.body["state"], "completed");
    assert_eq!(asked.body["worker"], worker.id.0);
    assert_eq!(asked.body["callback"], "https://back.example/s3cret");
    assert!(asked.text.contains(r#""budget":1.00"#) && asked.text.contains(r#""paid":0.05"#));
    assert!(asked.text.contains("{\n \"text\": 1.10 }"), "the input is returned unchanged");
    assert!(asked.text.contains(r#""output":{"sum": 0.30}"#));

    let worked = hub.get(&path, &worker.key).await;
    assert_eq!(worked.body["result"]["output"]["sum"], 0.30);
    assert!(worked.body.get("budget").is_none() && worked.body.get("callback").is_none());
    assert!(worked.text.contains(r#""price":0.05"#));

    let watched = hub.get(&path, &hub.operator).await;
    assert_eq!(watched.body["state"], "completed");
    for hidden in ["input", "result", "callback"] {
        assert!(watched.body.get(hidden).is_none(), "{hidden}");
    }
    assert!(!watched.text.contains("s3cret"));
}

#[tokio::test]
async fn lists_are_ones_own_and_carry_no_content() {
    let (hub, client, worker) = scene().await;
    let mut uuids = Vec::new();
    for n in 0..5 {
        let job = hub.open(&client, "sum", "0.50").await;
        uuids.push(job.uuid.to_string());
        if n % 2 == 0 {
            hub.succeed(&job).await;
        }
    }
    let ids = |items: Vec<serde_json::Value>| -> Vec<String> {
        items.iter().map(|item| item["id"].as_str().expect("an id").to_owned()).collect()
    };
    let newest_first = [&uuids[4], &uuids[2], &uuids[0]].map(String::clone);
    for side in ["asked", "worked"] {
        let (own, other) = if side == "asked" { (&client, &worker) } else { (&worker, &client) };
        let path = format!("/v1/jobs?side={side}&state=ended");
        assert_eq!(ids(hub.all(&path, &own.key, 1).await), newest_first, "{side}");
        assert_eq!(ids(hub.all(&path, &own.key, 2).await), newest_first, "{side}");
        assert!(hub.all(&path, &other.key, 2).await.is_empty());
        let path = format!("/v1/jobs?side={side}&state=live");
        assert_eq!(ids(hub.all(&path, &own.key, 1).await), [uuids[1].clone(), uuids[3].clone()]);
        assert!(hub.all(&path, &other.key, 2).await.is_empty());
        assert!(!hub.get(&path, &own.key).await.text.contains("input"));
    }
    hub.get("/v1/jobs?side=left", &client.key).await.is_problem(400, "malformed");
    hub.get("/v1/jobs/17", &client.key).await.is_problem(404, "not_found");
    hub.get("/v1/jobs/17", &hub.operator).await.is_problem(400, "malformed");
}

#[tokio::test]
async fn a_made_up_cursor_leads_nowhere() {
    let (hub, client, _) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    hub.succeed(&job).await;
    let other = hub.enrol("other", "acme", None).await;
    use base64::Engine as _;
    let cursor = |plain: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(plain);
    for id in [job.id.0, 999, u64::MAX] {
        for side in ["asked", "worked"] {
            let path =
                format!("/v1/jobs?state=ended&side={side}&cursor={}", cursor(&format!("e.{id}")));
            let got = hub.get(&path, &other.key).await;
            assert_eq!(got.text, r#"{"items":[],"next_cursor":null}"#, "{side} {id}");
        }
    }
    for id in [1, 2, 3, 999, u64::MAX] {
        let path = format!("/v1/ledger?cursor={}", cursor(&format!("g.{id}")));
        let got = hub.get(&path, &other.key).await;
        assert_eq!(got.text, r#"{"items":[],"next_cursor":null}"#, "{id}");
        assert_eq!(hub.get(&path, &hub.operator).await.status, 200);
    }
    assert!(hub.engine.is_writable());
}

#[tokio::test]
async fn a_cancelled_job_says_why_it_ended() {
    let (hub, client, _) = scene().await;
    let job = hub.open(&client, "sum", "0.50").await;
    let by = rialto_core::command::Canceller::Agent(client.id);
    hub.engine
        .run(Command::Cancel { job: JobRef::Id(job.id), by, reason: None })
        .await
        .expect("cancelled");
    let got = hub.get(&format!("/v1/jobs/{}", job.uuid), &client.key).await;
    assert_eq!(got.body["state"], "cancelled");
    assert_eq!(got.body["cause"], "cancelled");
    assert_eq!(got.body["result"]["text"], "cancelled by requester");
}
