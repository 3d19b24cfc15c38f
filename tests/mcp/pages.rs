//! The pages from which an agent that knows only the hub's address joins it by itself.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::clients::register;
use crate::kit::{Process, Reply, http, walk_at};

/// Hires every agent that offers what the page tells a reader to offer.
async fn hire_readers(url: String, key: String) {
    let (http, mut hired) = (http(), BTreeSet::new());
    loop {
        let list = format!("{url}/v1/agents?skill=upper_case&online=true");
        let found = Reply::to(http.get(list)).await.expect(200).json();
        for agent in found["items"].as_array().expect("agents") {
            let name = agent["names"]["relay"].as_str().expect("a name").to_owned();
            if hired.insert(name.clone()) {
                let job = json!({"skill": "upper_case", "input": {"text": "hello"}, "budget": 1,
                    "to": name});
                let request = http.post(format!("{url}/v1/jobs")).bearer_auth(&key);
                Reply::to(request.body(job.to_string())).await.expect(201);
            }
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
}

/// Runs a page of a hub as an agent that has just read it, twice.
async fn follow(path: &'static str) -> usize {
    let place = TempDir::new().expect("a directory");
    let hub = Process::start("dev", &place.path().join("data"), &[]);
    let page = Reply::to(http().get(format!("{}{path}", hub.url))).await.expect(200).text;
    let key = register(&hub.url, "customer").await;
    let customer = hire_readers(hub.url.clone(), key);
    // The hub outlives the customer.
    let walked = tokio::task::spawn_blocking(move || {
        let blocks = walk_at(&hub, place.path(), &page, &[]);
        (blocks, hub, place)
    });
    tokio::select! {
        walked = walked => walked.expect("the page works as printed").0,
        () = customer => unreachable!("it hires for ever"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_joins_hires_works_and_is_paid_by_reading_the_skill_page() {
    assert!(follow("/skill").await >= 7, "every step has its commands");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_commands_of_the_overview_work_as_printed() {
    assert_eq!(follow("/llms.txt").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn every_link_of_the_overview_leads_somewhere() {
    let place = TempDir::new().expect("a directory");
    let hub = Process::start("dev", &place.path().join("data"), &[]);
    let reply = Reply::to(http().get(format!("{}/llms.txt", hub.url))).await.expect(200);
    assert_eq!(reply.header("content-type"), Some("text/plain; charset=utf-8"));
    let links =
        reply.text.lines().filter_map(|line| line.strip_prefix("- [")?.split(['(', ')']).nth(1));
    let links: Vec<String> = links.map(str::to_owned).collect();
    assert_eq!(links.len(), 5, "{}", reply.text);
    for link in links {
        assert!(link.starts_with(&hub.url), "{link} is at this hub");
        let status = Reply::to(http().get(&link)).await.status;
        // Models post their messages to the endpoint of MCP.
        assert_eq!(status, if link.ends_with("/mcp") { 405 } else { 200 }, "{link}");
    }
    let skill = Reply::to(http().get(format!("{}/skill", hub.url))).await.expect(200);
    assert_eq!(skill.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(skill.text.starts_with("---\nname: rialto\n"), "{}", skill.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_have_the_public_url_and_need_no_key() {
    let hub = crate::kit::TestHub::serve(&[("http.public_url", "https://hub.test")]).await;
    for path in ["/llms.txt", "/skill"] {
        let page = hub.get(path, None).await.expect(200);
        assert!(page.text.contains("hub=https://hub.test\n"), "{path}");
    }
    let document: Value = hub.get("/openapi.json", None).await.expect(200).json();
    for path in ["/llms.txt", "/skill"] {
        assert!(document["paths"][path]["get"].is_object(), "{path}");
    }
    hub.stop().await;
}
