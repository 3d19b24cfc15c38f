use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use super::*;
use crate::local_postgres::{Account, process_entry};

#[test]
fn a_schema_of_a_test_is_new_and_dropped_with_it() {
    const NAME: &str = "testkit::postgres::a_schema_of_a_test_is_new_and_dropped_with_it";
    let Some(first) = TestDatabase::create(NAME) else { return };
    let second = TestDatabase::create(NAME).expect("the server runs");
    assert_ne!(first.schema(), second.schema());
    assert!(first.url().ends_with(&format!("schema={}", first.schema())), "{}", first.url());
    let exists = format!("SELECT count(*) FROM pg_namespace WHERE nspname = '{}'", first.schema());
    assert_eq!(second.run_sql(&exists).unwrap(), "0");
    first.run_sql(&format!("CREATE SCHEMA {}", first.schema())).unwrap();
    first.run_sql("CREATE TABLE rows AS SELECT 7 AS number").unwrap();
    assert_eq!(first.run_sql("SELECT number FROM rows").unwrap(), "7");
    assert_eq!(second.run_sql(&exists).unwrap(), "1");
    drop(first);
    assert_eq!(second.run_sql(&exists).unwrap(), "0");
}

#[test]
fn a_schema_name_is_short_plain_and_unlike_any_other() {
    let long = format!("store::suite::A_Name-with-{}", "ümlauts".repeat(20));
    let (first, second) = (unused_schema(&long), unused_schema(&long));
    assert_ne!(first, second);
    for name in [first, second] {
        assert!(name.len() <= 63, "{name}");
        let is_plain =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        assert!(name.bytes().all(is_plain), "{name}");
    }
}

#[test]
fn the_schema_is_added_to_a_url_with_and_without_parameters() {
    assert_eq!(with_schema("postgresql://h/d", "x"), "postgresql://h/d?schema=x");
    assert_eq!(with_schema("postgresql:///d?host=/s", "x"), "postgresql:///d?host=/s&schema=x");
}

#[test]
fn an_account_is_read_from_the_list_of_accounts() {
    let accounts = "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65533::/:/bin/false\n";
    let account = Account::read(accounts, "nobody").unwrap();
    assert_eq!((account.user, account.group), (65534, 65533));
    assert!(Account::read(accounts, "postgres").is_none());
}

#[test]
fn committed_rows_survive_a_crash_and_a_restart() {
    const NAME: &str = "testkit::postgres::committed_rows_survive_a_crash_and_a_restart";
    let Some(server) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    assert_eq!(server.run_sql("SHOW fsync").unwrap(), "on");
    server.run_sql("CREATE TABLE rows AS SELECT generate_series(1, 1000) AS number").unwrap();
    let url = server.url("x");
    server.crash();
    assert!(!server.is_running());
    assert!(server.run_sql("SELECT 1").is_err());
    server.restart();
    assert!(server.is_running());
    assert_eq!(server.url("x"), url);
    assert_eq!(server.run_sql("SELECT sum(number) FROM rows").unwrap(), "500500");
    server.stop();
    server.restart();
    assert_eq!(server.run_sql("SELECT sum(number) FROM rows").unwrap(), "500500");
    // Stops a running one first.
    server.restart();
    assert_eq!(server.run_sql("SELECT sum(number) FROM rows").unwrap(), "500500");
}

#[test]
fn settings_are_given_at_the_start_and_changed_later() {
    const NAME: &str = "testkit::postgres::settings_are_given_at_the_start_and_changed_later";
    let settings = vec![("work_mem".to_owned(), "3MB".to_owned())];
    let options = ServerOptions { fsync: false, settings, env: Vec::new() };
    let Some(server) = PrivatePostgres::start(NAME, &options) else { return };
    let fsync = if may_skip_fsync() { "off" } else { "on" };
    assert_eq!(server.run_sql("SHOW fsync").unwrap(), fsync);
    assert_eq!(server.run_sql("SHOW work_mem").unwrap(), "3MB");
    server.set("work_mem", "5MB").unwrap();
    assert_eq!(server.run_sql("SHOW work_mem").unwrap(), "5MB");
    let error = server.set("work_mem", "much").unwrap_err();
    assert!(error.contains("work_mem"), "{error}");
    server.crash();
    server.restart();
    assert_eq!(server.run_sql("SHOW work_mem").unwrap(), "5MB");
}

#[test]
fn a_private_server_is_reached_on_loopback_with_its_password_only() {
    const NAME: &str =
        "testkit::postgres::a_private_server_is_reached_on_loopback_with_its_password_only";
    let Some(server) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    let url = server.tcp_url("x");
    let url = url.strip_suffix("?schema=x").expect("it has the schema");
    assert_eq!(run_psql(url, &["SELECT 7"]).unwrap(), "7");
    let port = server.port();
    let anonymous = format!("postgresql://rialto@127.0.0.1:{port}/postgres");
    assert!(run_psql(&anonymous, &["SELECT 7"]).is_err());
}

#[test]
fn a_paused_server_answers_after_it_is_resumed() {
    const NAME: &str = "testkit::postgres::a_paused_server_answers_after_it_is_resumed";
    let Some(server) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    std::thread::scope(|scope| {
        let (told, is_told) = std::sync::mpsc::channel();
        server.pause();
        let server = &server;
        scope.spawn(move || told.send(server.run_sql("SELECT 7")));
        let early = is_told.recv_timeout(Duration::from_millis(300));
        server.resume();
        assert!(early.is_err(), "a paused server has answered: {early:?}");
        assert_eq!(is_told.recv().unwrap().unwrap(), "7");
    });
    server.pause();
    server.crash();
    server.restart();
    assert_eq!(server.run_sql("SELECT 7").unwrap(), "7");
}

