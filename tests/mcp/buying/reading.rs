//! `get_job` and `list_jobs`: what parties see, and content that is too long for one result.

use serde_json::{Value, json};

use crate::client::{Era, McpClient};
use crate::market::Market;

/// Reads a job's content in parts, and joins them.
async fn read_parts(client: &McpClient, job: &Value, part: &str) -> String {
    let (mut joined, mut from) = (String::new(), json!(0));
    loop {
        let arguments = json!({"job_id": job, "part": part, "from": from});
        let shown = client.ok("get_job", arguments).await;
        assert!(shown.to_string().chars().count() <= 24_000);
        let read = &shown["part"];
        assert_eq!((&read["of"], &read["from"]), (&json!(part), &from));
        joined.push_str(read["text"].as_str().expect("a text"));
        if read["to"] == read["total"] {
            assert!(shown.get("next").is_none(), "{shown}");
            return joined;
        }
        assert!(
            shown["next"].as_str().expect("a text").contains(&format!("\"from\":{}", read["to"]))
        );
        from = read["to"].clone();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn long_input_and_output_come_in_parts_that_join_to_their_json() {
    let market = Market::open().await;
    let output = json!({"text": "né \"quoted\"\n".repeat(3_000)});
    let (worker, server) = market.worker("w", "write", "0.05", output.clone()).await;
    let client = market.buyer(Era::New);
    let input = json!({"text": "x".repeat(45_000)});
    let arguments = json!({"skill": "write", "input": input, "budget": "0.10"});
    let job = client.ok("hire", arguments).await;
    assert!(job.get("output").is_none(), "it is too long");
    assert_eq!((&job["part"]["of"], &job["part"]["from"]), (&json!("output"), &json!(0)));
    assert_eq!(job["untrusted"], json!(["/part/text"]));
    assert!(job["next"].as_str().unwrap().contains("\"part\":\"output\""), "{}", job["next"]);
    let id = &job["job_id"];
    let read = read_parts(&client, id, "output").await;
    assert_eq!(serde_json::from_str::<Value>(&read).unwrap(), output);
    assert_eq!(read_parts(&client, id, "input").await, input.to_string());
    // The worker reads both, and the input is what others wrote.
    let theirs = market.client_of(&worker);
    assert_eq!(read_parts(&theirs, id, "input").await, input.to_string());
    let shown = theirs.ok("get_job", json!({"job_id": id, "part": "input"})).await;
    assert_eq!(shown["untrusted"], json!(["/part/text"]));
    assert!(shown.get("budget").is_none(), "that is the requester's business: {shown}");
    drop(server);
    market.hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_listed_by_side_and_state_in_pages() {
    let market = Market::open().await;
    let slow = market.slow_worker("slow", "slow", "0.05").await;
    let client = market.buyer(Era::New);
    let mut ids = Vec::new();
    for n in 0..3 {
        let arguments =
            json!({"skill": "slow", "input": {"n": n}, "budget": "0.10", "wait_seconds": 0});
        ids.push(client.ok("hire", arguments).await["job_id"].clone());
    }
    let done = ids[0].as_str().unwrap();
    market.hub.report(&slow, done, "SUCCESS", "0.05").await.expect(200);
    let list = async |client: &McpClient, arguments: Value| -> Vec<Value> {
        let listed = client.ok("list_jobs", arguments).await;
        listed["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].clone()).collect()
    };
    assert_eq!(list(&client, json!({})).await, ids[1..]);
    assert_eq!(list(&client, json!({"state": "ended"})).await, ids[..1]);
    assert_eq!(list(&client, json!({"side": "worked"})).await, Vec::<Value>::new());
    let worker = market.client_of(&slow);
    assert_eq!(list(&worker, json!({"side": "worked", "state": "all"})).await.len(), 3);
    let (mut paged, mut cursor) = (Vec::new(), Value::Null);
    loop {
        let arguments = json!({"state": "all", "limit": 1, "cursor": cursor});
        let page = client.ok("list_jobs", arguments).await;
        paged.extend(page["jobs"].as_array().unwrap().iter().map(|job| job["job_id"].clone()));
        cursor = page["next_cursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(paged, [ids[1].clone(), ids[2].clone(), ids[0].clone()]);
    let page = client.ok("list_jobs", json!({"state": "ended"})).await;
    let line = &page["jobs"][0];
    assert_eq!(
        (&line["state"], &line["paid"], &line["price"]),
        (&json!("completed"), &json!("0.05"), &json!("0.05"))
    );
    assert!(line["opened_at"].is_string(), "{line}");
    client.fail("list_jobs", json!({"cursor": "x"}), "malformed").await;
    market.hub.stop().await;
}
