//! Clients that other tools generate from the document, and a validator that is not ours.
//!
//! The tools are installed into the target directory once, and kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::kit::{TestHub, npm_folder, output, python_packages, run};

/// The folder with the programs of a language.
fn sources(language: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/openapi").join(language)
}

/// A copy of these programs, beside the document as `rialto openapi` prints it.
fn copy_sources(language: &str) -> TempDir {
    let folder = TempDir::new().expect("a directory");
    for entry in fs::read_dir(sources(language)).expect("a directory") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().expect("a name");
        fs::copy(&path, folder.path().join(name)).expect("a copy");
    }
    let (code, document, _) = run(&["openapi"]);
    assert_eq!(code, 0);
    fs::write(folder.path().join("openapi.json"), document).expect("a file");
    folder
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
fn succeed(command: &mut Command) -> String {
    let done = output(command).expect("it starts");
    let printed = String::from_utf8_lossy(&done.stdout).into_owned();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}\n{printed}\n{errors}");
    printed
}

/// A generated client completes a paid job at a running hub.
async fn completes_a_paid_job(client: impl FnOnce(&str, &str) -> String + Send + 'static) {
    let hub = TestHub::serve(&[]).await;
    let (url, operator) = (hub.url.clone(), hub.operator.clone());
    let printed =
        tokio::task::spawn_blocking(move || client(&url, &operator)).await.expect("a run");
    let printed: Value = serde_json::from_str(&printed).expect("JSON");
    assert_eq!(printed, json!({"state": "completed", "sum": 3, "paid": 0.25}));
    assert_eq!(hub.balance("buyer").await, ("0.75".to_owned(), "0.00".to_owned()));
    assert_eq!(hub.balance("seller").await, ("0.25".to_owned(), "0.00".to_owned()));
    hub.stop().await;
}

#[test]
fn the_document_is_valid_openapi_3_1() {
    let (folder, packages) = (copy_sources("python"), python_packages(&sources("python")));
    let mut validator = Command::new("python3");
    validator.args(["-m", "openapi_spec_validator", "--schema", "3.1", "openapi.json"]);
    let printed = succeed(validator.env("PYTHONPATH", packages).current_dir(&folder));
    assert_eq!(printed.trim(), "openapi.json: OK");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_typescript_client_made_from_the_document_completes_a_paid_job() {
    completes_a_paid_job(|url, operator| {
        let (folder, packages) = (copy_sources("typescript"), npm_folder(&sources("typescript")));
        let modules = packages.join("node_modules");
        std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).expect("a link");
        let tool = |name: &str| {
            let mut command = Command::new(modules.join(".bin").join(name));
            command.current_dir(&folder);
            command
        };
        succeed(tool("openapi-typescript").args(["openapi.json", "--output", "api.d.ts"]));
        succeed(&mut tool("tsc"));
        succeed(Command::new("node").args(["client.js", url, operator]).current_dir(&folder))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_python_client_made_from_the_document_completes_a_paid_job() {
    completes_a_paid_job(|url, operator| {
        let (folder, packages) = (copy_sources("python"), python_packages(&sources("python")));
        let python = || {
            let mut command = Command::new("python3");
            command.env("PYTHONPATH", &packages).current_dir(&folder);
            command
        };
        let generate = ["-m", "openapi_python_client", "generate", "--path", "openapi.json"];
        let options = ["--config", "config.yaml", "--meta", "none", "--fail-on-warning"];
        succeed(python().args(generate).args(options));
        succeed(python().args(["-m", "compileall", "-q", "rialto_api"]));
        succeed(python().args(["client.py", url, operator]))
    })
    .await;
}
