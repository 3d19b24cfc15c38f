//! The operator's commands: settings, grants, audits.

use std::process::Command;

use serde_json::Value;

use crate::kit::{Process, operator_key, output, run};

fn with_env(arguments: &[&str], env: &[(&str, &str)]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_rialto"));
    // The user who runs the tests may have contexts.
    let home = tempfile::TempDir::new().expect("a directory");
    command.env("RIALTO_HOME", home.path());
    let output = output(command.args(arguments).envs(env.iter().copied())).expect("it runs");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn a_misspelt_setting_is_refused_with_the_right_one() {
    let (code, _, error) = run(&["serve", "--set", "htp.listen=127.0.0.1:0"]);
    assert_eq!(code, 2);
    assert!(error.contains("did you mean `http.listen`"), "{error}");
}

#[test]
fn every_setting_is_shown_with_its_origin() {
    let env = [("RIALTO_LEDGER__WELCOME_GRANT", "12.50")];
    let (code, shown, _) = with_env(&["config", "show", "--origin"], &env);
    assert_eq!(code, 0);
    let line = shown.lines().find(|line| line.starts_with("ledger.welcome_grant")).expect("a line");
    assert!(line.contains("12.50") && line.contains("env RIALTO_LEDGER__WELCOME_GRANT"), "{line}");
    assert_eq!(run(&["config", "check"]).0, 0);
}

#[test]
fn the_operator_grants_credits_and_sees_them_to_the_digit() {
    let data = tempfile::TempDir::new().expect("a directory");
    let key = operator_key();
    let env = [("RIALTO_OPERATOR_KEY", key.as_str())];
    let hub = Process::with_env("serve", data.path(), &[], &env);
    let grant = ["wallet", "grant", "acme", "100.00", "--create", "--hub", &hub.url];
    let (code, told, error) = with_env(&grant, &env);
    assert_eq!((code, told.trim()), (0, "acme: 100.00 available, 0.00 held"), "{error}");
    let balance = ["wallet", "balance", "acme", "--json", "--hub", &hub.url];
    let (code, told, _) = with_env(&balance, &env);
    assert_eq!(code, 0);
    assert!(told.contains("\"available\":100.00"), "{told}");
}

#[test]
fn exit_codes_tell_what_kind_of_no_it_was() {
    let data = tempfile::TempDir::new().expect("a directory");
    let key = operator_key();
    let env = [("RIALTO_OPERATOR_KEY", key.as_str())];
    let hub = Process::with_env("serve", data.path(), &[], &env);
    let balance = |owner: &str| ["wallet", "balance", owner, "--hub", &hub.url].map(str::to_owned);
    let asked = |owner: &str, env: &[(&str, &str)]| {
        let arguments = balance(owner);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        with_env(&arguments, env).0
    };
    assert_eq!(asked("nobody", &env), 3, "not found");
    assert_eq!(asked("nobody", &[("RIALTO_OPERATOR_KEY", "ro_wrong")]), 4, "auth");
    let nowhere = ["wallet", "balance", "x", "--hub", "http://127.0.0.1:1"];
    assert_eq!(with_env(&nowhere, &env).0, 7, "unreachable");
    assert_eq!(run(&["wallet", "grant"]).0, 2, "usage");
}

#[test]
fn an_audit_needs_data_and_says_so() {
    let empty = tempfile::TempDir::new().expect("a directory");
    let path = empty.path().display().to_string();
    assert_eq!(run(&["audit", "--data", &path]).0, 3);
    let data = tempfile::TempDir::new().expect("a directory");
    Process::start("serve", data.path(), &[]).kill();
    let path = data.path().display().to_string();
    let (code, printed, _) = run(&["audit", "--data", &path, "--json"]);
    assert_eq!(code, 0, "{printed}");
    let report: Value = serde_json::from_str(&printed).expect("one JSON document");
    assert!(report["checks"].as_array().is_some_and(|checks| checks.len() > 8), "{printed}");
}

#[test]
fn two_hubs_cannot_share_a_data_directory() {
    let data = tempfile::TempDir::new().expect("a directory");
    let _first = Process::start("serve", data.path(), &[]);
    let path = data.path().display().to_string();
    let (code, _, error) = run(&["serve", "--listen", "127.0.0.1:0", "--data", &path]);
    assert_eq!(code, 1);
    assert!(error.contains("another hub"), "{error}");
}

#[test]
fn the_api_document_names_every_route() {
    let (code, printed, _) = run(&["openapi"]);
    assert_eq!(code, 0);
    let document: Value = serde_json::from_str(&printed).expect("one JSON document");
    for route in rialto_hub::app::operations() {
        let method = route.method.to_lowercase();
        assert!(document["paths"][&route.path][&method].is_object(), "{method} {}", route.path);
    }
    let (code, script, _) = run(&["completions", "bash"]);
    assert!(code == 0 && script.contains("rialto"));
}

/// The data directory contains the agents' messages.
#[cfg(unix)]
#[test]
fn a_data_directory_the_hub_makes_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let above = tempfile::TempDir::new().expect("a directory");
    let data = above.path().join("made/by/the/hub");
    let hub = Process::start("dev", &data, &[]);
    let mode = std::fs::metadata(&data).expect("it was made").permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    drop(hub);
}
