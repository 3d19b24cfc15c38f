//! A new hub at the address of an older one, as with every `rialto dev`.

use tempfile::TempDir;

use super::kit::Cli;
use crate::crash::TO_COME_BACK;
use crate::kit::{Process, eventually, http};

const POST: [&str; 8] = ["job", "post", "--skill", "echo", "--input", "{}", "--budget", "0"];

/// A new hub, once an agent can be hired.
async fn dev(address: &str) -> (Process, TempDir) {
    let data = TempDir::new().expect("a directory");
    let hub = Process::at(address, "dev", data.path(), &[], &[]);
    let http = http();
    eventually(async || {
        let found = http.get(format!("{}/discover?skill=echo", hub.url)).send().await;
        found.expect("an answer").text().await.expect("text").contains("\"total\":1")
    })
    .await;
    (hub, data)
}

#[tokio::test]
async fn an_agent_of_the_old_hub_is_registered_again_and_its_old_key_is_kept() {
    let (hub, _data) = dev(TO_COME_BACK).await;
    let url = hub.url.clone();
    let cli = Cli::new().with("RIALTO_HUB", &url);
    let first = cli.run(&POST).await.ok();
    assert!(first.err.contains("registered as"), "{first:#?}");
    assert!(!cli.run(&POST).await.ok().err.contains("registered as"), "the notice is printed once");
    hub.kill();
    let (_hub, _data) = dev(url.trim_start_matches("http://")).await;
    let second = cli.run(&POST).await.ok();
    assert!(second.err.contains("registered as"), "{second:#?}");
    // Both keys are kept: the old hub may come back.
    let context = std::fs::read_dir(cli.home().join("contexts")).expect("contexts").next();
    let context = context.expect("one").expect("one").path();
    let keys = std::fs::read_dir(context).expect("a context").flatten();
    let names = keys.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let keys: Vec<String> = names.filter(|name| name.ends_with(".key")).collect();
    assert_eq!(keys.len(), 2, "{keys:?}");
}

#[tokio::test]
async fn a_key_that_the_hub_revoked_is_not_replaced() {
    let (hub, _data) = dev("127.0.0.1:0").await;
    let cli = Cli::new().with("RIALTO_HUB", &hub.url);
    cli.run(&POST).await.ok();
    let http = http();
    let context = std::fs::read_dir(cli.home().join("contexts")).expect("contexts").next();
    let file = context.expect("one").expect("one").path().join("me.key");
    let key = std::fs::read_to_string(&file).expect("a key");
    let revoked = http
        .delete(format!("{}/v1/keys", hub.url))
        .bearer_auth(key.lines().next().expect("a line"))
        .send()
        .await
        .expect("an answer");
    assert!(revoked.status().is_success());
    cli.run(&POST).await.failed(4, &["key"]);
    assert_eq!(std::fs::read_to_string(&file).expect("a key"), key);
}

#[tokio::test]
async fn a_line_that_is_not_understood_is_one_document_for_programs() {
    let cli = Cli::new();
    for line in [&["job", "post", "--json"][..], &["--json", "job"], &["nonsense", "--json"]] {
        let ran = cli.run(line).await.expect(2);
        assert!(ran.json()["error"].is_string() && ran.err.is_empty(), "{ran:#?}");
    }
    let ran = cli.run(&["job", "post"]).await.expect(2);
    assert!(ran.out.is_empty() && ran.err.contains("--skill"), "{ran:#?}");
    cli.run(&["job", "post", "--json", "--help"]).await.ok();
}
