//! The key of the bridge: given, or made and kept in the context.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tempfile::TempDir;

use super::process::Bridge;
use crate::kit::{Process, TestHub};

/// The files of keys in the only context of a home.
fn key_files(home: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for context in fs::read_dir(home.join("contexts")).into_iter().flatten().flatten() {
        for file in fs::read_dir(context.path()).expect("a directory").flatten() {
            files.push(file.path());
        }
    }
    files.retain(|path| path.extension().is_some_and(|kind| kind == "key"));
    files.sort();
    files
}

fn key_in(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a key file");
    text.lines().next().expect("a key").to_owned()
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_start_registers_and_keeps_a_limited_key() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::start(&hub.url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    let me = bridge.ok("whoami", json!({}));
    let limits = json!({"per_job": "1.00", "per_day": "10.00", "left_today": "10.00",
        "transfers": false});
    assert_eq!(me["limits"], limits, "{me}");
    let told = bridge.all_errors();
    for part in
        ["registered as", "key saved in context", "made a key for rialto mcp", "1.00 per job"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
    let files = key_files(home.path());
    let names: Vec<String> = files.iter().map(|path| file_name(path)).collect();
    assert_eq!(names, ["mcp.key", "me.key"]);
    for file in &files {
        assert!(!told.contains(&key_in(file)), "a key is shown: {told}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(file).expect("there").permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }
    // The next start uses it, and says nothing.
    let mut again = Bridge::start(&hub.url, home.path(), &[], &[]);
    again.open("2025-11-25", json!({}));
    assert_eq!(again.ok("whoami", json!({}))["agent"], me["agent"]);
    assert_eq!(again.all_errors(), "");
    assert_eq!(key_files(home.path()), files);
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_is_given_is_used_as_it_is() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let ann = hub.orchestrator("ann").await;
    let file = home.path().join("ann.key");
    fs::write(&file, &ann.key).expect("written");
    let path = file.display().to_string();
    for (arguments, env) in [
        (&["--key-file", path.as_str()][..], &[][..]),
        (&[][..], &[("RIALTO_KEY", ann.key.as_str())][..]),
    ] {
        let mut bridge = Bridge::start(&hub.url, home.path(), arguments, env);
        bridge.open("2025-11-25", json!({}));
        assert_eq!(bridge.ok("whoami", json!({}))["owner"], "ann");
        assert_eq!(bridge.all_errors(), "");
    }
    assert!(key_files(home.path()).is_empty(), "nothing is kept");
    hub.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_dev_hub_that_does_not_know_the_key_gets_a_new_agent() {
    let home = TempDir::new().expect("a directory");
    let hub = Process::start("dev", &home.path().join("one"), &[]);
    let (url, address) = (hub.url.clone(), hub.url.trim_start_matches("http://").to_owned());
    let mut bridge = Bridge::start(&url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    bridge.ok("whoami", json!({}));
    let kept = home.path().join("contexts");
    let file = key_files(&kept.join("..")).remove(0);
    let first = key_in(&file);
    hub.kill();
    let hub = Process::at(&address, "dev", &home.path().join("two"), &[], &[]);
    let me = bridge.ok("whoami", json!({}));
    assert_eq!(me["limits"]["per_job"], "1.00", "{me}");
    assert_ne!(key_in(&file), first);
    let told = bridge.all_errors();
    assert_eq!(told.matches("registered as").count(), 2, "{told}");
    hub.kill();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_key_is_not_replaced_until_it_is_connected_anew() {
    let (hub, home) = (TestHub::serve(&[]).await, TempDir::new().expect("a directory"));
    let mut bridge = Bridge::start(&hub.url, home.path(), &[], &[]);
    bridge.open("2025-11-25", json!({}));
    bridge.ok("whoami", json!({}));
    let files = key_files(home.path());
    let (limited, own) = (fs::read_to_string(&files[0]).expect("a key"), key_in(&files[1]));
    let id = limited.lines().find_map(|line| line.strip_prefix("key_id ")).expect("its id");
    let revoked = hub.call("DELETE", &format!("/v1/keys/{id}"), Some(&own), None).await;
    revoked.expect(200);
    let whoami = json!({"name": "whoami", "arguments": {}});
    let (_, error) = bridge.error("tools/call", whoami);
    assert_eq!(error["data"]["code"], "unauthorized", "{error}");
    assert_eq!(fs::read_to_string(&files[0]).expect("a key"), limited);
    // Another key in the same place is used by the running bridge.
    let body = json!({"label": "other", "per_job": 0.5});
    let made = hub.post("/v1/keys", Some(&own), &body).await.expect(201);
    fs::write(&files[0], made.str("/key")).expect("written");
    assert_eq!(bridge.ok("whoami", json!({}))["limits"]["per_job"], "0.50");
    hub.stop().await;
}
