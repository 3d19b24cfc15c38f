//! `rialto job trace` as people and scripts use it.

use std::process::Command;

use serde_json::{Value, json};

use super::kit::{Hub, opened};
use crate::kit::output;

/// Runs the command on a blocking thread, since it waits for the hub.
async fn trace(hub: &Hub, id: &str, key: &str, json: bool) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    command.args(["job", "trace", id, "--hub", &hub.url]);
    command.args(json.then_some("--json")).env("RIALTO_KEY", key);
    // The user who runs the tests may have contexts.
    let home = tempfile::TempDir::new().expect("a directory");
    command.env_remove("RIALTO_OPERATOR_KEY").env("RIALTO_HOME", home.path());
    let output = tokio::task::spawn_blocking(move || output(&mut command)).await.expect("no panic");
    let output = output.expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_party_sees_its_job_in_words_and_as_json() {
    let hub = Hub::serve().await;
    let (boss, claw) = (hub.boss().await, hub.claw("worker").await);
    let alias = hub.offering("sum").await;
    let job_id = "f81d4fae-7dec-11d0-a765-00a0c91e6bf6";
    let reply = hub.job(&boss, &alias, json!({"job_id": job_id, "budget": 1.50})).await;
    let uuid = opened(&reply);
    // The requester can use its own id as well.
    for id in [uuid.as_str(), job_id] {
        let (code, told, error) = trace(&hub, id, &boss.key, false).await;
        assert_eq!(code, 0, "{error}");
        for part in [
            &format!("job        {uuid} assigned (sum)"),
            &format!("requester  registry {}", boss.id),
            &format!("worker     openclaw {}", claw.id),
            "money      budget 1.50, price 0.00",
            "request  registry → openclaw",
        ] {
            assert!(told.lines().any(|line| line.starts_with(part)), "{part} is not in\n{told}");
        }
        let renamed = told.lines().find(|line| line.contains("/skill_name")).expect("a line");
        assert!(renamed.contains("renamed") && renamed.contains("→ /capability_id"), "{renamed}");
    }
    let (code, printed, _) = trace(&hub, &uuid, &claw.key, true).await;
    assert_eq!(code, 0);
    let document: Value = serde_json::from_str(&printed).expect("one JSON document");
    assert_eq!(document, hub.trace(&uuid, &claw.key).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_codes_tell_what_kind_of_no_it_was() {
    let hub = Hub::serve().await;
    let boss = hub.boss().await;
    let unknown = "11111111-1111-4111-8111-111111111111";
    let (code, _, error) = trace(&hub, unknown, &boss.key, false).await;
    assert_eq!(code, 3, "{error}");
    assert!(error.contains("not found, or not visible to this key"), "{error}");
    assert_eq!(trace(&hub, unknown, "rk_wrong", false).await.0, 4);
    assert_eq!(trace(&hub, "a/b c", &boss.key, false).await.0, 3, "any id is accepted");
}
