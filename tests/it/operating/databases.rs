//! Operators move a hub to PostgreSQL and back, and check the database.

use std::path::Path;

use rialto_engine::testkit::postgres::{PrivatePostgres, Replication, ServerOptions, TestDatabase};
use serde_json::Value;
use tempfile::TempDir;

use crate::kit::{Process, run};

fn text(path: &Path) -> String {
    path.display().to_string()
}

#[test]
fn a_hub_moves_to_a_database_and_back_by_command() {
    const NAME: &str = "operating::databases::a_hub_moves_to_a_database_and_back_by_command";
    let Some(database) = TestDatabase::create(NAME) else { return };
    let room = TempDir::new().expect("a directory");
    let (data, back) = (room.path().join("data"), text(&room.path().join("back")));
    let (dir, url) = (text(&data), database.url());
    let hub = Process::start("serve", &data, &[]);
    let there = ["migrate", "--from", &dir, "--to", &url, "--json"];
    let (code, told, _) = run(&there);
    assert!(code == 1 && told.contains("stop that hub first"), "{code} {told}");
    assert!(hub.stop().success());
    let (code, told, error) = run(&there);
    assert_eq!(code, 0, "{told}{error}");
    let told: Value = serde_json::from_str(&told).expect("one document");
    assert!(told["rows"].as_u64() > Some(0), "{told}");
    assert_eq!(told["audited"], true);
    let (code, told, _) = run(&there);
    assert!(code == 1 && told.contains("already contains a hub"), "{code} {told}");
    assert_eq!(run(&["audit", "--database-url", &url]).0, 0);
    // The database has the check of the directory's secret.
    let (other, key) = (text(&room.path().join("other")), text(&data.join("hub.key")));
    std::fs::write(&other, [9; 32]).expect("written");
    restrict(Path::new(&other));
    let line = ["migrate", "--from", &url, "--to", &back, "--hub-key"];
    let (code, _, error) = run(&[&line[..], &[&other]].concat());
    assert!(code == 1 && error.contains("secret"), "{code} {error}");
    assert!(!Path::new(&back).exists());
    let (code, told, error) = run(&[&line[..], &[&key]].concat());
    assert_eq!(code, 0, "{error}");
    assert!(told.contains("do not start it again"), "{told}");
    Process::start("serve", Path::new(&back), &[]).kill();
    assert_eq!(run(&["audit", "--data", &back]).0, 0);
    database.run_sql("UPDATE lines SET body = '{}'").expect("valid");
    assert_eq!(run(&["audit", "--database-url", &url]).0, 1);
}

fn restrict(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).expect("it is ours");
}

#[test]
fn what_is_no_hub_is_named_with_what_to_do() {
    const NAME: &str = "operating::databases::what_is_no_hub_is_named_with_what_to_do";
    let Some(database) = TestDatabase::create(NAME) else { return };
    let url = database.url();
    let room = TempDir::new().expect("a directory");
    let (file, dir) = (text(&room.path().join("f")), text(&room.path().join("d")));
    for line in [
        &["audit", "--database-url", &url][..],
        &["backup", "--database-url", &url, "--to", &file],
        &["cluster", "accept", "--database-url", &url],
        &["migrate", "--from", &url, "--to", &dir],
        &["migrate", "--from", &dir, "--to", &url],
    ] {
        let (code, _, error) = run(line);
        assert!(code == 3 && error.contains("contains no store"), "{line:?}: {code} {error}");
    }
    let nowhere = "postgresql://127.0.0.1:1/nothing";
    assert_eq!(run(&["audit", "--database-url", nowhere]).0, 7);
    let (code, _, error) = run(&["audit", "--database-url", "mysql://x"]);
    assert!(code == 1 && error.contains("postgresql://"), "{code} {error}");
    assert_eq!(run(&["doctor", "--database-url", nowhere]).0, 1);
}

#[test]
fn the_doctor_names_what_a_standby_may_lose() {
    const NAME: &str = "operating::databases::the_doctor_names_what_a_standby_may_lose";
    let Some(primary) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    let url = primary.url("rialto");
    let doctor = || run(&["doctor", "--database-url", &url, "--json"]);
    let (code, alone, error) = doctor();
    assert_eq!(code, 0, "{alone}{error}");
    let standby = primary.standby(Replication::Asynchronous);
    let (code, told, _) = doctor();
    assert_eq!(code, 1, "{told}");
    let report: Value = serde_json::from_str(&told).expect("one document");
    let checks = report["checks"].as_array().expect("a list");
    let found = checks.iter().find(|check| check["check"] == "standby").expect("it is checked");
    let what = found["what"].as_str().expect("a text");
    assert!(what.contains("may lose acknowledged changes") && what.contains("nodes then stop"));
    assert!(found["next"].as_str().expect("a text").contains("synchronous_standby_names"));
    primary.set("synchronous_standby_names", "*").expect("the primary runs");
    // The state of a standby changes a moment after the setting.
    let is_fine = || doctor().0 == 0;
    assert!((0..100).any(|_| is_fine()), "{}", doctor().1);
    drop(standby);
    primary.set("fsync", "off").expect("the primary runs");
    let (code, told, _) = doctor();
    assert!(code == 1 && told.contains("fsync = on"), "{told}");
}
