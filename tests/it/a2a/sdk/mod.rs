//! Unmodified SDKs against a hub: every operation, as clients of agents of three kinds.
//!
//! The programs are in this folder; its README.md says what they do. Their packages are installed
//! below the target directory once, and kept.

mod scene;
mod workers;

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::kit::{npm_package, output, python_packages};
use scene::{Scene, SceneAgent, WorkerVersion};

/// The groups of steps that need artifacts in pieces and files are not for workers that deal in text.
const OF_TEXT: &str =
    "card,send,stream,data,get,list,ask,cancel,subscribe,push,notify,extended,errors";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/it/a2a/sdk")
}

/// A program of this folder with the Python packages of one of its folders.
fn python(packages: &str, program: &str) -> Command {
    let mut python = Command::new("python3");
    python
        .arg(folder().join(program))
        .env("PYTHONPATH", python_packages(&folder().join(packages)))
        .env("PYTHONDONTWRITEBYTECODE", "1");
    python
}

/// Runs programs at the same time; each must succeed, and take at least this many steps.
async fn succeed(programs: Vec<(String, Command)>, steps: usize) {
    let runs = programs.into_iter().map(|(name, mut command)| {
        tokio::task::spawn_blocking(move || {
            let done = output(&mut command).expect("it starts");
            let printed = String::from_utf8_lossy(&done.stdout).into_owned();
            let errors = String::from_utf8_lossy(&done.stderr);
            let lines = printed.lines().map(|line| serde_json::from_str(line).expect("JSON"));
            let (good, bad): (Vec<Value>, Vec<Value>) =
                lines.partition(|line: &Value| line["ok"] == true);
            assert!(done.status.success() && bad.is_empty(), "{name}: {bad:#?}\n{errors}");
            assert!(good.len() >= steps, "{name} took only {} steps", good.len());
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.expect("a program that succeeds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_1_3_uses_every_operation_of_agents_of_three_protocols() {
    let scene = Scene::build(WorkerVersion::Old).await;
    let mut programs = Vec::new();
    for agent in scene.agents() {
        for binding in ["JSONRPC", "HTTP+JSON"] {
            let mut client = python("python-1.3", "client_1_3.py");
            client.args([&agent.url, &scene.key, binding, agent.groups]);
            programs.push((format!("1.3 {binding} {}", agent.url), client));
        }
    }
    succeed(programs, 35).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_python_sdk_0_3_uses_every_operation_of_agents_of_three_protocols() {
    let scene = Scene::build(WorkerVersion::New).await;
    let client = |agent: &SceneAgent| {
        let mut client = python("python-0.3", "client_0_3.py");
        client.args([&agent.url, &scene.key, "JSONRPC", &agent.groups_of_0_3()]);
        (format!("0.3 {}", agent.url), client)
    };
    succeed(scene.agents().iter().map(client).collect(), 26).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_javascript_sdks_use_every_operation_of_agents_of_three_protocols() {
    let scene = Scene::build(WorkerVersion::New).await;
    let mut programs = Vec::new();
    for agent in scene.agents() {
        for (version, program, binding) in [
            ("1.3.0", "client_1_3.mjs", "JSONRPC"),
            ("1.3.0", "client_1_3.mjs", "HTTP+JSON"),
            ("0.3.14", "client_0_3.mjs", "JSONRPC"),
        ] {
            let groups = match version {
                "0.3.14" => agent.groups_of_0_3(),
                _ => agent.groups.to_owned(),
            };
            let mut client = Command::new("node");
            client
                .arg(folder().join(program))
                .arg(npm_package("@a2a-js/sdk", version))
                .args([&agent.url, &scene.key, binding, &groups]);
            programs.push((format!("{version} {binding} {}", agent.url), client));
        }
    }
    succeed(programs, 27).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_framework_gets_its_answers_from_agents_of_three_protocols() {
    let scene = Scene::build(WorkerVersion::Old).await;
    let client = |agent: &SceneAgent| {
        let mut client = python("strands", "strands_client.py");
        client.args([&agent.url, &scene.key, "hello there"]);
        (agent.url.clone(), client)
    };
    succeed(scene.agents().iter().map(client).collect(), 1).await;
    scene.stop().await;
}