#[test]
fn a_synchronous_standby_has_every_commit_and_can_be_promoted() {
    const NAME: &str =
        "testkit::postgres::a_synchronous_standby_has_every_commit_and_can_be_promoted";
    let Some(primary) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    primary.run_sql("CREATE TABLE rows (number int)").unwrap();
    let standby = primary.standby(Replication::Synchronous);
    primary.run_sql("INSERT INTO rows VALUES (1), (2), (3)").unwrap();
    let error = standby.run_sql("INSERT INTO rows VALUES (4)").unwrap_err();
    assert!(error.contains("read-only"), "{error}");
    primary.crash();
    standby.promote().unwrap();
    assert_eq!(standby.run_sql("SELECT sum(number) FROM rows").unwrap(), "6");
    standby.run_sql("INSERT INTO rows VALUES (4)").unwrap();
    assert_eq!(standby.run_sql("SELECT sum(number) FROM rows").unwrap(), "10");
}

#[test]
fn an_asynchronous_standby_follows_and_does_not_hold_up_commits() {
    const NAME: &str =
        "testkit::postgres::an_asynchronous_standby_follows_and_does_not_hold_up_commits";
    let Some(primary) = PrivatePostgres::start(NAME, &ServerOptions::default()) else { return };
    let standby = primary.standby(Replication::Asynchronous);
    primary.run_sql("CREATE TABLE rows AS SELECT 7 AS number").unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while standby.run_sql("SELECT number FROM rows").as_deref() != Ok("7") {
        assert!(Instant::now() < deadline, "the standby does not follow");
        std::thread::sleep(Duration::from_millis(20));
    }
    standby.pause();
    primary.run_sql("INSERT INTO rows VALUES (8)").unwrap();
    standby.resume();
}

/// What the next tests run as a process of its own.
const IN_A_PROCESS: &str = "testkit::postgres::tests::a_test_that_other_tests_run_as_a_process";
/// Makes it wait to be killed.
const WAITS: &str = "RIALTO_TEST_WAIT_TO_BE_KILLED";

#[test]
fn a_test_that_other_tests_run_as_a_process() {
    let Some(database) = TestDatabase::create(IN_A_PROCESS) else { return };
    assert!(TestDatabase::create(IN_A_PROCESS).is_some());
    if std::env::var_os(WAITS).is_some() {
        let folder = database.run_sql("SHOW data_directory").unwrap();
        let sockets = database.run_sql("SHOW unix_socket_directories").unwrap();
        // The harness has begun a line.
        println!("\n{folder}\n{sockets}");
        std::thread::sleep(Duration::from_secs(60));
    }
}

fn this_test_as_a_process() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", IN_A_PROCESS, "--nocapture"]);
    for name in ["CI", "RIALTO_TEST_DATABASE_URL", "RIALTO_TEST_POSTGRES_BIN"] {
        command.env_remove(name);
    }
    command
}

#[test]
fn without_postgresql_a_test_is_skipped_once_with_the_remedy_and_fails_in_ci() {
    let mut command = this_test_as_a_process();
    command.env("RIALTO_TEST_POSTGRES_BIN", "");
    let skipped = command.output().unwrap();
    assert!(skipped.status.success(), "{skipped:?}");
    let remedy = "install it with `apt-get install postgresql`, or set RIALTO_TEST_DATABASE_URL";
    let line = format!("skipped: {IN_A_PROCESS}: PostgreSQL is not installed; {remedy}\n");
    assert_eq!(String::from_utf8(skipped.stderr).unwrap(), line);
    let failed = command.env("CI", "1").output().unwrap();
    assert!(!failed.status.success(), "{failed:?}");
    let said = String::from_utf8(failed.stderr).unwrap();
    assert!(said.contains("CI must not skip a test"), "{said}");
}

#[test]
fn a_server_ends_with_its_test_process_even_if_that_is_killed() {
    const NAME: &str =
        "testkit::postgres::a_server_ends_with_its_test_process_even_if_that_is_killed";
    if Programs::find().is_err() {
        return skip(NAME);
    }
    let mut command = this_test_as_a_process();
    let mut process = command.env(WAITS, "1").stdout(Stdio::piped()).spawn().unwrap();
    let output = BufReader::new(process.stdout.take().unwrap());
    let mut paths = output.lines().map_while(Result::ok).filter(|line| line.starts_with('/'));
    let mut next = || PathBuf::from(paths.next().expect("the process prints two paths"));
    let (folder, sockets) = (next(), next());
    assert!(folder.is_dir() && sockets.is_dir(), "{folder:?} {sockets:?}");
    let postmaster = std::fs::read_to_string(folder.join("postmaster.pid")).unwrap();
    let postmaster: u32 = postmaster.lines().next().unwrap().parse().unwrap();
    process.kill().unwrap();
    process.wait().unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    let is_left = || folder.exists() || sockets.exists() || process_entry(postmaster).is_some();
    while is_left() {
        assert!(Instant::now() < deadline, "the server has outlived its test process");
        std::thread::sleep(Duration::from_millis(20));
    }
}
