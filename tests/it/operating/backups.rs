//! A hub is backed up while it runs, killed, and restored from the backup.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::crash;
use crate::kit::{Process, eventually, http, operator_key, run};

/// Pays repeatedly until it is stopped; counts the acknowledged payments.
async fn pay(url: String, key: String, stop: Arc<AtomicBool>, paid: Arc<AtomicU64>) {
    let http = http();
    while !stop.load(Ordering::Relaxed) {
        let body = json!({"from_owner": "payer", "to_owner": "payee", "amount": 0.01}).to_string();
        let sent = http.post(format!("{url}/registry/transfer")).bearer_auth(&key).body(body);
        match sent.send().await {
            Ok(answer) if answer.status().is_success() => {
                paid.fetch_add(1, Ordering::Relaxed);
            }
            Ok(answer) => panic!("{}", answer.status()),
            // The hub was killed.
            Err(_) => return,
        }
    }
}

async fn call(url: &str, path: &str, key: &str, body: Option<Value>) -> Value {
    let http = http();
    let request = match body {
        Some(body) => http.post(format!("{url}{path}")).body(body.to_string()),
        None => http.get(format!("{url}{path}")),
    };
    let answer = request.bearer_auth(key).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{path}: {}", answer.status());
    serde_json::from_str(&answer.text().await.expect("a text")).expect("JSON")
}

#[test]
fn a_key_file_that_is_none_leads_to_a_new_key_and_a_missing_directory_is_not_made() {
    let room = TempDir::new().expect("a directory");
    let path = |name: &str| text(&room.path().join(name));
    let (data, file, gone) = (path("data"), path("b.db"), path("none/b.db"));
    Process::start("serve", &room.path().join("data"), &[]).kill();
    let (code, _, error) = run(&["backup", "--data", &data, "--to", &gone]);
    assert!(code == 3 && error.contains("none"), "{code}: {error}");
    assert!(!room.path().join("none").exists());
    let (code, _, error) = run(&["backup", "--data", &data, "--to", &file]);
    assert_eq!(code, 0, "{error}");
    let restored = path("restored");
    let line = ["restore", "--from", &file, "--data", &restored, "--hub-key", &file];
    let (code, _, error) = run(&line);
    assert!(code == 2 && error.contains("--new-hub-key"), "{code}: {error}");
    assert!(!error.contains("remove"), "{error}");
    assert!(!room.path().join("restored").exists());
}

fn text(path: &std::path::Path) -> String {
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hub_under_load_is_backed_up_killed_restored_and_adds_up() {
    let room = TempDir::new().expect("a directory");
    let (data, file, key) =
        (room.path().join("data"), room.path().join("monday.db"), room.path().join("key"));
    let (operator, hub) = (operator_key(), crash::start(&data));
    let register = |owner: &str| json!({"agent_name": owner, "owner_id": owner, "skills": []});
    let payer = call(&hub.url, "/registry/register", &operator, Some(register("payer"))).await;
    call(&hub.url, "/registry/register", &operator, Some(register("payee"))).await;
    let grant = json!({"owner": "payer", "amount": 100_000});
    call(&hub.url, "/v1/operator/grants", &operator, Some(grant)).await;
    let own = payer["api_key"].as_str().expect("a key").to_owned();
    let (stop, paid) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let paying: Vec<_> = (0..4)
        .map(|_| tokio::spawn(pay(hub.url.clone(), own.clone(), stop.clone(), paid.clone())))
        .collect();
    eventually(|| async { paid.load(Ordering::Relaxed) > 20 }).await;
    let before = paid.load(Ordering::Relaxed);
    let line = [
        "backup",
        "--data",
        &text(&data),
        "--to",
        &text(&file),
        "--hub-key",
        &text(&key),
        "--json",
    ]
    .map(str::to_owned);
    let ran = tokio::task::spawn_blocking(move || run(&line.each_ref().map(String::as_str)));
    let (code, told, error) = ran.await.expect("no panic");
    assert_eq!(code, 0, "{told}{error}");
    let told: Value = serde_json::from_str(&told).expect("one document");
    assert_eq!((&told["audited"], &told["epoch"]), (&json!(true), &json!(1)));
    // The hub kept working during the backup, and still does.
    let after = paid.load(Ordering::Relaxed);
    eventually(|| async { paid.load(Ordering::Relaxed) > after + 20 }).await;
    hub.kill();
    stop.store(true, Ordering::Relaxed);
    for one in paying {
        one.await.expect("no panic");
    }
    let new = room.path().join("new");
    let line = ["restore", "--from", &text(&file), "--data", &text(&new)];
    let (code, _, error) = run(&line);
    assert!(code == 2 && error.contains("--hub-key"), "{error}");
    let (code, told, error) = run(&[&line[..], &["--hub-key", &text(&key)]].concat());
    assert_eq!((code, told.contains("epoch 2")), (0, true), "{told}{error}");
    assert_eq!(run(&["audit", "--data", &text(&new)]).0, 0);
    let hub = crash::start(&new);
    let account = call(&hub.url, "/v1/accounts/payee", &operator, None).await;
    let has = account["available"].as_f64().expect("a number");
    let (least, most) = (before as f64 / 100.0, after as f64 / 100.0 + 0.04);
    assert!(has >= least - 1e-9 && has <= most + 1e-9, "{least} {has} {most}");
    let stats = call(&hub.url, "/v1/operator/stats", &operator, None).await;
    assert_eq!(stats["epoch"], 2);
    // The agent's own key is valid, and work continues.
    let body = json!({"from_owner": "payer", "to_owner": "payee", "amount": 0.01});
    call(&hub.url, "/registry/transfer", &own, Some(body)).await;
    hub.kill();
    assert_eq!(run(&["audit", "--data", &text(&new)]).0, 0);
}

#[test]
fn a_hub_does_not_start_on_a_backup_and_a_copy_of_a_running_hub_is_refused() {
    let room = TempDir::new().expect("a directory");
    let (data, copy) = (room.path().join("data"), room.path().join("copy"));
    let hub = Process::start("serve", &data, &[]);
    std::fs::create_dir(&copy).expect("a directory");
    let file = text(&copy.join("rialto.db"));
    let backup = ["backup", "--data", &text(&data), "--to", &file];
    assert_eq!(run(&backup).0, 0);
    assert_eq!(run(&backup).0, 5, "existing files are kept");
    let (code, _, error) = run(&["serve", "--listen", "127.0.0.1:0", "--data", &text(&copy)]);
    assert!(code == 1 && error.contains("rialto restore"), "{error}");
    let new = text(&room.path().join("new"));
    let line = ["restore", "--from", &file, "--data", &new, "--new-hub-key"];
    let (code, _, error) = run(&line);
    assert!(code == 5 && error.contains("--beside-original"), "{error}");
    hub.kill();
    assert_eq!(run(&line).0, 0);
    assert_eq!(run(&line).0, 5, "it exists now");
    let missing = ["restore", "--from", "no/such.db", "--data", &text(&room.path().join("x"))];
    assert_eq!(run(&[&missing[..], &["--new-hub-key"]].concat()).0, 3);
}
