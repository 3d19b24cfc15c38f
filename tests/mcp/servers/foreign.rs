//! Servers of others, as they are published: the reference servers of the protocol's own project.

use std::path::PathBuf;

use serde_json::json;

use super::kit::{boss, failure, hire, output, skills};
use super::runtime::Place;
use crate::kit::{TestHub, npm_package};

const VERSION: &str = "2026.8.31";

/// The command that runs a server from npm.
fn command(name: &str) -> String {
    let folder = npm_package(&format!("@modelcontextprotocol/{name}"), VERSION);
    let program: PathBuf = folder.join("node_modules/@modelcontextprotocol").join(name);
    format!("node '{}'", program.join("dist/index.js").display())
}

#[tokio::test]
async fn the_server_with_everything_is_sold_and_hired() {
    let (hub, place) = (TestHub::open(&[]).await, Place::new());
    let command = command("server-everything");
    let flags = ["--mcp", &command, "--price", "0.05", "--name", "everything"];
    let mut runtime = place.at_work(&hub, "said", &flags).await;
    let boss = boss(&hub).await;
    let sold = skills(&hub, &runtime).await;
    for tool in ["echo", "get-sum", "get-tiny-image", "get-structured-content"] {
        assert!(sold.contains(&tool.to_owned()), "{sold:?}");
    }
    let job = hire(&hub, &boss, "echo", r#"{"message":"hello"}"#).await;
    assert_eq!(output(&job), &json!({"text": "Echo: hello"}));
    let job = hire(&hub, &boss, "get-sum", r#"{"a":2,"b":3}"#).await;
    assert!(output(&job)["text"].as_str().is_some_and(|text| text.contains('5')), "{job}");
    let job = hire(&hub, &boss, "get-sum", r#"{"a":2}"#).await;
    assert_eq!(failure(&job).0, "policy");
    let job = hire(&hub, &boss, "get-tiny-image", "{}").await;
    let blocks = output(&job)["content"].as_array().expect("blocks");
    assert!(blocks.iter().any(|block| block["mimeType"] == "image/png"), "{job}");
    let job = hire(&hub, &boss, "get-structured-content", r#"{"location":"Chicago"}"#).await;
    assert!(output(&job)["temperature"].is_number(), "{job}");
    let job =
        hire(&hub, &boss, "trigger-long-running-operation", r#"{"duration":1,"steps":2}"#).await;
    assert!(output(&job)["text"].as_str().is_some_and(|text| text.contains("completed")), "{job}");
    assert_eq!(runtime.terminate().await.code(), Some(0));
}

#[tokio::test]
async fn the_server_of_files_works_in_its_folder_only() {
    let (hub, place) = (TestHub::open(&[]).await, Place::new());
    let folder = place.path("files");
    std::fs::create_dir(&folder).expect("made");
    std::fs::write(folder.join("note.txt"), "what was written\n").expect("written");
    place.file("secret.txt", "hidden");
    let command = format!("{} '{}'", command("server-filesystem"), folder.display());
    let flags = ["--mcp", &command, "--price", "0.05", "--name", "files"];
    let _runtime = place.at_work(&hub, "said", &flags).await;
    let boss = boss(&hub).await;
    let path = |name: &str| json!({"path": folder.join(name)}).to_string();
    let job = hire(&hub, &boss, "read_text_file", &path("note.txt")).await;
    assert!(output(&job).to_string().contains("what was written"), "{job}");
    let job = hire(&hub, &boss, "read_text_file", &path("../secret.txt")).await;
    let (cause, text) = failure(&job);
    assert!(cause == "execution" && !text.contains("hidden"), "{text}");
    let input = json!({"path": folder.join("new.txt"), "content": "new"}).to_string();
    output(&hire(&hub, &boss, "write_file", &input).await);
    assert_eq!(std::fs::read_to_string(folder.join("new.txt")).expect("a file"), "new");
}
