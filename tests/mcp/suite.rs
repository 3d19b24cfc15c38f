//! The official conformance suite: at the hub, and through the hub at a server whose tools are skills.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::clients::{Scene, packages, text};
use crate::kit::{Lines, eventually, http, node_24, npm_folder, output, python_packages};
use crate::suite_catalogue::SuiteServer;

/// What a run of the suite says.
#[derive(Debug)]
struct Outcome {
    passed: u32,
    /// Scenarios all of whose checks passed, scored or not.
    clean: Vec<String>,
    /// The whole output, for those who read why a test failed.
    said: String,
}

impl Outcome {
    /// Reads the summary: a line for each scenario, and then the total.
    fn read(said: String) -> Self {
        let summary = said.split("=== SUMMARY ===").nth(1).expect("a summary");
        let clean = summary.lines().filter_map(|line| line.strip_prefix("✓ ")?.split(':').next());
        let clean = clean.map(str::to_owned).collect();
        let total = summary.lines().find_map(|line| line.strip_prefix("Total: ")).expect("a total");
        let passed = total.split(' ').next().and_then(|count| count.parse().ok());
        Self { passed: passed.expect("a count"), clean, said }
    }

    /// The suite's own verdict and the count of checks.
    #[track_caller]
    fn assert_passed(&self, at_least: u32) {
        let summary = self.said.split("=== SUMMARY ===").nth(1).unwrap_or_default();
        assert!(self.passed >= at_least, "{} of {at_least} checks pass: {summary}", self.passed);
    }
}

/// Runs what a revision requires; with expected failures, it must be content.
#[track_caller]
fn run(scene: &Scene, url: &str, revision: &str, expected: Option<&str>) -> Outcome {
    let suite = npm_folder(&packages("npm"));
    let suite = suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = scene.command(&node_24());
    command.arg(suite).args(["server", "--url", url, "--requirements", revision]);
    if let Some(name) = expected {
        let file = format!("conformance-{name}-{revision}.yml");
        let folder = "../../crates/hub/src/mcp/fixtures";
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        command.arg("--expected-failures").arg(folder.join(file));
    }
    let ran = output(&mut command).expect("it starts");
    let said = text(&ran.stdout) + &text(&ran.stderr);
    if expected.is_some() {
        let unexpected = said.split("=== SUMMARY ===").nth(1).unwrap_or(&said);
        assert_eq!(ran.status.code(), Some(0), "{revision} at {url}: {unexpected}");
    }
    Outcome::read(said)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_passes_the_suite_of_the_new_era() {
    let scene = Scene::build().await;
    run(&scene, &scene.url("/mcp"), "2026-07-28", Some("hub")).assert_passed(111);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_hub_passes_the_suite_of_the_old_era() {
    let scene = Scene::build().await;
    run(&scene, &scene.url("/mcp"), "2025-11-25", Some("hub")).assert_passed(38);
}

/// The suite's tools, sold by an agent of the hub.
async fn serve_tools(scene: &Scene) -> std::process::Child {
    let server: PathBuf = packages("../suite/server.py");
    let server = format!("python3 {}", server.display());
    let mut agent = scene.command(Path::new(env!("CARGO_BIN_EXE_rialto")));
    agent
        .args(["agent", "run", "--mcp", &server, "--name", "tck", "--price", "0", "--all-tools"])
        .args(["--concurrency", "16"])
        .env("PYTHONPATH", python_packages(&packages("python-2.3")))
        .env_remove("RIALTO_KEY")
        .stdout(std::process::Stdio::piped());
    let mut agent = agent.spawn().expect("it starts");
    let mut lines = Lines::of(agent.stdout.take());
    std::thread::spawn(move || while lines.next().is_some() {});
    let url = scene.url("/registry/discover?skill=slow_compute");
    eventually(async || {
        let found = http().get(&url).send().await.expect("an answer").text().await;
        let found: Value = serde_json::from_str(&found.expect("a text")).unwrap_or_default();
        found.to_string().contains("agent_id")
    })
    .await;
    agent
}

/// Ends a process at the end of a test, however that ends.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_server_passes_the_suite_of_the_new_era_through_the_hub() {
    let scene = Scene::build().await;
    let _agent = Ended(serve_tools(&scene).await);
    run(&scene, &scene.url("/mcp/agents/tck"), "2026-07-28", Some("agents")).assert_passed(147);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sold_server_passes_the_suite_of_the_old_era_through_the_hub() {
    let scene = Scene::build().await;
    let _agent = Ended(serve_tools(&scene).await);
    run(&scene, &scene.url("/mcp/agents/tck"), "2025-11-25", Some("agents")).assert_passed(52);
}

/// The scenarios that a revision scores, by the suite's own list.
fn scored(revision: &str) -> Vec<String> {
    let suite = npm_folder(&packages("npm"));
    let list = suite.join("node_modules/@modelcontextprotocol/conformance/requirements");
    let list = std::fs::read_to_string(list.join(format!("{revision}.yaml"))).expect("a list");
    let section = list.split("\nserver:\n").nth(1).expect("a section");
    let names = section.lines().map_while(|line| line.strip_prefix("  - "));
    names.map(|name| name.trim().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_layer_alone_passes_every_scored_scenario_of_the_new_era() {
    let (scene, server) = (Scene::build().await, SuiteServer::start().await);
    let ran = run(&scene, &server.url, "2026-07-28", None);
    let missed: Vec<_> =
        scored("2026-07-28").into_iter().filter(|name| !ran.clean.contains(name)).collect();
    assert_eq!(missed, Vec::<String>::new(), "{}", ran.said);
    assert_eq!(scored("2026-07-28").len(), 37);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_wire_layer_alone_passes_what_it_offers_of_the_old_era() {
    /// Needs what is not offered: logging, sampling, elicitation over HTTP, subscriptions.
    const LEFT_OUT: [&str; 8] = [
        "logging-set-level",
        "tools-call-with-logging",
        "tools-call-sampling",
        "tools-call-elicitation",
        "elicitation-sep1034-defaults",
        "elicitation-sep1330-enums",
        "resources-subscribe",
        "resources-unsubscribe",
    ];
    let (scene, server) = (Scene::build().await, SuiteServer::start().await);
    let ran = run(&scene, &server.url, "2025-11-25", None);
    let all = scored("2025-11-25");
    let missed: Vec<_> = all.iter().filter(|name| !ran.clean.contains(*name)).collect();
    assert!(
        missed.iter().all(|name| LEFT_OUT.contains(&name.as_str())),
        "{missed:?}: {}",
        ran.said
    );
    assert_eq!(all.len(), 30);
}
